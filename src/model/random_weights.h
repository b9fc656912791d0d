// Random weights in a weight format, as fast as a disk can take them.
//
// A small tensor is drawn value by value and quantised. A large one repeats, in random order, stretches of a pool that
// was drawn once: quantising billions of values one by one would take minutes and measure nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "formats/format.h"

namespace boltbeam::model {

/// splitmix64: the same numbers on every machine.
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  /// Close to a normal distribution of mean 0 and deviation 1, from integer sums only.
  float Normal();
  float Uniform();  // within -1 and 1

 private:
  std::uint64_t state_;
};

class RandomWeights {
 public:
  explicit RandomWeights(std::uint64_t seed) : seed_(seed) {}

  /// Starts the tensor number `index`: a table of the given deviation and number of columns.
  Result<void> Start(std::uint64_t index, const formats::Format& format, std::uint64_t columns, std::uint64_t elements,
                     double deviation);
  /// The next bytes of that tensor: whole stretches. Empty when the tensor is complete.
  Result<std::span<const std::byte>> Next();

 private:
  using PoolKey = std::tuple<const formats::Format*, std::uint64_t, double>;

  Result<std::vector<std::byte>> Draw(std::uint64_t elements);

  std::uint64_t seed_;
  RandomBits bits_{0};
  const formats::Format* format_ = nullptr;
  double deviation_ = 0;
  std::uint64_t stretch_bytes_ = 0;
  std::uint64_t left_elements_ = 0;
  std::uint64_t stretch_elements_ = 0;
  const std::vector<std::byte>* pool_ = nullptr;  // nullptr: drawn directly
  std::map<PoolKey, std::vector<std::byte>> pools_;
  std::vector<std::byte> buffer_;
};

}  // namespace boltbeam::model
