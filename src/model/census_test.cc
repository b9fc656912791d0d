#include "model/census.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test_model.h"

namespace boltbeam::model {
namespace {

TEST(Census, GoldenTablesOfQwen3EightB) {
  std::ifstream stream(BOLTBEAM_TEST_DATA "/qwen3-8b-q4_k_m.json");
  const nlohmann::json golden = nlohmann::json::parse(stream);
  const Model model = Model::Load(Qwen3EightB().Write()).value();
  const Census census = TakeCensus(model);
  const nlohmann::json& totals = golden["totals"];
  EXPECT_EQ(census.counted_tensors, 253u);
  EXPECT_EQ(census.counted_bytes, totals["weights_bytes"].get<std::uint64_t>());
  EXPECT_EQ(census.tensor_bytes, totals["data_bytes"].get<std::uint64_t>());
  EXPECT_EQ(census.counted_bytes + census.excluded_bytes, census.tensor_bytes);
  EXPECT_EQ(census.excluded_bytes,
            totals["norms_bytes"].get<std::uint64_t>() + totals["token_embd_bytes"].get<std::uint64_t>());
  EXPECT_EQ(census.row_bytes, 2304u);
  EXPECT_NEAR(census.BitsPerWeight(), 4.937, 0.0005);
  std::size_t counted_groups = 0;
  for (const CensusGroup& group : census.groups) {
    if (group.exclusion != Exclusion::kNone) continue;
    ++counted_groups;
    bool found = false;
    for (const nlohmann::json& row : golden["roles"]) {
      if (row["role"] != group.role || row["format"] != group.format) continue;
      found = true;
      EXPECT_EQ(group.tensors, row["count"].get<std::uint64_t>()) << group.role;
      EXPECT_EQ(group.bytes, row["total_bytes"].get<std::uint64_t>()) << group.role;
      EXPECT_EQ(group.elements, row["weight_elements"].get<std::uint64_t>()) << group.role;
      EXPECT_EQ(group.rows, row["rows"].get<std::uint64_t>()) << group.role;
    }
    EXPECT_TRUE(found) << group.role << " " << group.format;
  }
  EXPECT_EQ(counted_groups, golden["roles"].size());
  const auto layers = golden["q6_k_layers"]["layers"].get<std::vector<std::int32_t>>();
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.role != Role::kAttnV && tensor.role != Role::kFfnDown) continue;
    const bool q6 = std::ranges::find(layers, tensor.layer) != layers.end();
    EXPECT_EQ(tensor.format->name, q6 ? "Q6_K" : "Q4_K") << tensor.info->name;
  }
}

TEST(Census, ATiedTableIsCountedOnceAsTheHead) {
  TestModel file("qwen3");
  file.Remove("output.weight");
  const Model model = Model::Load(file.Write()).value();
  const Census census = TakeCensus(model);
  EXPECT_EQ(census.counted_bytes + census.excluded_bytes, census.tensor_bytes);
  EXPECT_EQ(census.counted_tensors, 2u * 7 + 1);
  std::uint64_t heads = 0;
  for (const CensusGroup& group : census.groups) {
    if (group.role == "lm_head") heads += group.tensors;
    EXPECT_NE(group.role, "embed");
  }
  EXPECT_EQ(heads, 1u);
}

}  // namespace
}  // namespace boltbeam::model
