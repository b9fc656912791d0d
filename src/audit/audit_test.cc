#include "audit/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "audit/floors.h"
#include "measure/clock.h"
#include "measure/fake_engine.h"
#include "model/token_graph.h"
#include "report/audit_format.h"
#include "test_model.h"

namespace boltbeam::audit {
namespace {

// A memory of this many GB/s, as a probe would read it.
class FakeBandwidth : public BandwidthSource {
 public:
  explicit FakeBandwidth(double gb_s) : gb_s_(gb_s) {}
  std::vector<double> Read() override { return {gb_s_ * 0.9, gb_s_}; }
  double CacheGbS() const override { return gb_s_ * 100; }
  std::string Method() const override { return "fake"; }

 private:
  double gb_s_;
};

// An engine with one step a graph operation, each its own phase, that takes this many nanoseconds a byte and stamps
// itself accordingly; a token takes real time.
class AuditRun : public testing::Test {
 protected:
  static constexpr double kNsPerByte = 0.05;  // 20 GB/s

  void SetUp() override {
    const auto clock = measure::GetClock();
    ASSERT_TRUE(clock);
    ticks_per_ns_ = 1 / clock->ns_per_tick;
    model::GraphOptions deeper;  // than any window of these tests
    deeper.depth = 256;
    for (const model::Operation& operation : model::BuildTokenGraph(engine_.model(), deeper)) {
      engine::StepInfo step;
      step.role = operation.role;
      step.format = operation.weights != nullptr ? operation.weights->format->name : "F32";
      step.phase = engine_.phase_count++;
      engine_.step_list.push_back(step);
      step_ns_.push_back(500 + kNsPerByte * static_cast<double>(operation.weight_bytes + operation.kv_bytes));
    }
    session_.trace = [this](std::uint64_t, engine::Trace& trace) { Stamp(trace); };
    for (const double ns : step_ns_) session_.token_ns += static_cast<std::uint64_t>(ns + kGapNs);
  }

  void Stamp(engine::Trace& trace) const {
    const std::size_t steps = step_ns_.size();
    trace.step_begin = trace.step_end = trace.barrier_begin = trace.barrier_end = {std::vector<std::uint64_t>(steps)};
    double now = 1e9;
    trace.token_begin = Ticks(now);
    for (std::size_t step = 0; step < steps; ++step) {
      trace.step_begin[0][step] = Ticks(now);
      now += step_ns_[step] * (engine_.step_list[step].role == slow_part_ ? 1 + slow_share_ : 1);
      trace.step_end[0][step] = trace.barrier_begin[0][step] = Ticks(now);
      now += kGapNs;
      trace.barrier_end[0][step] = Ticks(now);
    }
    trace.token_end = Ticks(now);
  }
  std::uint64_t Ticks(double ns) const { return static_cast<std::uint64_t>(ns * ticks_per_ns_); }

  Result<Audit> Run(double gb_s) {
    FakeBandwidth bandwidth(gb_s);
    Options options;
    options.seconds = 0.2;
    options.depths = {0, 32};
    return RunAudit(engine_, session_, bandwidth, options);
  }

  static constexpr double kGapNs = 100;
  model::TestModel file_{"llama"};
  measure::FakeEngine engine_{model::Model::Load(file_.Write()).value()};
  measure::FakeSession session_;
  std::vector<double> step_ns_;
  double ticks_per_ns_ = 1;
  std::string slow_part_;
  double slow_share_ = 0;
};

TEST_F(AuditRun, EveryDepthHasAnAccountThatAddsUp) {
  const Result<Audit> audit = Run(20);
  ASSERT_TRUE(audit) << audit.error().Message();
  ASSERT_EQ(audit->accounts.size(), 2U);
  EXPECT_EQ(audit->accounts[1].depth, 32U);
  EXPECT_EQ(session_.prompted, 32U);
  for (const Account& account : audit->accounts) {
    const Token& token = account.token;
    EXPECT_NEAR(token.floor_ns + token.lost_ns + token.gaps_ns + token.unaccounted_ns, token.now_ns, 1e-3);
    EXPECT_GE(account.pairs, 8U);
    double work = 0;
    for (const Part& part : account.parts) work += part.now_ns;
    double expected = 0;
    for (const double ns : step_ns_) expected += ns;
    EXPECT_NEAR(work, expected, 0.01 * expected);
    EXPECT_NEAR(token.wait_ns, kGapNs * static_cast<double>(step_ns_.size()),
                2.0 * static_cast<double>(step_ns_.size()));
  }
}

TEST_F(AuditRun, ASlowedPartShowsOnItsOwnRow) {
  const Result<Audit> plain = Run(20);
  slow_part_ = "ffn_down";
  slow_share_ = 0.05;
  const Result<Audit> slowed = Run(20);
  ASSERT_TRUE(plain && slowed);
  for (const Part& part : slowed->accounts[0].parts) {
    const auto before = std::ranges::find_if(plain->accounts[0].parts, [&](const Part& other) {
      return other.role == part.role && other.format == part.format;
    });
    EXPECT_NEAR(part.now_ns / before->now_ns, part.role == slow_part_ ? 1.05 : 1, 0.005) << part.role;
  }
}

TEST_F(AuditRun, AProbeThatReadsTooSlowlyIsFoundOut) {
  const Result<Audit> audit = Run(5);  // the parts stream at 20
  ASSERT_FALSE(audit);
  EXPECT_EQ(CodeGroup(audit.error().code), Group::kMeasurement);
  EXPECT_NE(audit.error().found.find("faster than its floor"), std::string::npos) << audit.error().Message();
}

TEST_F(AuditRun, ErrorsOfTheEngineComeThrough) {
  session_.fail_at = 40;
  EXPECT_EQ(Run(20).error().where, "fake");
}

TEST_F(AuditRun, FloorsAreTheGraphs) {
  const std::vector<PartFloor> floors = PartFloors(engine_.model(), 8, {});
  const auto down = std::ranges::find_if(floors, [](const PartFloor& floor) { return floor.role == "ffn_down"; });
  ASSERT_NE(down, floors.end());
  EXPECT_EQ(down->calls, 2U);
  EXPECT_EQ(down->memory_bytes, 2U * 256 * 512 / 32 * 34);  // Q8_0: 34 bytes for 32 weights
  const auto attention = std::ranges::find_if(floors, [](const PartFloor& floor) { return floor.role == "attention"; });
  ASSERT_NE(attention, floors.end());
  EXPECT_GE(attention->memory_bytes, 2U * 8 * 2 * 128 * 2);  // layers, positions, keys and values, of 2 x 64 halves
  EXPECT_GT(MemoryBytes(floors), down->memory_bytes);
}

TEST_F(AuditRun, TieOutIsJudged) {
  Audit audit;
  Account account;
  account.token.now_ns = 100;
  account.token.unaccounted_ns = -0.9;
  audit.accounts = {account};
  EXPECT_TRUE(RequireTieOut(audit));
  audit.accounts[0].token.unaccounted_ns = -1.1;
  EXPECT_EQ(RequireTieOut(audit).error().code, Code::kMeasurementUnstable);
  audit.accounts[0].token.unaccounted_ns = 0;
  audit.accounts[0].band = kWidestBand + 0.01;
  const auto unstable = RequireTieOut(audit);
  ASSERT_FALSE(unstable) << "a band that lets everything pass";
  EXPECT_EQ(unstable.error().code, Code::kMeasurementUnstable);
  EXPECT_NE(unstable.error().Message().find("varied by 51 %"), std::string::npos) << unstable.error().Message();
}

TEST_F(AuditRun, AttentionIsNamedAfterItsCacheAtEveryDepth) {
  for (const std::uint64_t depth : {0, 8}) {
    for (const char* name : {"F16", "F32"}) {
      const formats::Format* format = formats::FindFormat(name);
      const auto floors = PartFloors(engine_.model(), depth, {format, format});
      const auto attention = std::ranges::find(floors, "attention", &PartFloor::role);
      ASSERT_NE(attention, floors.end());
      EXPECT_EQ(attention->format, name) << depth;
    }
  }
}

TEST_F(AuditRun, ReportsHaveTheAgreedNamesAndFitATerminal) {
  const Result<Audit> audit = Run(20);
  ASSERT_TRUE(audit) << audit.error().Message();
  const report::AuditSubject subject{.model_filename = "a.gguf",
                                     .model_type = "llama 1M Q8_0",
                                     .machine = "Some CPU",
                                     .plan_id = "fake",
                                     .threads = 1,
                                     .kv_format = "f16",
                                     .memory = {}};
  const nlohmann::json document = nlohmann::json::parse(report::AuditJson(subject, *audit));
  EXPECT_EQ(document["schema"], "boltbeam.audit.v1");
  const nlohmann::json& depth = document["depths"][1];
  EXPECT_EQ(depth["depth"], 32);
  EXPECT_GT(depth["read_bandwidth_gb_s"], 0);
  for (const char* name : {"now_ns", "floor_ns", "lost_ns", "gaps_ns", "unaccounted_ns"}) {
    EXPECT_TRUE(depth["token"][name].is_number()) << name;
  }
  for (const char* name : {"role", "format", "calls", "bytes", "floor_ns", "now_ns", "excess_ns", "cause"}) {
    EXPECT_TRUE(depth["parts"][0].contains(name)) << name;
  }
  const std::string text = report::AuditText(subject, *audit);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto columns = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
    EXPECT_LE(columns, 80) << line;
    EXPECT_EQ(line.find("…"), std::string::npos) << "a name that was cut: " << line;
  }
  EXPECT_NE(text.find("= token"), std::string::npos);
  EXPECT_NE(report::AuditMarkdown(subject, *audit).find("| part"), std::string::npos);
}

}  // namespace
}  // namespace boltbeam::audit
