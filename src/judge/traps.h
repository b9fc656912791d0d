// Test support: a side that is honest or sets a trap, and a comparison of it with an honest one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "chip/facts.h"
#include "judge/engine_rounds.h"
#include "judge/judge.h"
#include "measure/fake_engine.h"
#include "runtime/thread_pool.h"
#include "test_model.h"

namespace boltbeam::judge {

enum class Trap : std::uint8_t {
  kNone,
  kRounds,           // honest, and its sums are in another order
  kSkipsWork,        // leaves the last token out of the sum, and is faster for it
  kReusesOutput,     // gives again what it gave at this depth before
  kDefersWork,       // works when the timer has stopped: when it is told to go back
  kDefersToDepth,    // when it is asked where it stands
  kDefersToThread,   // in a thread of its own that nobody waits for
  kDefersLate,       // in one that sleeps first, until the other side's timer runs
  kDefersToEnding,   // in a thread for each token, which ends
  kDefersSometimes,  // only in every fourth window, but then all of it
  kCheatsTimed,      // skips work in timed windows only
  kRoundsAndCheats,  // the same, where its sums are in another order
  kNearlyTimed,      // in timed windows of several tokens only the last one's logits are right
  kRemembers,        // computes what follows a context once only
  kFellBack,         // the plan names the route, and its step never runs
  kUnsteady,         // other bits every time
};

inline constexpr std::size_t kLogits = 8;
inline constexpr std::uint64_t kTokenNs = 30'000;
inline bool are_timed = false;  // what a cheat may guess: windows have begun

inline void Burn(std::uint64_t ns) {
  const std::uint64_t begin = base::MonotonicNs();
  while (base::MonotonicNs() < begin + ns) {
  }
}

// Does in a thread of its own what it was given, when nothing more has come for a while.
class Worker {
 public:
  explicit Worker(std::chrono::nanoseconds patience) : patience_(patience) {}
  ~Worker() {
    if (!thread_.joinable()) return;
    stop_ = true;
    Add(1);
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  void Add(std::uint64_t ns) {
    queued_ += ns;
    queued_.notify_one();
    if (!thread_.joinable()) thread_ = std::thread([this] { Go(); });
  }

 private:
  void Go() {
    while (!stop_) {
      queued_.wait(0);
      for (std::uint64_t seen = 0; seen != queued_; std::this_thread::sleep_for(patience_)) seen = queued_;
      Burn(queued_.exchange(0));
    }
  }
  const std::chrono::nanoseconds patience_;
  std::atomic<std::uint64_t> queued_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// How a side works.
struct Manner {
  Trap trap = Trap::kNone;
  std::uint64_t token_ns = kTokenNs;
  double put_off = 1;                   // share of the work, where it is put off
  runtime::ThreadPool* pool = nullptr;  // whose threads all work; none: the caller alone
};

class TrapSession final : public measure::FakeSession {
 public:
  TrapSession(const Manner& manner, std::size_t steps)
      : manner_(manner), trap_(manner.trap), steps_(steps), worker_(Patience(manner)) {}

  std::uint64_t depth() const override {
    if (trap_ == Trap::kDefersToDepth) PayDebt();
    return FakeSession::depth();
  }
  Result<void> Decode(std::int32_t token, engine::Trace* stamps) override {
    if (stamps != nullptr) stamps->token_begin = base::Ticks();
    const std::uint64_t windows = truncations;
    BOLTBEAM_TRY(FakeSession::Decode(token, nullptr));
    Work(windows);
    const std::uint64_t depth = context.size();
    if (trap_ == Trap::kReusesOutput && stored_.contains(depth)) {
      logits_ = stored_[depth];
    } else {
      Compute();
      stored_[depth] = logits_;
    }
    if (stamps == nullptr) return {};
    stamps->step_begin.assign(1, std::vector<std::uint64_t>(steps_, stamps->token_begin));
    stamps->step_end.assign(1, std::vector<std::uint64_t>(steps_, base::Ticks()));
    if (trap_ == Trap::kFellBack) stamps->step_begin[0].back() = stamps->step_end[0].back() = 0;
    return {};
  }
  Result<void> Truncate(std::uint64_t depth) override {
    if (trap_ == Trap::kDefersWork || trap_ == Trap::kDefersSometimes) PayDebt();
    return FakeSession::Truncate(depth);
  }
  std::span<const float> logits() const override { return logits_; }
  std::int32_t argmax() const override {
    return static_cast<std::int32_t>(std::ranges::max_element(logits_) - logits_.begin());
  }

 private:
  // Longer than a token: what is put off isn't done between two of them, inside the timer.
  static std::chrono::nanoseconds Patience(const Manner& manner) {
    constexpr std::chrono::nanoseconds kLate(1'000'000), kLeast(100'000);
    const std::chrono::nanoseconds patience = kLeast + 3 * std::chrono::nanoseconds(manner.token_ns);
    return manner.trap == Trap::kDefersLate ? std::max(kLate, patience) : patience;
  }
  void PayDebt() const { Burn(std::exchange(owed_, 0)); }
  void Work(std::uint64_t windows) {
    constexpr std::uint64_t kOneIn = 4;
    const bool cheats =
        trap_ == Trap::kSkipsWork ||
        (are_timed && (trap_ == Trap::kCheatsTimed || trap_ == Trap::kRoundsAndCheats || trap_ == Trap::kNearlyTimed));
    const bool defers = are_timed && (IsAnyOf({Trap::kDefersWork, Trap::kDefersToDepth, Trap::kDefersToThread,
                                               Trap::kDefersLate, Trap::kDefersToEnding}) ||
                                      (trap_ == Trap::kDefersSometimes && windows % kOneIn == 0));
    if (trap_ == Trap::kRemembers && !remembered_.insert(context).second) return;
    const auto later = defers ? static_cast<std::uint64_t>(manner_.put_off * static_cast<double>(manner_.token_ns)) : 0;
    Together(cheats ? manner_.token_ns / 2 : manner_.token_ns - later);
    if (later == 0) return;
    if (IsAnyOf({Trap::kDefersToThread, Trap::kDefersLate})) {
      worker_.Add(later);
    } else if (trap_ == Trap::kDefersToEnding) {
      std::thread([later] { Burn(later); }).detach();
    } else {
      owed_ += later;
    }
  }
  bool IsAnyOf(std::initializer_list<Trap> traps) const { return std::ranges::find(traps, trap_) != traps.end(); }
  void Together(std::uint64_t ns) const {
    if (manner_.pool == nullptr) return Burn(ns);
    manner_.pool->Run([ns](std::uint32_t) { Burn(ns); });
  }
  void Compute() {
    const bool skips =
        trap_ == Trap::kSkipsWork || (are_timed && (trap_ == Trap::kCheatsTimed || trap_ == Trap::kRoundsAndCheats));
    const std::size_t used = context.size() - (skips ? 1 : 0);
    std::uint64_t state = trap_ == Trap::kUnsteady ? decoded : 1;
    for (std::size_t i = 0; i < used; ++i)
      state = state * 6364136223846793005U + static_cast<std::uint64_t>(context[i]);
    // In a window of 32 tokens after a context of none or eight: whatever is not the last.
    const bool is_unread = context.size() != 32 && context.size() != 40;
    if (trap_ == Trap::kNearlyTimed && are_timed && is_unread) state ^= 1;
    for (float& logit : logits_) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      logit = static_cast<float>(state >> 40) / 1e6F;
      if (trap_ == Trap::kRounds || trap_ == Trap::kRoundsAndCheats) logit *= 1 + static_cast<float>(state % 7) * 1e-4F;
    }
  }

  Manner manner_;
  Trap trap_;
  std::size_t steps_;
  mutable std::uint64_t owed_ = 0;
  std::vector<float> logits_ = std::vector<float>(kLogits);
  std::map<std::uint64_t, std::vector<float>> stored_;
  std::set<std::vector<std::int32_t>> remembered_;
  Worker worker_;
};

class TrapEngine final : public measure::FakeEngine {
 public:
  TrapEngine(model::Model model, const Manner& manner, std::map<std::string_view, std::uint32_t> uses, std::string plan,
             std::uint32_t threads = 1)
      : FakeEngine(std::move(model)), manner_(manner), uses_(std::move(uses)), plan_(std::move(plan)) {
    engine_options.threads = threads;
    if (threads > 1) {
      std::vector<int> cpus = chip::UsableCpus();
      cpus.resize(threads, cpus.front());
      pool_ = runtime::ThreadPool::Create(cpus).value();
      manner_.pool = pool_.get();
    }
    step_list.resize(2);
    step_list[0].kernel = "product";
    step_list[1].kernel = "fused";
  }
  const std::map<std::string_view, std::uint32_t>& route_uses() const override { return uses_; }
  std::string plan_id() const override { return plan_; }
  Result<std::unique_ptr<engine::Session>> NewSession() override {
    return std::make_unique<TrapSession>(manner_, step_list.size());
  }

 private:
  Manner manner_;
  std::map<std::string_view, std::uint32_t> uses_;
  std::string plan_;
  std::unique_ptr<runtime::ThreadPool> pool_;
};

// A slow plan without the route "fusion" against one with it; tests change what they are about.
class TrapTest : public testing::Test {
 protected:
  explicit TrapTest(const std::string& architecture) : file_(architecture), path_(file_.Write()) {
    request_.budget_s = 0.06;
    request_.depths = {0, 8};
  }

  Judgement Judge(Trap trap) {
    TrapEngine a(model::Model::Load(path_).value(), {.token_ns = token_ns_}, {}, "plan a", threads_);
    TrapEngine b(model::Model::Load(path_).value(), {trap, token_ns_ * 3 / 4, put_off_}, uses_b_, plan_b_, threads_);
    const EngineSide side_a{&a, {}, {"fusion"}}, side_b{&b, {}, {}};
    context_.off_switch = "--without fusion";
    context_.off_switch_gives_a = off_switch_gives_a_;
    are_timed = false;
    context_.limit = [rate = limit_] {
      are_timed = true;
      return rate;
    };
    const auto run = CompareEngines(side_a, side_b, context_, request_, thresholds_);
    EXPECT_TRUE(run) << run.error().Message();
    if (!run) return {};
    timed_ = !run->samples.empty();
    return Decide(run->findings, thresholds_);
  }

  // Other programs may spoil some sessions, hardly all of them.
  Judgement JudgeQuietly(Trap trap) {
    constexpr int kTries = 5;
    Judgement judgement = Judge(trap);
    for (int i = 1; i < kTries && IsDisturbed(judgement); ++i) judgement = Judge(trap);
    return judgement;
  }

  static bool IsDisturbed(const Judgement& judgement) { return StateOf(judgement.conditions, kQuiet) == State::kFail; }

  static void ExpectPassed(const Judgement& judgement, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      const auto found = std::ranges::find(judgement.conditions, name, &Condition::name);
      ASSERT_NE(found, judgement.conditions.end()) << name;
      EXPECT_EQ(found->state, State::kPass) << name << ": " << found->detail;
    }
  }

  static void ExpectRefused(const Judgement& judgement, std::string_view by) {
    EXPECT_EQ(StateOf(judgement.conditions, by), State::kFail) << judgement.reason;
    EXPECT_TRUE(judgement.ruling == Ruling::kRefute || judgement.refused) << judgement.reason;
    EXPECT_NE(judgement.reason.find(by), std::string::npos) << judgement.reason;
  }

  model::TestModel file_;
  std::string path_;
  Request request_;
  Thresholds thresholds_ = LoadThresholds().value();
  EngineContext context_;
  std::optional<bool> off_switch_gives_a_ = true;
  double limit_ = 0;
  std::map<std::string_view, std::uint32_t> uses_b_{{"fusion", 28}};
  std::string plan_b_ = "plan b";
  std::uint32_t threads_ = 1;
  std::uint64_t token_ns_ = kTokenNs;  // of A
  double put_off_ = 1;
  bool timed_ = false;
};

/// Rounds of two sessions of the test's model.
inline EngineRounds::Setting SettingOf(engine::Session& a, engine::Session& b) {
  EngineRounds::Setting setting;
  setting.a = &a;
  setting.b = &b;
  setting.clock = measure::GetClock().value();
  setting.vocabulary = 320;
  return setting;
}

}  // namespace boltbeam::judge
