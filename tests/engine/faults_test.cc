// Faults that are put in on purpose change when a token computes, never what; and steps run by themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "chip/facts.h"
#include "loaded.h"

namespace boltbeam::engine {
namespace {

const std::string& Spec() {
  static const std::string kSpec = Synth("tiny-qwen3:Q8_0");
  return kSpec;
}

std::vector<float> LogitsOf(const Options& options) {
  const Loaded loaded = Load(Spec(), options);
  for (const std::int32_t token : Tokens(6, loaded.model->hyper().vocab)) EXPECT_TRUE(loaded.session->Decode(token));
  const std::span<const float> logits = loaded.session->logits();
  return {logits.begin(), logits.end()};
}

class FaultTest : public testing::TestWithParam<Faults> {};

TEST_P(FaultTest, TheNumbersStayTheSame) {
  Options options;
  options.threads = static_cast<std::uint32_t>(std::min<std::size_t>(2, chip::UsableCpus().size()));
  const std::vector<float> plain = LogitsOf(options);
  options.faults = GetParam();
  EXPECT_FALSE(options.faults.IsNone());
  EXPECT_EQ(plain, LogitsOf(options));
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultTest,
                         testing::Values(Faults{.part = "ffn_down", .late_thread = 0, .late_ns = 2000},
                                         Faults{.part = "ffn_gate_up", .scattered = true},
                                         Faults{.part = "attn_qo", .launches = 3},
                                         Faults{.part = "ffn_down", .launches = 7},
                                         Faults{.part = {}, .barrier_ns = 500}));

TEST(FaultPlanTest, SplitLaunchesAreStepsOfTheirOwn) {
  Options options;
  options.threads = 1;
  const Loaded plain = Load(Spec(), options);
  options.faults = {.part = "ffn_down", .launches = 4};
  const Loaded split = Load(Spec(), options);
  const auto count = [](const Loaded& loaded) {
    return std::ranges::count(loaded.engine->steps(), "ffn_down", &StepInfo::role);
  };
  EXPECT_EQ(count(split), 4 * count(plain));
  EXPECT_EQ(split.engine->phases(), plain.engine->phases() + 3 * static_cast<std::uint32_t>(count(plain)));
  EXPECT_NE(split.engine->plan_id(), plain.engine->plan_id());
}

TEST(AloneTest, AStepRunsByItselfAsOftenAsAsked) {
  const Loaded loaded = Load(Spec(), {});
  ASSERT_TRUE(loaded.session->Decode(1));
  const std::span<const StepInfo> steps = loaded.engine->steps();
  const auto step = static_cast<std::uint32_t>(std::ranges::find(steps, "ffn_down", &StepInfo::role) - steps.begin());
  std::uint32_t before = 0;
  const auto whole = loaded.session->RunAlone({.step = step, .runs = 3, .before = [&](std::uint32_t thread) {
                                                 if (thread == 0) ++before;
                                               }});
  ASSERT_TRUE(whole) << whole.error().Message();
  EXPECT_EQ(whole->ticks.size(), 3U);
  EXPECT_EQ(before, 3U);
  EXPECT_EQ(whole->shares[0], 1);
  const auto one = loaded.session->RunAlone({.step = step, .runs = 1, .most_items = 1, .before = {}});
  ASSERT_TRUE(one);
  EXPECT_GT(one->shares[0], 0);
  EXPECT_LT(one->shares[0], 1);
  const auto beyond =
      loaded.session->RunAlone({.step = static_cast<std::uint32_t>(steps.size()), .runs = 1, .before = {}});
  EXPECT_EQ(beyond.error().code, Code::kUsage);
  // The next token computes anew what the step overwrote.
  const Loaded other = Load(Spec(), {});
  ASSERT_TRUE(other.session->Decode(1));
  ASSERT_TRUE(other.session->Decode(2));
  ASSERT_TRUE(loaded.session->Decode(2));
  EXPECT_TRUE(std::ranges::equal(loaded.session->logits(), other.session->logits()));
}

}  // namespace
}  // namespace boltbeam::engine
