// The dequantizer against block definitions written out by hand, as ggml-common.h and ggml-quants.c state them: nothing
// here reads the registry's bit layouts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "formats/format.h"

namespace boltbeam::formats {
namespace {

using Block = std::vector<std::uint8_t>;
using Reference = std::function<std::vector<double>(const Block&)>;

double Half(const Block& b, std::size_t at) {
  return HalfToFloat(static_cast<std::uint16_t>(b[at] | (b[at + 1] << 8)));
}

int Signed(std::uint8_t byte) { return static_cast<std::int8_t>(byte); }

/// Element j in the low nibble of byte j, element j + 16 in the high one.
int Nibble(const Block& b, std::size_t qs, int j) { return j < 16 ? b[qs + j] & 15 : b[qs + j - 16] >> 4; }

std::vector<double> Each(int count, const std::function<double(int)>& value) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(value(i));
  return values;
}

std::vector<double> Q40(const Block& b) {
  return Each(32, [&](int j) { return (Nibble(b, 2, j) - 8) * Half(b, 0); });
}

std::vector<double> Q41(const Block& b) {
  return Each(32, [&](int j) { return Nibble(b, 4, j) * Half(b, 0) + Half(b, 2); });
}

int FifthBit(const Block& b, std::size_t qh, int j) { return ((b[qh + j / 8] >> (j % 8)) & 1) << 4; }

std::vector<double> Q50(const Block& b) {
  return Each(32, [&](int j) { return ((Nibble(b, 6, j) | FifthBit(b, 2, j)) - 16) * Half(b, 0); });
}

std::vector<double> Q51(const Block& b) {
  return Each(32, [&](int j) { return (Nibble(b, 8, j) | FifthBit(b, 4, j)) * Half(b, 0) + Half(b, 2); });
}

std::vector<double> Q80(const Block& b) {
  return Each(32, [&](int j) { return Signed(b[2 + j]) * Half(b, 0); });
}

/// The 6-bit scale and minimum of sub-block j, from 12 bytes s.
std::pair<int, int> ScaleAndMinimum(const std::uint8_t* s, int j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | ((s[j - 4] >> 6) << 4), (s[j + 4] >> 4) | ((s[j] >> 6) << 4)};
}

std::vector<double> Q4K(const Block& b) {
  return Each(256, [&](int e) {
    const int sub = e / 32;
    const std::uint8_t byte = b[16 + 32 * (sub / 2) + e % 32];
    const auto [scale, minimum] = ScaleAndMinimum(&b[4], sub);
    return Half(b, 0) * scale * (sub % 2 == 0 ? byte & 15 : byte >> 4) - Half(b, 2) * minimum;
  });
}

std::vector<double> Q5K(const Block& b) {
  return Each(256, [&](int e) {
    const int sub = e / 32;
    const std::uint8_t byte = b[48 + 32 * (sub / 2) + e % 32];
    const int high = (b[16 + e % 32] >> sub) & 1;
    const auto [scale, minimum] = ScaleAndMinimum(&b[4], sub);
    return Half(b, 0) * scale * ((sub % 2 == 0 ? byte & 15 : byte >> 4) | (high << 4)) - Half(b, 2) * minimum;
  });
}

std::vector<double> Q6K(const Block& b) {
  std::vector<double> y(256);
  for (int n = 0; n < 2; ++n) {
    for (int k = 0; k < 4; ++k) {
      for (int l = 0; l < 32; ++l) {
        const std::uint8_t byte = b[64 * n + l + 32 * (k & 1)];
        const int low = k < 2 ? byte & 15 : byte >> 4;
        const int high = (b[128 + 32 * n + l] >> (2 * k)) & 3;
        y[128 * n + 32 * k + l] = Half(b, 208) * Signed(b[192 + 8 * n + 2 * k + l / 16]) * ((low | (high << 4)) - 32);
      }
    }
  }
  return y;
}

std::vector<double> Q2K(const Block& b) {
  return Each(256, [&](int e) {  // halves of 128, in each four planes of 32
    const int n = e / 128, k = e % 128 / 32, l = e % 32;
    const std::uint8_t scale = b[8 * n + 2 * k + l / 16];
    return Half(b, 80) * (scale & 15) * ((b[16 + 32 * n + l] >> (2 * k)) & 3) - Half(b, 82) * (scale >> 4);
  });
}

std::vector<double> Q3K(const Block& b) {
  return Each(256, [&](int e) {
    const int n = e / 128, k = e % 128 / 32, l = e % 32;
    const int group = 8 * n + 2 * k + l / 16;
    const int low = group < 8 ? b[96 + group] & 15 : b[96 + group - 8] >> 4;
    const int high = (b[104 + group % 4] >> (2 * (group / 4))) & 3;
    const int code = ((b[32 + 32 * n + l] >> (2 * k)) & 3) - (((b[l] >> (4 * n + k)) & 1) != 0 ? 0 : 4);
    return Half(b, 108) * ((low | (high << 4)) - 32) * code;
  });
}

constexpr int kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

std::vector<double> Iq4Nl(const Block& b) {
  return Each(32, [&](int j) { return Half(b, 0) * kIq4[Nibble(b, 2, j)]; });
}

std::vector<double> Iq4Xs(const Block& b) {
  return Each(256, [&](int e) {
    const int sub = e / 32;
    const int low = (b[4 + sub / 2] >> (4 * (sub % 2))) & 15;
    const int high = ((b[2] | (b[3] << 8)) >> (2 * sub)) & 3;
    return Half(b, 0) * ((low | (high << 4)) - 32) * kIq4[Nibble(b, 8 + 16 * sub, e % 32)];
  });
}

std::vector<double> Mxfp4(const Block& b) {
  constexpr int kValues[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  return Each(32, [&](int j) { return std::ldexp(kValues[Nibble(b, 1, j)], b[0] - 128); });
}

/// Unsigned, four bits of exponent and three of fraction, half of that; 0x7F is 0.
double Ue4m3Half(std::uint8_t byte) {
  if (byte == 0x7F) return 0;
  const int exponent = (byte >> 3) & 15;
  const double fraction = byte & 7;
  return 0.5 * (exponent == 0 ? fraction / 512 : std::ldexp(1 + fraction / 8, exponent - 7));
}

std::vector<double> Nvfp4(const Block& b) {
  constexpr int kValues[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  return Each(64, [&](int e) {
    const int sub = e / 16, j = e % 16;
    const std::uint8_t byte = b[4 + 8 * sub + j % 8];
    return Ue4m3Half(b[sub]) * kValues[j < 8 ? byte & 15 : byte >> 4];
  });
}

std::vector<double> Tq20(const Block& b) {
  return Each(256,
              [&](int e) { return Half(b, 64) * (((b[32 * (e / 128) + e % 32] >> (2 * (e % 128 / 32))) & 3) - 1); });
}

template <typename T>
T As(const Block& b) {
  T value;
  std::memcpy(&value, b.data(), sizeof value);
  return value;
}

const std::pair<const char*, Reference> kReferences[] = {
    {"F32", [](const Block& b) { return std::vector<double>{As<float>(b)}; }},
    {"F16", [](const Block& b) { return std::vector<double>{Half(b, 0)}; }},
    {"BF16", [](const Block& b) { return std::vector<double>{As<float>({0, 0, b[0], b[1]})}; }},
    {"Q4_0", Q40},
    {"Q4_1", Q41},
    {"Q5_0", Q50},
    {"Q5_1", Q51},
    {"Q8_0", Q80},
    {"Q2_K", Q2K},
    {"Q3_K", Q3K},
    {"Q4_K", Q4K},
    {"Q5_K", Q5K},
    {"Q6_K", Q6K},
    {"IQ4_NL", Iq4Nl},
    {"IQ4_XS", Iq4Xs},
    {"MXFP4", Mxfp4},
    {"NVFP4", Nvfp4},
    {"TQ2_0", Tq20},
};

void ExpectSame(const Format& format, const Block& block, const std::vector<double>& expected) {
  std::vector<double> values(format.elements);
  ASSERT_TRUE(Dequantize(format, std::as_bytes(std::span(block)), values));
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << format.name << " element " << i;
    } else {
      EXPECT_DOUBLE_EQ(values[i], expected[i]) << format.name << " element " << i;
    }
  }
}

TEST(DequantizeTest, EveryLayoutHasAReference) {
  std::size_t with_layout = 0;
  for (const Format& format : AllFormats()) with_layout += format.layout ? 1 : 0;
  EXPECT_EQ(with_layout, std::size(kReferences));
}

TEST(DequantizeTest, RandomBlocks) {
  std::mt19937 random(7);
  for (const auto& [name, reference] : kReferences) {
    const Format* format = FindFormat(name);
    ASSERT_NE(format, nullptr) << name;
    for (int i = 0; i < 200; ++i) {
      Block block(format->bytes);
      for (auto& byte : block) byte = static_cast<std::uint8_t>(random());
      ExpectSame(*format, block, reference(block));
    }
  }
}

TEST(DequantizeTest, ExtremeCodes) {
  for (const auto& [name, reference] : kReferences) {
    const Format& format = *FindFormat(name);
    for (const std::uint8_t byte : {0x00, 0xFF, 0x80, 0x7F, 0x0F, 0xF0, 0x55, 0xAA}) {
      const Block block(format.bytes, byte);
      ExpectSame(format, block, reference(block));
    }
    for (std::uint32_t at = 0; at < format.bytes; ++at) {  // one byte at a time, so that no two can be confused
      Block block(format.bytes, 0x3C);                     // a scale near 1
      block[at] = 0xE7;
      ExpectSame(format, block, reference(block));
    }
  }
}

TEST(DequantizeTest, ABlockByHand) {  // d = 0.5, m = -1, codes 0 to 15 twice
  Block block = {0x00, 0x38, 0x00, 0xBC};
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<std::uint8_t>(i | (i << 4)));
  std::vector<double> values(32);
  ASSERT_TRUE(Dequantize(*FindFormat("Q4_1"), std::as_bytes(std::span(block)), values));
  EXPECT_EQ(values[0], -1);
  EXPECT_EQ(values[5], 1.5);
  EXPECT_EQ(values[31], 6.5);
}

TEST(DequantizeTest, WrongSizesAndFormatsAreErrors) {
  const Format& format = *FindFormat("Q8_0");
  const Block block(68);
  std::vector<double> values(64);
  const auto bytes = std::as_bytes(std::span(block));
  EXPECT_TRUE(Dequantize(format, bytes, values));
  EXPECT_EQ(Dequantize(format, bytes.first(67), values).error().code, Code::kFormatBlocks);
  EXPECT_EQ(Dequantize(format, bytes, std::span(values).first(32)).error().code, Code::kFormatBlocks);
  EXPECT_EQ(Dequantize(format, bytes, std::span(values).first(63)).error().code, Code::kFormatBlocks);
  EXPECT_EQ(Dequantize(*FindFormat("Q8_1"), {}, {}).error().code, Code::kUnsupportedFormat);
}

TEST(HalfTest, EveryHalfComesBackAndFloatsRoundToTheNearest) {
  for (std::uint32_t raw = 0; raw < 65536; ++raw) {
    const float value = HalfToFloat(static_cast<std::uint16_t>(raw));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value))));
      continue;
    }
    EXPECT_EQ(FloatToHalf(value), raw);
    if (std::isinf(value) || raw % 0x8000 >= 0x7BFF) continue;
    const float next = HalfToFloat(static_cast<std::uint16_t>(raw + 1));
    const float middle = value + (next - value) / 2;
    EXPECT_EQ(FloatToHalf(middle), raw % 2 == 0 ? raw : raw + 1) << raw;  // ties go to the even one
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, next)), raw + 1) << raw;
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, value)), raw) << raw;
  }
  EXPECT_EQ(FloatToHalf(65504), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65519.99F), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520), 0x7C00);
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(FloatToHalf(1e-30F), 0);
}

}  // namespace
}  // namespace boltbeam::formats
