#include "formats/scale_word.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace boltbeam::formats {
namespace {

std::uint32_t ReadLittle(std::span<const std::byte> bytes, std::uint32_t count) {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < count; ++i) value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return value;
}

void WriteLittle(std::uint32_t value, std::span<std::byte> bytes, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((value >> (8 * i)) & 0xFFU);
}

std::uint32_t FloatToBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return (bits >> 16) | 0x40U;  // stays a NaN when only low bits of its fraction are set
  return (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
}

/// A power of two, one byte: the exponent plus 128.
std::uint32_t FloatToE8m0Half(float value) {
  if (!(value > 0)) return 0;
  if (std::isinf(value)) return 255;
  const int exponent = static_cast<int>(std::lround(std::log2(static_cast<double>(value))));
  return static_cast<std::uint32_t>(std::clamp(exponent + 128, 0, 255));
}

double Ue4m3HalfToDouble(std::uint32_t raw) {
  if (raw == 0x7F) return 0;
  const auto exponent = static_cast<int>((raw >> 3) & 15U);
  const auto fraction = static_cast<double>(raw & 7U);
  return exponent == 0 ? std::ldexp(fraction, -10) : std::ldexp(8 + fraction, exponent - 11);
}

/// The nearest of the 127 numbers, ties to the smaller one.
std::uint32_t FloatToUe4m3Half(float value) {
  std::uint32_t best = 0;
  for (std::uint32_t raw = 1; raw < 0x7F; ++raw) {
    if (std::fabs(Ue4m3HalfToDouble(raw) - value) < std::fabs(Ue4m3HalfToDouble(best) - value)) best = raw;
  }
  return best;
}

}  // namespace

std::uint32_t EncodingBits(Encoding encoding) {
  switch (encoding) {
    case Encoding::kF32:
      return 32;
    case Encoding::kF16:
    case Encoding::kBf16:
      return 16;
    case Encoding::kE8m0Half:
    case Encoding::kUe4m3Half:
      return 8;
    case Encoding::kOne:
      return 0;
  }
  return 0;
}

double DecodeFloat(Encoding encoding, std::span<const std::byte> bytes) {
  const std::uint32_t raw = ReadLittle(bytes, EncodingBits(encoding) / 8);
  switch (encoding) {
    case Encoding::kF32:
      return std::bit_cast<float>(raw);
    case Encoding::kF16:
      return HalfToFloat(static_cast<std::uint16_t>(raw));
    case Encoding::kBf16:
      return std::bit_cast<float>(raw << 16);
    case Encoding::kE8m0Half:
      return std::ldexp(1.0, static_cast<int>(raw) - 128);
    case Encoding::kUe4m3Half:
      return Ue4m3HalfToDouble(raw);
    case Encoding::kOne:
      return 1;
  }
  return 0;
}

void EncodeFloat(Encoding encoding, float value, std::span<std::byte> bytes) {
  switch (encoding) {
    case Encoding::kF32:
      return WriteLittle(std::bit_cast<std::uint32_t>(value), bytes, 4);
    case Encoding::kF16:
      return WriteLittle(FloatToHalf(value), bytes, 2);
    case Encoding::kBf16:
      return WriteLittle(FloatToBf16(value), bytes, 2);
    case Encoding::kE8m0Half:
      return WriteLittle(FloatToE8m0Half(value), bytes, 1);
    case Encoding::kUe4m3Half:
      return WriteLittle(FloatToUe4m3Half(value), bytes, 1);
    case Encoding::kOne:
      return;
  }
}

float RoundTo(Encoding encoding, float value) {
  std::byte bytes[4] = {};
  EncodeFloat(encoding, value, bytes);
  return static_cast<float>(DecodeFloat(encoding, bytes));
}

}  // namespace boltbeam::formats
