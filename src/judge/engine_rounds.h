// Rounds of two engines in one process: the windows that the paired protocol asks for.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <unordered_set>
#include <vector>

#include "engine/engine.h"
#include "judge/metered_session.h"
#include "judge/thread_meter.h"
#include "measure/clock.h"
#include "measure/paired.h"

namespace boltbeam::judge {

/// What happened in all windows together.
struct WindowChecks {
  measure::Counters counters;
  double wall_ns = 0;
};

class EngineRounds final : public measure::RoundSource {
 public:
  struct Setting {
    engine::Session* a = nullptr;
    engine::Session* b = nullptr;  // both stand at one depth
    measure::Clock clock;
    std::uint32_t vocabulary = 0;
    std::uint32_t window_tokens = 1;
    std::function<double()> limit;  // a reading of the chip's limit; empty: none
    std::uint64_t seed = 1;
  };
  explicit EngineRounds(Setting setting);

  Result<measure::PairedRound> Next(bool b_first) override;
  [[nodiscard]] const WindowChecks& checks() const { return checks_; }

 private:
  static constexpr std::size_t kPrints = 16;
  /// What a window's tokens gave: of all but the last the best token and a few logits.
  struct Output {
    std::vector<std::int32_t> best;
    std::vector<std::array<float, kPrints>> prints;
    std::vector<float> logits;  // of the last token
    std::uint64_t hash = 0;
  };
  struct Side {
    explicit Side(engine::Session& session) : metered(session) {}
    MeteredSession metered;
    std::uint64_t charged = 0;  // of the meter's ticks: inside a timer, or charged to a window
    std::unordered_set<std::uint64_t> seen;
  };

  Result<measure::TimedWindow> Window(Side& side, Output& output);
  Result<void> LearnThreads();
  Result<std::span<const float>> ComputeTokens(Side& side, Output& output);
  Result<void> CheckDepth(const Side& side, std::uint64_t expected) const;
  static double Difference(const Output& a, const Output& b);
  void DrawTokens();
  measure::Causes CausesOf(const measure::Counters& before, const measure::Counters& after, std::uint64_t begin_ns);

  Setting s_;
  Side a_, b_;
  measure::CounterReader counters_;
  measure::StealWatch steal_;
  std::mt19937_64 random_;
  std::uint64_t begin_ns_;
  std::uint64_t depth_;
  std::uint64_t rounds_ = 0;
  ThreadMeter threads_;
  std::vector<std::int32_t> tokens_;             // of this pair of windows
  std::set<std::vector<std::int32_t>> drawn_;    // of all pairs
  bool are_new_ = false;                         // tokens_ are not those of an earlier pair
  std::array<std::size_t, kPrints> print_at_{};  // which logits are looked at in this pair
  std::array<Output, 2> outputs_;                // of A and of B in this pair
  WindowChecks checks_;
};

/// How many tokens make a window of at least 5 ms, at most 32: of the slower of the two sides, after a warm-up.
Result<std::uint32_t> ChooseWindow(engine::Session& a, engine::Session& b, std::uint32_t vocabulary,
                                   const measure::Clock& clock);

inline constexpr std::uint32_t kMostWindowTokens = 32;

}  // namespace boltbeam::judge
