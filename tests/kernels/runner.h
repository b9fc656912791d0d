// Runs one loop program everywhere it can run: interpreted, and as machine code for several targets.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "kernel/program.h"

namespace boltbeam::kernel_tests {

using Bytes = std::vector<std::byte>;

struct NamedTarget {
  std::string name;
  codegen::Target target;
  bool has_fma = false;
};

/// This machine with all that it declares, with less (AVX2 where it has AVX-512), and the plain x86-64. `all` false:
/// without the middle.
std::vector<NamedTarget> Targets(bool all);

/// What the buffers hold after one way of running; buffers in the program's order.
struct Outcome {
  std::string way;  // "interpreter" or the target's name
  std::vector<Bytes> buffers;
};

/// Runs program over [begin, end) in every way, each on its own copy of the buffers. Fails the test when a run is
/// refused, when machine code writes outside of its buffers, or when a target with fused multiply-add differs from the
/// interpreter in a single bit.
std::vector<Outcome> RunEverywhere(const kernel::Program& program, const std::vector<Bytes>& buffers,
                                   std::int64_t begin, std::int64_t end, bool all_targets = false);

template <typename T>
Bytes ToBytes(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
std::vector<T> FromBytes(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

/// The largest difference over the sum of absolute terms; where that sum is 0 the values have to be equal.
struct Agreement {
  double worst = 0;
  std::string where;  // of the worst
  [[nodiscard]] bool Within(double limit) const { return worst <= limit; }
  void Add(double found, double expected, double absolute_terms, const std::string& place);
};

}  // namespace boltbeam::kernel_tests
