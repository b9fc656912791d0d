// The dequantizer against blocks and values that another program wrote: tests/data/formats names it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/format.h"

namespace boltbeam::formats {
namespace {

std::vector<std::byte> FromHex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(GoldenTest, BlocksOfEveryFormat) {
  std::ifstream file(BOLTBEAM_SOURCE_DIR "/tests/data/formats/golden_blocks.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::size_t blocks = 0;
  for (const auto& row : golden.at("formats")) {
    const std::string name = row.at("name");
    const Format* format = FindFormat(name);
    ASSERT_NE(format, nullptr) << name;
    ASSERT_TRUE(format->IsKnown()) << name;
    const std::vector<std::byte> bytes = FromHex(row.at("blocks"));
    const std::vector<std::byte> raw = FromHex(row.at("values_f32"));
    std::vector<double> values(bytes.size() / format->bytes * format->elements);
    ASSERT_EQ(raw.size(), values.size() * 4) << name;
    const auto dequantised = Dequantize(*format, bytes, values);
    ASSERT_TRUE(dequantised) << dequantised.error().Message();
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < values.size(); ++i) {
      float expected = 0;
      std::memcpy(&expected, &raw[i * 4], 4);
      EXPECT_NEAR(values[i], expected, 2e-7 * (std::abs(expected) + largest)) << name << " element " << i;
    }
    ++blocks;
  }
  EXPECT_EQ(blocks, 23U);
}

TEST(GoldenTest, EveryKnownFormatButPlainFloatsHasOne) {
  std::size_t known = 0;
  for (const Format& format : AllFormats()) {
    if (format.IsKnown() && !(format.layout && format.layout->encoding)) ++known;
  }
  EXPECT_EQ(known, 23U);
}

TEST(ToPlainTest, WrongSizesAndFormatsAreErrors) {
  const Format& format = *FindFormat("IQ2_XXS");
  std::vector<std::byte> blocks(format.bytes), plain(format.plain->bytes);
  EXPECT_TRUE(ToPlain(format, blocks, plain));
  EXPECT_EQ(ToPlain(format, blocks, std::span(plain).first(3)).error().code, Code::kFormatBlocks);
  EXPECT_EQ(ToPlain(*FindFormat("Q4_K"), blocks, plain).error().code, Code::kUnsupportedFormat);
}

}  // namespace
}  // namespace boltbeam::formats
