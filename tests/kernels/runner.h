// Runs one loop program everywhere it can run: interpreted, and as machine code for several instruction sets.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernel/program.h"
#include "machine.h"

namespace boltbeam::kernel_tests {

/// The least instruction set and the greatest.
const std::vector<Way>& UsualWays();

/// What the buffers hold after one way of running; buffers in the program's order.
struct Outcome {
  std::string way;  // "interpreter" or the instruction set
  std::vector<Bytes> buffers;
};

/// Runs program over [begin, end), interpreted and in these ways, each on its own copy of the buffers. Fails the test
/// when a run is refused, when machine code writes outside of its buffers, or when a target with fused multiply-add
/// differs from the interpreter in a single bit.
std::vector<Outcome> RunEverywhere(const kernel::Program& program, const std::vector<Bytes>& buffers,
                                   std::int64_t begin, std::int64_t end, const std::vector<Way>& ways = UsualWays());

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
