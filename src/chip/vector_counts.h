// Vector instructions by the width of their registers: a processor may issue narrow ones faster than wide ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace boltbeam::chip {

struct VectorCounts {
  static constexpr std::array<std::uint32_t, 3> kBits = {128, 256, 512};
  std::array<double, kBits.size()> of = {};  // [width]

  /// All of one width: the narrowest of kBits that holds so many bits.
  static constexpr VectorCounts Of(std::uint32_t bits, double count) {
    VectorCounts counts;
    std::size_t width = 0;
    while (width + 1 < kBits.size() && kBits.at(width) < bits) ++width;
    counts.of.at(width) = count;
    return counts;
  }
  [[nodiscard]] constexpr double Total() const { return std::accumulate(of.begin(), of.end(), 0.0); }
  constexpr VectorCounts& operator+=(const VectorCounts& other) {
    for (std::size_t i = 0; i < of.size(); ++i) of.at(i) += other.of.at(i);
    return *this;
  }
  friend constexpr VectorCounts operator*(VectorCounts counts, double times) {
    for (double& count : counts.of) count *= times;
    return counts;
  }
  friend bool operator==(const VectorCounts&, const VectorCounts&) = default;
};

}  // namespace boltbeam::chip
