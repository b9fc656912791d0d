#include "engine/reference_input.h"

#include <cstring>
#include <random>

namespace boltbeam::engine {

std::vector<double> DecodeActivations(const kernel::ActivationLayout& layout, std::span<const std::byte> bytes) {
  static constexpr std::size_t kPlace[] = {0, 2, 1, 3};  // of element i of four among halves
  std::vector<double> values;
  for (std::size_t at = 0; at < bytes.size(); at += layout.block_bytes) {
    float scale = 1;
    if (!layout.is_float) std::memcpy(&scale, &bytes[at + layout.scale_offset], sizeof(scale));
    for (std::size_t i = 0; i < layout.elements; ++i) {
      std::int16_t code = static_cast<std::int8_t>(bytes[at + i]);
      if (layout.halves) std::memcpy(&code, &bytes[at + (i / 4 * 4 + kPlace[i % 4]) * 2], sizeof(code));
      float value = static_cast<float>(code);
      if (layout.is_float) std::memcpy(&value, &bytes[at], sizeof(value));
      values.push_back(static_cast<double>(scale) * value);
    }
  }
  return values;
}

std::vector<float> RandomActivations(std::uint64_t count) {
  std::mt19937 random(20);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = normal(random) * (i % 97 == 0 ? 16.0F : 1.0F);
  return values;
}

std::vector<float> SparseActivations(std::uint64_t count) {
  constexpr std::size_t kOneIn = 37;
  std::mt19937 random(21);
  std::uniform_int_distribution<int> number(-3, 3);
  std::vector<float> values(count);
  for (std::size_t i = random() % kOneIn; i < count; i += 1 + random() % (2 * kOneIn)) {
    values[i] = static_cast<float>(number(random));
  }
  return values;
}

}  // namespace boltbeam::engine
