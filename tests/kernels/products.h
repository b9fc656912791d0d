// One product of a weight table with activation columns, as data, run in every way and compared with plain double
// arithmetic on what the reference dequantizer says.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "formats/format.h"
#include "kernel/families/gemv.h"
#include "kernel/weight_layout.h"
#include "runner.h"

namespace boltbeam::kernel_tests {

enum class Pattern : std::uint8_t {
  kRandom,    // any bits, block scales of usual size
  kIntegers,  // block scales 1 and sparse small integer activations: exact under any order of summation
  kZeros,     // all codes, scales and minimums zero bits
  kOnes,      // all codes, scales and minimums one bits
};

struct Product {
  const formats::Format* format = nullptr;
  kernel::GemvGeometry geometry;
  kernel::GemvShape shape;
  Pattern pattern = Pattern::kRandom;
  std::uint32_t columns = 1;  // in all; a multiple of geometry.columns
  const std::vector<Way>* ways = &UsualWays();

  [[nodiscard]] std::string Name() const;
};

/// Rearranges, quantises, multiplies; the worst disagreement over every way of running. `change` may corrupt the
/// product's program.
Agreement RunProduct(const Product& product, const std::function<void(kernel::Program&)>& change = {});

}  // namespace boltbeam::kernel_tests
