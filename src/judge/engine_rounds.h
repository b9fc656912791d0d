// Rounds of two engines in one process: the windows that the paired protocol asks for.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "engine/engine.h"
#include "judge/gate.h"
#include "measure/clock.h"
#include "measure/paired.h"

namespace boltbeam::judge {

/// What windows showed beside their times.
struct WindowChecks {
  measure::Counters counters;  // what happened in all of them together
  double wall_ns = 0;
  std::uint64_t windows = 0;
  std::uint64_t differing = 0;               // rounds in which sides that compute the same gave other logits
  std::uint64_t reused = 0;                  // windows of B that ended with the logits of one before, to the last bit
  std::vector<double> untimed_a, untimed_b;  // of each window: time in the session outside the timer, over its time
};

class EngineRounds final : public measure::RoundSource {
 public:
  struct Setting {
    engine::Session* a = nullptr;
    engine::Session* b = nullptr;  // both stand at one depth
    measure::Clock clock;
    std::uint32_t vocabulary = 0;
    std::uint32_t window_tokens = 1;
    bool bitwise = false;           // the sides gave the same bits before
    std::function<double()> limit;  // a reading of the chip's limit; empty: none
    std::uint64_t seed = 1;
  };
  explicit EngineRounds(Setting setting);

  Result<measure::PairedRound> Next(bool b_first) override;
  [[nodiscard]] const WindowChecks& checks() const { return checks_; }

 private:
  struct Timed {
    double ns = 0, untimed_ns = 0;
    std::uint64_t hash = 0;
  };
  Result<Timed> Window(engine::Session& session);
  measure::Causes CausesOf(const measure::Counters& before, const measure::Counters& after, std::uint64_t begin_ns);

  Setting s_;
  measure::CounterReader counters_;
  measure::StealWatch steal_;
  std::mt19937_64 random_;
  std::uint64_t begin_ns_;
  std::uint64_t depth_;
  std::uint64_t rounds_ = 0;
  std::uint64_t last_b_hash_ = 0;
  std::vector<std::int32_t> tokens_;  // of this round: never those of an earlier one
  WindowChecks checks_;
};

/// How many tokens make a window of at least 5 ms, at most 32: of the slower of the two sides, after a warm-up.
Result<std::uint32_t> ChooseWindow(engine::Session& a, engine::Session& b, std::uint32_t vocabulary,
                                   const measure::Clock& clock);

inline constexpr std::uint32_t kMostWindowTokens = 32;

/// The condition `timed_work`.
Condition TimedWork(const std::vector<WindowChecks>& checks, const Thresholds& thresholds);

/// The condition `above_floor`: floors are of a token of A and of B at each depth, from bytes and the probed limit.
struct FloorFinding {
  std::uint64_t depth = 0;
  double a_floor_ns = 0, b_floor_ns = 0, a_ns = 0, b_ns = 0;
};
Condition AboveFloor(const std::vector<FloorFinding>& findings, const Thresholds& thresholds);

}  // namespace boltbeam::judge
