// Kernels of a foreign trace against the parts of a model: by how often they run and by what they move, never by name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "audit/account.h"
#include "audit/compare/matching.h"
#include "audit/import/imported.h"

namespace boltbeam::audit {

struct AttributedKernel {
  std::string name;
  double calls = 0;     // of a token
  double total_ns = 0;  // of a token
  std::string part;     // "ffn_down Q4_K"; empty: unattributed
  std::string why;      // what decided, or why nothing could: "18 launches fit ffn_down Q4_K and ffn_down Q6_K"
};

struct Attribution {
  std::string group;                              // of the trace: its device and process
  double tokens = 0;                              // that the trace was taken to hold
  std::vector<AttributedKernel> kernels;          // by time
  double attributed_ns = 0, unattributed_ns = 0;  // of a token
};

/// floors: of the model's token. tokens: that the trace holds; 0: the largest number at which every kernel still runs a
/// whole number of times in each. Of one group of the trace: a process or a device has a token of its own.
Attribution Attribute(const imports::Imported& imported, std::span<const PartFloor> floors, double tokens,
                      const std::string& group = {});

/// The same of single operations that were matched by kind and shape: a region each, and what has no count.
Attribution Attribute(const Matching& matching);

}  // namespace boltbeam::audit
