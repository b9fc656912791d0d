// A product of one column on a GPU: lanes of a subgroup share rows of the table, several rows lie side by side, and the
// contracted dimension may be split among workgroups. Its geometries, from a chip's declared facts, and what each would
// take. This build has no kernel that runs them; the space and the prediction need none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "search/candidate.h"
#include "search/knob_space.h"

namespace boltbeam::search {

/// How weights meet activations. What needs another instruction than multiply-add needs its fact.
enum class GpuMath : std::uint8_t { kFma, kDot2, kDot4, kMatrix };

/// Legal geometries for a part. Facts: subgroup_lanes, vector_load_bits, lanes_per_workgroup_max,
/// workgroup_memory_bytes (or the larger one that a kernel may opt in to), dot2_f16, dot4_i8, and of a matrix
/// instruction matrix_rows, matrix_columns and matrix_depth.
KnobSpace GpuProductSpace(const Part& part, const chip::Chip& chip);

/// A point's time, taken apart.
struct GpuPrediction {
  std::size_t point = 0;  // of the space
  double ns = 0, low_ns = 0, high_ns = 0;
  double drawn_gb_s = 0;  // that so many bytes under way draw: Little's law
  double bytes_in_flight = 0;
  double memory_ns = 0, compute_ns = 0, tail = 1;  // tail: of the last wave, a factor of the memory's time
};

struct GpuForesight {
  std::vector<GpuPrediction> survivors;  // fastest first
  std::optional<GpuPrediction> usual;    // the recorded route, turned away or not: rows one by one, plain loads
  std::vector<Rejected> rejected;
  std::vector<std::string> unknown;  // facts without which a term is left out and the interval is wider
  double floor_ns = 0;
};

/// kBoundNoBandwidth when neither a measured nor a published rate of the memory is known.
Result<GpuForesight> PredictGpuProduct(const Part& part, const KnobSpace& space, const chip::Chip& chip);

}  // namespace boltbeam::search
