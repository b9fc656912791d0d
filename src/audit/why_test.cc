#include "audit/why.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "audit/alone.h"

namespace boltbeam::audit {
namespace {

// Two threads; a head and a layer part at their floors, and nothing wrong.
struct Case {
  Account account;
  std::vector<PartPlan> plans;
  SessionFacts facts;

  Case() {
    account.read_bandwidth_gb_s = 50;
    account.band = 0.05;
    account.token.now_ns = 10e6;
    account.token.floor_ns = 9e6;
    account.token.host_ns = 1000;
    account.barriers = 100;
    account.threads = {{9.7e6, 0, 30e3, 1000}, {9.7e6, 0, 30e3, 1000}};
    facts.barrier_ns = 300;
    AddPart("lm_head", 1, 3e6);
    AddPart("ffn_down", 28, 6e6);
  }
  void AddPart(const std::string& role, std::uint64_t calls, double floor_ns) {
    Part part{.role = role, .format = "Q4_K", .cause = {}};
    part.calls = part.steps = calls;
    part.bytes = part.stored_bytes = static_cast<std::uint64_t>(floor_ns * 50);
    part.floor_ns = floor_ns;
    part.streams = true;
    account.parts.push_back(part);
    Take(account.parts.back(), floor_ns * 1.02, floor_ns * 1.02, 1.03 * floor_ns, 0.4 * floor_ns);
  }
  static void Take(Part& part, double first_ns, double second_ns, double cold_ns, double hot_ns) {
    part.thread_ns = {first_ns, second_ns};
    part.now_ns = (first_ns + second_ns) / 2;
    part.excess_ns = part.now_ns - part.floor_ns;
    part.imbalance_ns = std::abs(first_ns - second_ns) / 2;
    part.cold_ns = cold_ns;
    part.hot_ns = hot_ns;
  }
  Part& Down() { return account.parts[1]; }
  /// The largest finding, or none.
  Cause Finding() {
    account.causes = CausesOf(account, plans, facts);
    const auto finding = FindingOf(account);
    return finding ? *finding->cause : Cause{.kind = "none", .role = {}, .format = {}, .evidence = {}, .lever = {}};
  }
  Cause Of(std::string_view kind) {
    for (const Cause& cause : CausesOf(account, plans, facts)) {
      if (cause.kind == kind) return cause;
    }
    return {.kind = "none", .role = {}, .format = {}, .evidence = {}, .lever = {}};
  }
};

TEST(WhyTest, ACleanTokenHasNoFinding) { EXPECT_EQ(Case().Finding().kind, "none"); }

TEST(WhyTest, FindingsAreMarkedAndOrdinaryLinesAreNot) {
  Case c;
  Case::Take(c.Down(), 7e6, 7e6, 7e6, 6.5e6);
  c.account.causes = CausesOf(c.account, c.plans, c.facts);
  ASSERT_GT(c.account.causes.size(), 1U);
  EXPECT_TRUE(c.account.causes.front().is_finding);
  EXPECT_EQ(c.account.causes.back().kind, "boundary");
  EXPECT_FALSE(c.account.causes.back().is_finding) << "31 us of 10 ms";
  // Two formats of one role count together: each below the threshold, both a finding.
  const double each = 0.012 * c.account.token.now_ns;
  c = Case();
  for (const char* format : {"Q4_K", "Q6_K"}) {
    c.AddPart("attn_qo", 28, 1e6);
    Part& part = c.account.parts.back();
    part.format = format;
    Case::Take(part, 1e6 + each, 1e6 + each, 1.1e6, 1e6);
  }
  c.account.causes = CausesOf(c.account, c.plans, c.facts);
  EXPECT_EQ(std::ranges::count_if(c.account.causes, &Cause::is_finding), 2);
  EXPECT_NEAR(FindingOf(c.account)->recoverable_ns, 2 * each, 1);
  for (Cause& cause : c.account.causes) cause.is_finding = false;
  EXPECT_FALSE(FindingOf(c.account)) << "the mark is all that is read";
}

TEST(WhyTest, AloneBelowTheFloorSaysWhy) {
  Case c;
  Part& down = c.Down();
  c.account.cache_bytes = 32'000'000;
  c.account.alone_before_gb_s = c.account.alone_after_gb_s = 50;
  EXPECT_EQ(WhatAloneSays(c.account, down), "as alone");
  Case::Take(down, 7e6, 7e6, 6e6, 2e6);
  EXPECT_EQ(WhatAloneSays(c.account, down), "slower in the token");
  down.cold_ns = 4e6;  // of a floor of 6
  EXPECT_EQ(WhatAloneSays(c.account, down), "alone it stayed in a cache") << "11 MB a kernel, 32 MB of cache";
  c.account.cache_bytes = 1'000'000;
  EXPECT_EQ(WhatAloneSays(c.account, down), "alone faster than the probe");
  c.account.alone_after_gb_s = 60;
  EXPECT_EQ(WhatAloneSays(c.account, down), "alone the memory's speed changed");
  EXPECT_NE(c.Of("memory").evidence.find("alone the memory's speed changed"), std::string::npos);
  down.cold_ns = 9e6;
  EXPECT_EQ(WhatAloneSays(c.account, down), "alone it starts anew");
  down.hot_ns = 0;
  EXPECT_EQ(WhatAloneSays(c.account, down), "");
}

TEST(WhyTest, SlowOutOfTheCachesTooIsInstructions) {
  Case c;
  Case::Take(c.Down(), 7e6, 7e6, 7e6, 6.5e6);
  const Cause cause = c.Finding();
  EXPECT_EQ(cause.kind, "compute");
  EXPECT_EQ(cause.role, "ffn_down");
  EXPECT_DOUBLE_EQ(cause.recoverable_ns, 1e6);
}

TEST(WhyTest, FastOutOfTheCachesAndSlowAloneIsTheRate) {
  Case c;
  c.facts.latencies = {100, 250};
  Case::Take(c.Down(), 7e6, 7e6, 7e6, 2.5e6);
  const Cause cause = c.Finding();
  EXPECT_EQ(cause.kind, "rate");
  // Two threads; 50 GB/s for 100 ns are 5 kB. Nothing of it comes from the time that is to be explained.
  EXPECT_NE(cause.evidence.find("5.0 kB asked for by 100 ns (idle), 12.5 kB under way at 250 ns (loaded)"),
            std::string::npos)
      << cause.evidence;
  EXPECT_NE(cause.evidence.find("what its kernel keeps there is not known"), std::string::npos) << cause.evidence;
  const auto evidence = [&](double ahead_bytes) {
    c.plans = {{.role = "ffn_down", .format = "Q4_K", .geometry = {}, .dot = {}, .best_dot = {}}};
    c.plans[0].ahead_bytes = ahead_bytes;
    return c.Of("rate").evidence;
  };
  EXPECT_NE(evidence(0).find("asks for none ahead: what the chip fetches by itself is not known"), std::string::npos);
  EXPECT_NE(evidence(1024).find("asks for 1.0 kB ahead on each thread: too few"), std::string::npos) << evidence(1024);
  EXPECT_NE(evidence(4096).find("asks for 4.1 kB ahead on each thread: enough"), std::string::npos) << evidence(4096);
  c.plans.clear();
  Case::Take(c.Down(), 6.5e6, 6.5e6, 6.5e6, 2.5e6);
  EXPECT_EQ(c.Of("rate").kind, "none") << "as near to the memory's rate as kernels come";
  Case::Take(c.Down(), 7e6, 7e6, 6.1e6, 2.5e6);
  EXPECT_EQ(c.Finding().kind, "memory") << "alone it is fast";
}

TEST(WhyTest, AThreadThatIsLateInOnePartIsThatPartsImbalance) {
  Case c;
  Case::Take(c.Down(), 6.12e6, 7.12e6, 6.2e6, 2.5e6);
  Cause cause = c.Finding();
  EXPECT_EQ(cause.kind, "imbalance");
  EXPECT_EQ(cause.role, "ffn_down");
  EXPECT_NEAR(cause.recoverable_ns, 1e6, 1e4);
  // The others of that part's threads are not late in the other parts.
  EXPECT_NE(c.Of("imbalance").role, "lm_head");
  // On a CPU that is slow everywhere it is nobody's in particular.
  Case slow;
  for (Part& part : slow.account.parts) Case::Take(part, part.floor_ns, part.floor_ns * 1.1, part.floor_ns, 1);
  slow.account.threads = {{9e6, 0.9e6, 30e3, 1000}, {9.9e6, 0, 30e3, 1000}};
  cause = slow.Finding();
  EXPECT_EQ(cause.kind, "imbalance");
  EXPECT_EQ(cause.role, "");
}

TEST(WhyTest, MoreLaunchesThanTablesAreAToll) {
  Case c;
  c.Down().steps = 28 * 20;
  c.Down().release_ns = 200e3;
  Case::Take(c.Down(), 6.5e6, 6.5e6, 6.5e6, 2.5e6);
  for (ThreadTime& thread : c.account.threads) thread.barrier_ns = 230e3;
  const Cause cause = c.Finding();
  EXPECT_EQ(cause.kind, "toll");
  EXPECT_NEAR(cause.recoverable_ns, 0.95 * 700e3, 1);
}

TEST(WhyTest, FormatsOfOneRoleAreOneFinding) {
  Case c;
  for (const char* format : {"Q4_K", "Q6_K"}) {
    c.AddPart("attn_qo", 28, 1e6);
    c.account.parts.back().format = format;
    Case::Take(c.account.parts.back(), 1.15e6, 1.15e6, 1.15e6, 0.4e6);
  }
  EXPECT_EQ(c.Finding().role, "attn_qo");
  EXPECT_NEAR(FindingOf(c.account)->recoverable_ns, 300e3, 1);
}

TEST(WhyTest, BarriersThatTakeLongerThanAlone) {
  Case c;
  for (ThreadTime& thread : c.account.threads) thread.barrier_ns = 400e3;
  const Cause cause = c.Finding();
  EXPECT_EQ(cause.kind, "barrier");
  EXPECT_NEAR(cause.recoverable_ns, 370e3, 1);
}

TEST(WhyTest, WhatTheSystemTakes) {
  Case c;
  c.facts.throttled_share = 0.1;
  EXPECT_EQ(c.Finding().kind, "throttled");
  c.facts.throttled_share = 0;
  c.facts.reference_gb_s = 60;
  EXPECT_EQ(c.Finding().kind, "none") << "a slow memory alone is no other process's";
  c.facts.other_cpus = 0.9;
  EXPECT_EQ(c.Finding().kind, "taken");
  EXPECT_NEAR(c.Finding().recoverable_ns, 1.5e6, 1);
  c.facts.throttled_share =
      0.1;  // the probe's threads are stopped, too: that its reading is low says nothing of others
  EXPECT_EQ(c.Of("taken").kind, "none");
  EXPECT_EQ(c.Finding().kind, "throttled");
}

TEST(WhyTest, WhatThePlanSaysOfItsTables) {
  Case c;
  c.plans = {{.role = "ffn_down", .format = "Q4_K", .geometry = "scales=packed", .dot = "fma", .best_dot = "dot4"}};
  c.Down().stored_bytes = c.Down().bytes * 3 / 2;
  EXPECT_NEAR(c.Of("bytes").recoverable_ns, 3e6, 10);
  Case::Take(c.Down(), 8e6, 8e6, 8e6, 7.5e6);
  EXPECT_EQ(c.Of("unit").lever, "knob dot=dot4, without --isa");
  c.plans[0].words_instructions = 0.8;
  c.plans[0].words_growth = 1;
  EXPECT_NEAR(c.Of("scales").recoverable_ns, 1.5e6, 1);
  EXPECT_EQ(c.Of("scales").lever, "knob scales=words");
}

TEST(WhyTest, SmallCallsNameRoutesThatAreOff) {
  Case c;
  Part rope{.role = "rope", .format = "F32", .cause = {}};
  rope.calls = rope.steps = 28;
  rope.floor_ns = 1000;
  rope.now_ns = 300e3;
  rope.excess_ns = 299e3;
  c.account.parts.push_back(rope);
  EXPECT_EQ(c.Finding().kind, "small");
  EXPECT_NE(c.Of("small").lever.find("every route"), std::string::npos);
  c.facts.idle_routes = {"some-route"};
  EXPECT_EQ(c.Of("small").lever, "--with some-route");
}

TEST(WhyTest, EveryKindHasAMeaning) {
  std::set<std::string_view> kinds;
  for (const CauseKind& kind : CauseKinds()) {
    EXPECT_FALSE(kind.meaning.empty());
    kinds.insert(kind.kind);
  }
  for (const char* kind : {"compute", "rate", "memory", "toll", "small", "imbalance", "barrier", "boundary", "bytes",
                           "scales", "unit", "throttled", "taken"}) {
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
}

}  // namespace
}  // namespace boltbeam::audit
