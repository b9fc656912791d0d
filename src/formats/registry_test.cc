// The registry that is built in, and every mistake that a row of another could have.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/embedded.h"
#include "formats/format.h"

namespace boltbeam::formats {
namespace {

using Json = nlohmann::json;

std::string Types() { return std::string(base::Embedded("formats/types.json").value()); }
std::string Grids() { return std::string(base::Embedded("formats/grids.json").value()); }
std::string Rows() { return std::string(base::Embedded("formats/rows.json").value()); }

TEST(RegistryTest, BuiltInRegistryIsValid) {
  const auto registry = ParseRegistry(Types(), Rows(), Grids());
  ASSERT_TRUE(registry) << registry.error().Message();
  EXPECT_EQ(registry->formats.size(), AllFormats().size());
  EXPECT_EQ(AllFormats().size(), 35U);
  std::set<std::string> with_layout, coded;
  for (const Format& format : AllFormats()) {
    if (format.layout) with_layout.insert(format.name);
    if (format.coding) coded.insert(format.name);
    EXPECT_EQ(FindType(format.type), &format);
    EXPECT_EQ(FindFormat(format.name), &format);
    EXPECT_FALSE(IsRemovedType(format.type));
  }
  EXPECT_EQ(with_layout.size(), 18U);  // 15 block layouts and 3 plain floats
  EXPECT_EQ(coded.size(), 8U);
  EXPECT_TRUE(IsRemovedType(4));
  EXPECT_EQ(FindType(4), nullptr);
  EXPECT_EQ(FindType(43), nullptr);
  EXPECT_EQ(FindFormat("Q9_Z"), nullptr);
}

struct Size {
  const char* name;
  std::uint32_t type, elements, bytes;
};

/// ggml's numbers and sizes: ggml.h at 37b53fd and ggml-common.h, September 2026.
TEST(RegistryTest, SizesAreThoseOfGgml) {
  constexpr Size kSizes[] = {
      {"F32", 0, 1, 4},         {"F16", 1, 1, 2},         {"Q4_0", 2, 32, 18},      {"Q4_1", 3, 32, 20},
      {"Q5_0", 6, 32, 22},      {"Q5_1", 7, 32, 24},      {"Q8_0", 8, 32, 34},      {"Q8_1", 9, 32, 36},
      {"Q2_K", 10, 256, 84},    {"Q3_K", 11, 256, 110},   {"Q4_K", 12, 256, 144},   {"Q5_K", 13, 256, 176},
      {"Q6_K", 14, 256, 210},   {"Q8_K", 15, 256, 292},   {"IQ2_XXS", 16, 256, 66}, {"IQ2_XS", 17, 256, 74},
      {"IQ3_XXS", 18, 256, 98}, {"IQ1_S", 19, 256, 50},   {"IQ4_NL", 20, 32, 18},   {"IQ3_S", 21, 256, 110},
      {"IQ2_S", 22, 256, 82},   {"IQ4_XS", 23, 256, 136}, {"I8", 24, 1, 1},         {"I16", 25, 1, 2},
      {"I32", 26, 1, 4},        {"I64", 27, 1, 8},        {"F64", 28, 1, 8},        {"IQ1_M", 29, 256, 56},
      {"BF16", 30, 1, 2},       {"TQ1_0", 34, 256, 54},   {"TQ2_0", 35, 256, 66},   {"MXFP4", 39, 32, 17},
      {"NVFP4", 40, 64, 36},    {"Q1_0", 41, 128, 18},    {"Q2_0", 42, 64, 18},
  };
  ASSERT_EQ(std::size(kSizes), AllFormats().size());
  for (const Size& size : kSizes) {
    const Format* format = FindType(size.type);
    ASSERT_NE(format, nullptr) << size.name;
    EXPECT_EQ(format->name, size.name);
    EXPECT_EQ(format->elements, size.elements) << size.name;
    EXPECT_EQ(format->bytes, size.bytes) << size.name;
  }
  EXPECT_DOUBLE_EQ(FindFormat("Q6_K")->BitsPerWeight(), 6.5625);
}

TEST(RegistryTest, MistakesInTypesAreFound) {
  const auto refused = [](const std::function<void(Json&)>& change) {
    Json types = Json::parse(Types());
    change(types);
    const auto registry = ParseRegistry(types.dump(), Rows(), Grids());
    return !registry && registry.error().code == Code::kFormatRow && !registry.error().where.empty();
  };
  EXPECT_TRUE(refused([](Json& t) { t["more"] = 1; }));
  EXPECT_TRUE(refused([](Json& t) { t.erase("types"); }));
  EXPECT_TRUE(refused([](Json& t) { t["types"] = 3; }));
  EXPECT_TRUE(refused([](Json& t) { t["types"][0] = 3; }));
  EXPECT_TRUE(refused([](Json& t) { t["removed_types"][0] = -4; }));
  EXPECT_TRUE(refused([](Json& t) { t["removed_types"].push_back(12); }));
  EXPECT_TRUE(refused([](Json& t) { t["types"].push_back(t["types"][3]); }));
  EXPECT_TRUE(refused([](Json& t) { t["types"][1]["name"] = "F32"; }));
  EXPECT_TRUE(refused([](Json& t) { t["types"][1]["type"] = 0; }));
  EXPECT_TRUE(refused([](Json& t) { t["types"][1].erase("source"); }));
  EXPECT_TRUE(refused([](Json& t) { t["types"][1]["bytes"] = 0; }));
  EXPECT_TRUE(refused([](Json& t) { t["types"][1]["bytes"] = "2"; }));
  EXPECT_TRUE(refused([](Json& t) { t["types"][1]["bytes"] = 4; }));  // not f16's size
  EXPECT_TRUE(refused([](Json& t) { t["types"][1]["encoding"] = "f17"; }));
  EXPECT_TRUE(refused([](Json& t) { t["types"][1]["colour"] = "red"; }));
  EXPECT_EQ(ParseRegistry("{", Rows()).error().code, Code::kFormatRow);
  EXPECT_EQ(ParseRegistry(Types(), "[]").error().code, Code::kFormatRow);
}

TEST(RegistryTest, MistakesInRowsAreFound) {
  const auto refused = [](const std::function<void(Json&)>& change) {
    Json rows = Json::parse(Rows());
    Json& q4k = rows["formats"][0];
    EXPECT_EQ(q4k["name"], "Q4_K");
    change(q4k);
    const auto registry = ParseRegistry(Types(), rows.dump(), Grids());
    return !registry && registry.error().code == Code::kFormatRow && !registry.error().found.empty();
  };
  EXPECT_FALSE(refused([](Json&) {}));
  EXPECT_TRUE(refused([](Json& r) { r["name"] = "Q4_Z"; }));
  EXPECT_TRUE(refused([](Json& r) { r["name"] = "Q5_K"; }));
  EXPECT_TRUE(refused([](Json& r) { r["bytes"] = 145; }));
  EXPECT_TRUE(refused([](Json& r) { r["elements_per_scale"] = 33; }));
  EXPECT_TRUE(refused([](Json& r) { r["elements_per_scale"] = 16; }));
  EXPECT_TRUE(refused([](Json& r) { r["extra"] = 1; }));
  EXPECT_TRUE(refused([](Json& r) { r.erase("codes"); }));
  EXPECT_TRUE(refused([](Json& r) { r.erase("codebook"); }));
  EXPECT_TRUE(refused([](Json& r) { r["codebook"] = {1, 2, 3}; }));
  EXPECT_TRUE(refused([](Json& r) { r["m"] = nullptr; }));
  EXPECT_TRUE(refused([](Json& r) { r["m"]["sign"] = 0; }));
  EXPECT_TRUE(refused([](Json& r) { r["m"]["base_bit"] = 0; }));
  EXPECT_TRUE(refused([](Json& r) { r["d"]["base_bit"] = 4; }));
  EXPECT_TRUE(refused([](Json& r) { r["d"]["encoding"] = "f64"; }));
  EXPECT_TRUE(refused([](Json& r) { r["minimums"] = nullptr; }));  // bits that belong to nothing
  EXPECT_TRUE(refused([](Json& r) { r["codes"]["bits"] = 5; }));
  EXPECT_TRUE(refused([](Json& r) { r["codes"]["signed"] = 0; }));
  EXPECT_TRUE(refused([](Json& r) { r["codes"]["pieces"][0]["base_bit"] = 136; }));
  EXPECT_TRUE(refused([](Json& r) { r["codes"]["pieces"][0]["width"] = 9; }));
  EXPECT_TRUE(refused([](Json& r) { r["codes"]["pieces"][0]["digits"][0] = {16, 8}; }));
  EXPECT_TRUE(refused([](Json& r) { r["codes"]["pieces"][0]["digits"][1] = {2, 6}; }));  // crosses a byte
  EXPECT_TRUE(refused([](Json& r) { r["codes"]["pieces"][0]["digits"][0] = {0, 8}; }));
  EXPECT_TRUE(refused([](Json& r) { r["scales"]["pieces"][1]["shift"] = 3; }));
  EXPECT_TRUE(refused([](Json& r) { r["scales"]["encoding"] = "ue4m3_half"; }));  // of six bits
  EXPECT_TRUE(refused([](Json& r) { r["codes"]["encoding"] = "ue4m3_half"; }));
  EXPECT_TRUE(refused([](Json& r) { r["d"]["factor"] = 3; }));
  EXPECT_TRUE(refused([](Json& r) { r["d"]["factor"] = "2"; }));
  EXPECT_TRUE(refused([](Json& r) { r["unused_bits"] = 1; }));
}

TEST(RegistryTest, MistakesInCodedRowsAreFound) {
  const auto refused = [](std::size_t row, const std::function<void(Json&)>& change) {
    Json rows = Json::parse(Rows());
    change(rows["coded"][row]);
    const auto registry = ParseRegistry(Types(), rows.dump(), Grids());
    return !registry && registry.error().code == Code::kFormatRow && !registry.error().found.empty();
  };
  EXPECT_FALSE(refused(0, [](Json& r) { EXPECT_EQ(r["name"], "IQ2_XXS"); }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["name"] = "Q4_K"; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["name"] = "Q4_Z"; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["bytes"] = 67; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["grid"]["table"] = "none"; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["grid"]["table"] = "iq2_xs"; }));  // more entries than the index reaches
  EXPECT_TRUE(refused(0, [](Json& r) { r.erase("grid"); }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["grid"].erase("index"); }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["grid"]["multiplier"] = 16; }));  // beyond a byte
  EXPECT_TRUE(refused(0, [](Json& r) { r["signs"]["parity"] = false; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["signs"].erase("field"); }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["signs"]["parity"] = 1; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["scales"]["step"] = 0; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["scales"]["bias"] = 1; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["factor"] = 0.3; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["d"]["pieces"][0]["base_bit"] = 8; }));
  EXPECT_TRUE(refused(0, [](Json& r) { r["d"]["signed"] = true; }));
  EXPECT_TRUE(refused(5, [](Json& r) { r["shifts"]["elements"] = 48; }));
  EXPECT_TRUE(refused(5, [](Json& r) { r["shifts"]["elements"] = 4; }));  // less than an entry of the table
  EXPECT_TRUE(refused(5, [](Json& r) { r["shifts"]["field"]["bits"] = 2; }));
  EXPECT_TRUE(refused(7, [](Json& r) { r["trits"][0]["digits"] = 4; }));
  EXPECT_TRUE(refused(7, [](Json& r) { r["trits"][0]["base_byte"] = 1; }));
}

TEST(RegistryTest, MistakesInGridsAreFound) {
  const auto refused = [](const std::function<void(Json&)>& change) {
    Json grids = Json::parse(Grids());
    change(grids["tables"][0]);
    const auto registry = ParseRegistry(Types(), Rows(), grids.dump());
    return !registry && registry.error().code == Code::kFormatRow;
  };
  EXPECT_FALSE(refused([](Json&) {}));
  EXPECT_TRUE(refused([](Json& t) { t["entries"] = 255; }));
  EXPECT_TRUE(refused([](Json& t) { t["values"][0] = 128; }));
  EXPECT_TRUE(refused([](Json& t) { t["digits"][0] = "9"; }));
  EXPECT_TRUE(refused([](Json& t) { t["digits"][0] = 9; }));
  EXPECT_TRUE(refused([](Json& t) { t.erase("name"); }));
  EXPECT_EQ(ParseRegistry(Types(), Rows()).error().code, Code::kFormatRow);
}

}  // namespace
}  // namespace boltbeam::formats
