// The kernels of a plan against plain double arithmetic, on the model's own tensors: whole tables, every row.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "engine/engine.h"

namespace boltbeam::engine {

struct KernelCheck {
  std::string part, tensor, format, kernel, kernel_id;
  double error = 0;  // the worst row's |difference| over the sum of the absolute values of its terms
  std::uint64_t worst_row = 0;
  bool ok = false;  // error is at most kKernelErrorLimit
};

/// f32 sums in another order than the reference's stay well below it; a wrong code or scale does not.
inline constexpr double kKernelErrorLimit = 1e-5;

struct CheckOptions {
  std::string part;                                                       // only this part of the account; empty: all
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // rows; from the calling thread
  std::function<bool()> cancelled;
};

/// Multiplies every weight table with random activations, by the kernels of the decode plan (one column) and of the
/// prompt plan (several) and by the reference dequantizer; and reads every row of the embedding both ways. The decode
/// plan's other kernels are compared with the interpreter, bit for bit: their error is the share of what they write
/// that differs. kUsage when the plan has no such part.
Result<std::vector<KernelCheck>> CheckKernels(const Engine& engine, const chip::Chip& machine,
                                              const CheckOptions& options);

}  // namespace boltbeam::engine
