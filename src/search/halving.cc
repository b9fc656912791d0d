#include "search/halving.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>

namespace boltbeam::search {
namespace {

constexpr double kNotTimed = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kControl = 0;

class Halving {
 public:
  Halving(std::size_t candidates, const HalvingRules& rules, Stopwatch& stopwatch, std::vector<Sweep> past,
          const HalvingHooks& hooks)
      : candidates_(candidates), rules_(rules), stopwatch_(stopwatch), hooks_(hooks), lots_(rules.seed) {
    result_.sweeps = std::move(past);
    result_.rounds.assign(candidates, 0);
    in_.resize(candidates);
    std::iota(in_.begin(), in_.end(), std::size_t{0});
  }

  Result<HalvingResult> Run() {
    std::size_t round = 0;
    const std::size_t last = std::max<std::size_t>(2, rules_.finalists);
    for (; in_.size() > last || round == 0; ++round) {
      BOLTBEAM_TRY(Round(round, rules_.sweeps[std::min(round, rules_.sweeps.size() - 1)]));
      Keep(std::max(last, (in_.size() + 1) / 2));
      if (in_.size() <= last) break;
    }
    stopwatch_.Refresh();
    BOLTBEAM_TRY(Round(kFinalRound, rules_.final_sweeps));
    Finish();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool Has(std::size_t candidate) const { return std::ranges::find(in_, candidate) != in_.end(); }

  Result<void> Round(std::size_t round, std::size_t sweeps) {
    for (const std::size_t candidate : in_) ++result_.rounds[candidate];
    std::vector<Sweep> timed;
    std::ranges::copy_if(result_.sweeps, std::back_inserter(timed),
                         [&](const Sweep& sweep) { return sweep.round == round; });
    if (!timed.empty()) {  // a round that was timed before drops whom it dropped then
      if (round != kFinalRound && timed.size() > 1) DropHopeless({timed[0], timed[1]});
      return {};
    }
    for (std::size_t i = 0; i < sweeps; ++i) {
      BOLTBEAM_ASSIGN(Sweep sweep, OneSweep(round));
      result_.sweeps.push_back(sweep);
      timed.push_back(std::move(sweep));
      if (i == 1 && round != kFinalRound) DropHopeless(timed);
    }
    return hooks_.round_done ? hooks_.round_done(round, timed) : Result<void>{};
  }

  Result<Sweep> OneSweep(std::size_t round) {
    Sweep sweep{round, std::vector<double>(candidates_, kNotTimed)};
    std::vector<std::size_t> order = in_;
    std::ranges::shuffle(order, lots_);
    for (const std::size_t candidate : order) {
      if (hooks_.cancelled && hooks_.cancelled()) return Fail(Code::kInterrupted, "search", "stopped by the user");
      if (hooks_.progress) hooks_.progress(candidate, best_);
      BOLTBEAM_ASSIGN(sweep.ns[candidate], stopwatch_.Window(candidate));
      if (!(sweep.ns[candidate] > 0)) {
        return Fail(Code::kMeasurementImpossible, "search", "a window that took no time", "a clock that goes on");
      }
    }
    return sweep;
  }

  /// Before a round's other sweeps are spent on them.
  void DropHopeless(const std::vector<Sweep>& sweeps) {
    const auto worst = [&](std::size_t candidate) {
      double slowest = 0;
      for (const Sweep& sweep : sweeps) slowest = std::max(slowest, sweep.ns[candidate]);
      return slowest;
    };
    const auto least = [&](std::size_t candidate) {
      double fastest = std::numeric_limits<double>::infinity();
      for (const Sweep& sweep : sweeps) fastest = std::min(fastest, sweep.ns[candidate]);
      return fastest;
    };
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t candidate : in_) best = std::min(best, worst(candidate));
    std::erase_if(
        in_, [&](std::size_t candidate) { return candidate != kControl && least(candidate) > rules_.hopeless * best; });
  }

  /// log of a candidate's time over the mean of those that are in, median over the sweeps that all of them were in.
  [[nodiscard]] double Score(std::size_t candidate) const {
    std::vector<double> logs;
    for (const Sweep& sweep : result_.sweeps) {
      double mean = 0;
      for (const std::size_t other : in_) mean += std::log(sweep.ns[other]);
      const double own = std::log(sweep.ns[candidate]) - mean / static_cast<double>(in_.size());
      if (!std::isnan(own)) logs.push_back(own);
    }
    return measure::Median(logs);
  }

  void Keep(std::size_t count) {
    std::vector<std::pair<double, std::size_t>> scores;
    for (const std::size_t candidate : in_) scores.emplace_back(Score(candidate), candidate);
    std::ranges::sort(scores);
    best_ = scores.front().second;
    std::vector<std::size_t> kept;
    for (const auto& [score, candidate] : scores) {
      const bool has_room = kept.size() + (Has(kControl) && std::ranges::find(kept, kControl) == kept.end() ? 1 : 0) <
                            std::max<std::size_t>(count, 1);
      if (candidate == kControl || has_room) kept.push_back(candidate);
    }
    in_ = kept;
  }

  void Finish() {
    std::vector<std::pair<double, std::size_t>> scores;
    for (const std::size_t candidate : in_) {
      std::vector<double> logs;
      for (const Sweep& sweep : result_.sweeps) {
        if (sweep.round != kFinalRound) continue;
        double mean = 0;
        for (const std::size_t other : in_) mean += std::log(sweep.ns[other]);
        logs.push_back(std::log(sweep.ns[candidate]) - mean / static_cast<double>(in_.size()));
      }
      scores.emplace_back(measure::Median(logs), candidate);
    }
    std::ranges::sort(scores);
    for (const auto& [score, candidate] : scores) result_.order.push_back(candidate);
    best_ = result_.order.front();
    for (std::size_t candidate = 0; candidate < candidates_; ++candidate) {
      result_.pairs.push_back(BesideBest(candidate));
      result_.ratio.push_back(result_.pairs.back().Ratio());
    }
    std::vector<std::size_t> others;
    for (std::size_t candidate = 0; candidate < candidates_; ++candidate) {
      if (!Has(candidate)) others.push_back(candidate);
    }
    std::ranges::stable_sort(others, [&](std::size_t a, std::size_t b) {
      if (result_.rounds[a] != result_.rounds[b]) return result_.rounds[a] > result_.rounds[b];
      return result_.ratio[a].estimate < result_.ratio[b].estimate;
    });
    result_.order.insert(result_.order.end(), others.begin(), others.end());
  }

  /// A finalist's from the fresh data alone: that it got so far flatters what came before.
  [[nodiscard]] PairedWindows BesideBest(std::size_t candidate) const {
    PairedWindows pairs;
    pairs.seed = rules_.seed;
    for (const Sweep& sweep : result_.sweeps) {
      if (std::isnan(sweep.ns[candidate]) || std::isnan(sweep.ns[best_])) continue;
      if (Has(candidate) && sweep.round != kFinalRound) continue;
      pairs.best.push_back(sweep.ns[best_]);
      pairs.own.push_back(sweep.ns[candidate]);
    }
    return pairs;
  }

  const std::size_t candidates_;
  const HalvingRules& rules_;
  Stopwatch& stopwatch_;
  const HalvingHooks& hooks_;
  std::mt19937_64 lots_;
  std::vector<std::size_t> in_;
  std::size_t best_ = kControl;
  HalvingResult result_;
};

}  // namespace

Result<HalvingResult> RunHalving(std::size_t candidates, const HalvingRules& rules, Stopwatch& stopwatch,
                                 std::vector<Sweep> past, const HalvingHooks& hooks) {
  if (candidates == 0 || rules.sweeps.empty()) {
    return Fail(Code::kInternal, "search", "nothing to time", "at least one candidate and one sweep");
  }
  return Halving(candidates, rules, stopwatch, std::move(past), hooks).Run();
}

}  // namespace boltbeam::search
