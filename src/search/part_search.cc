#include "search/part_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "base/ticks.h"
#include "search/refine.h"
#include "search/tie_break.h"

namespace boltbeam::search {
namespace {

constexpr double kEven = 1.003;  // so near to the best: not told apart by what was timed
// While the memory is slow it hides what candidates compute, and chance decides who stays in: whoever may be as fast is
// asked, too.
constexpr double kMayBeEven = 1.02;
constexpr std::size_t kMostAgain = 4;

std::vector<TrialKey> KeysOf(const std::vector<Contender>& contenders) {
  std::vector<TrialKey> keys;
  for (const Contender& contender : contenders) keys.push_back({contender.name, contender.code, contender.stream});
  return keys;
}

std::vector<double> WindowsOf(const HalvingResult& result, std::size_t candidate) {
  std::vector<double> windows;
  for (const Sweep& sweep : result.sweeps) {
    if (!std::isnan(sweep.ns[candidate])) windows.push_back(sweep.ns[candidate]);
  }
  return windows;
}

double MedianNs(const HalvingResult& result, std::size_t candidate) {
  const std::vector<double> windows = WindowsOf(result, candidate);
  return windows.empty() ? 0 : measure::Median(windows);
}

Trial TrialOf(const Contender& contender, std::string why) {
  Trial trial;
  trial.geometry = contender.geometry;
  trial.name = contender.name;
  trial.why = std::move(why);
  return trial;
}

class Search {
 public:
  Search(const PartInput& input, const kernel::VectorFacts& facts, TimingBench& bench, runtime::KernelCache& kernels,
         TrialMemory& memory, const PartRules& rules, const PartHooks& hooks)
      : input_(input),
        bench_(bench),
        kernels_(kernels),
        memory_(memory),
        rules_(rules),
        hooks_(hooks),
        gate_(input.rows, facts, kernels),
        foresight_(input.foresight),
        reader_(input.part, kernels.target()) {
    found_.part = input.part;
    found_.legal = input.legal.size();
    found_.predicted = input.foresight.survivors.size();
    found_.start = found_.best = input.start;
  }

  Result<PartSearch> Run() {
    const std::uint64_t begin = base::MonotonicNs(), windows = bench_.windows();
    BOLTBEAM_ASSIGN(const bool is_known, Recall());
    if (is_known) {
      found_.seconds = base::SecondsSince(begin);
      return std::move(found_);
    }
    BOLTBEAM_TRY(ReadCode());
    const std::size_t beside = std::min(rules_.neighbours, rules_.most_timed / 2);
    BOLTBEAM_TRY(Stage(First(rules_.most_timed - beside)));
    if (beside > 0) {
      std::vector<kernel::GemvGeometry> tried;
      for (const Trial& trial : found_.trials) tried.push_back(trial.geometry);
      std::vector<kernel::GemvGeometry> untried;
      std::ranges::copy_if(input_.legal, std::back_inserter(untried), [&](const kernel::GemvGeometry& point) {
        return std::ranges::find(tried, point) == tried.end();
      });
      std::vector<kernel::GemvGeometry> points = Neighbours(found_.best, untried, beside);
      if (!points.empty()) {
        again_ = NotClearlySlower();
        points.insert(points.begin(), again_.begin(), again_.end());
        points.insert(points.begin(), found_.best);
        BOLTBEAM_TRY(Stage(points));
      }
    }
    BOLTBEAM_TRY(SettleChoice());
    found_.windows = bench_.windows() - windows;
    found_.seconds = base::SecondsSince(begin);
    return std::move(found_);
  }

 private:
  /// What a finished search chose from the same points in place of the same start, if its machine code is the same.
  Result<bool> Recall() {
    const std::string start = CandidateName(input_.start);
    const std::string chosen = memory_.ChosenFor(input_.part, start, input_.legal.size());
    const auto point = std::ranges::find(input_.legal, chosen, CandidateName);
    if (point == input_.legal.end()) return false;
    BOLTBEAM_ASSIGN(const std::vector<Contender> ready, MakeReady({*point}));
    if (ready.empty()) return false;
    BOLTBEAM_ASSIGN(const std::optional<Settled> settled, memory_.Find(input_.part, {chosen, ready.front().code}));
    contenders_.clear();
    if (!settled) return false;
    found_.best = *point;
    found_.gain = settled->ratio;
    found_.best_ns = settled->ns;
    found_.start_ns = settled->ns / settled->ratio.estimate;
    found_.remembered = 1;
    Trial trial = TrialOf(ready.front(), settled->reason);
    trial.fate = Trial::Fate::kBest;
    trial.ratio = {1, 1, 1};
    trial.ns = settled->ns;
    trial.windows = settled->windows;
    trial.is_remembered = true;
    found_.trials.push_back(std::move(trial));
    return true;
  }

  /// Of the most promising ones, before any is chosen.
  Result<void> ReadCode() {
    const std::uint64_t begin = base::MonotonicNs();
    const std::vector<kernel::GemvGeometry> points = FirstSurvivors(foresight_, rules_.refined);
    if (hooks_.progress) hooks_.progress(fmt::format("what {} compile to", points.size()), "what runs now");
    BOLTBEAM_TRY(Refine(foresight_, input_.part, input_.chip, bench_.threads(), input_.coefficients, reader_, points,
                        rules_.compilers));
    found_.compile_seconds += base::SecondsSince(begin);
    return {};
  }

  /// The part's last word: the gain of the chosen one over the start, through all stages.
  Result<void> SettleChoice() {
    const auto chosen = std::ranges::find(contenders_, found_.best, &Contender::geometry);
    const auto trial = std::ranges::find(found_.trials, found_.best, &Trial::geometry);
    if (chosen == contenders_.end() || trial == found_.trials.end()) return {};
    Settled settled;
    settled.is_best = true;
    settled.ratio = found_.gain;
    if (has_all_stages_) settled.stages = stages_;
    settled.against = CandidateName(input_.start);
    settled.reason = fmt::format("chosen for {}", input_.part.table);
    settled.ns = trial->ns;
    settled.windows = trial->windows;
    settled.legal = input_.legal.size();
    return memory_.Settle(input_.part, {chosen->name, chosen->code}, settled);
  }

  /// The start and the most promising ones.
  std::vector<kernel::GemvGeometry> First(std::size_t count) const {
    std::vector<kernel::GemvGeometry> points{input_.start};
    for (const kernel::GemvGeometry& point : PredictedFirst(foresight_, count)) {
      if (points.size() < count && !(point == input_.start)) points.push_back(point);
    }
    return points;
  }

  /// Of those timed: who was out after few windows and may yet be the best is asked once more, beside the neighbours.
  [[nodiscard]] std::vector<kernel::GemvGeometry> NotClearlySlower() const {
    std::vector<const Trial*> open;
    for (const Trial& trial : found_.trials) {
      if (trial.fate == Trial::Fate::kEven && trial.ratio.low <= 1) open.push_back(&trial);
    }
    std::ranges::stable_sort(open, {}, [](const Trial* trial) { return trial->ratio.estimate; });
    std::vector<kernel::GemvGeometry> points;
    for (const Trial* trial : open | std::views::take(kMostAgain)) points.push_back(trial->geometry);
    return points;
  }

  [[nodiscard]] const Prediction* PredictionOf(const kernel::GemvGeometry& geometry) const {
    const auto found = std::ranges::find(foresight_.survivors, geometry, &Prediction::geometry);
    return found == foresight_.survivors.end() ? nullptr : &*found;
  }

  /// Times points against the first of them, the control, which was best so far.
  Result<void> Stage(const std::vector<kernel::GemvGeometry>& points) {
    BOLTBEAM_ASSIGN(std::vector<Contender> ready, MakeReady(points));
    if (ready.empty()) {
      return Fail(Code::kKernelIllegal, input_.part.table, "the kernel that runs it now is wrong or can't be compiled",
                  "a start whose kernels pass `kernel check`");
    }
    // Complete rounds of exactly these are replayed; else only who is not known is timed.
    bool is_all_known = false;
    if (memory_.Rounds(input_.part, KeysOf(ready)).empty()) BOLTBEAM_TRY(LeaveOutKnown(ready, is_all_known));
    if (is_all_known) return {};
    BOLTBEAM_TRY(WritePredictions(ready));
    bool is_remembered = false;
    BOLTBEAM_ASSIGN(const HalvingResult result,
                    TimeContenders(input_.part, ready, bench_, memory_, rules_.halving, hooks_, is_remembered));
    std::size_t best = result.order.front();
    BOLTBEAM_TRY(BreakTie(ready, result, is_remembered, best));
    return Conclude(ready, result, best, is_remembered);
  }

  Result<std::vector<Contender>> MakeReady(const std::vector<kernel::GemvGeometry>& points) {
    const std::uint64_t begin = base::MonotonicNs();
    BOLTBEAM_ASSIGN(const std::vector<Made> made,
                    MakeContenders(input_.part, points, gate_, kernels_, rules_.compilers, contenders_));
    found_.compile_seconds += base::SecondsSince(begin);
    std::vector<Contender> ready;
    for (const Made& one : made) {
      if (one.state == Made::State::kReady) {
        ready.push_back(one.contender);
        ready.back().stream = reader_.Of(one.contender.geometry);
        const bool is_known = std::ranges::find(contenders_, one.contender.name, &Contender::name) != contenders_.end();
        if (!is_known) contenders_.push_back(one.contender);
        continue;
      }
      Trial trial = TrialOf(one.contender, one.why);
      trial.fate = Trial::Fate::kDuplicate;
      if (one.state == Made::State::kFailed) trial.fate = Trial::Fate::kFailed;
      if (one.state == Made::State::kWrong) {
        trial.fate = Trial::Fate::kWrong;
        BOLTBEAM_TRY(memory_.SettleWrong(input_.part, {one.contender.name, one.contender.code}, one.why));
      }
      found_.trials.push_back(std::move(trial));
      if (one.contender.geometry == points.front()) return std::vector<Contender>();
    }
    return ready;
  }

  /// Leaves the control, whoever was best of all before, those to be timed again, and those of which nothing is known.
  Result<void> LeaveOutKnown(std::vector<Contender>& ready, bool& is_all_known) {
    std::vector<Contender> kept;
    std::vector<Trial> known;
    bool is_control_known = false;
    std::size_t unknown = 0;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      BOLTBEAM_ASSIGN(const std::optional<Settled> settled, memory_.Find(input_.part, {ready[i].name, ready[i].code}));
      if (!settled) {
        kept.push_back(ready[i]);
        unknown += i == 0 ? 0 : 1;
        continue;
      }
      if (i == 0) is_control_known = true;
      const bool is_again = std::ranges::find(again_, ready[i].geometry) != again_.end();
      if (i == 0 || settled->is_best || is_again) kept.push_back(ready[i]);
      Trial trial = TrialOf(ready[i], settled->reason);
      trial.fate = settled->is_best      ? Trial::Fate::kBest
                   : settled->is_refuted ? Trial::Fate::kSlower
                                         : Trial::Fate::kEven;
      trial.ratio = settled->ratio;
      trial.ns = settled->ns;
      trial.is_remembered = true;
      known.push_back(std::move(trial));
    }
    is_all_known = unknown == 0 && is_control_known;
    for (Trial& trial : known) {
      const bool is_timed_again = !is_all_known && std::ranges::find(kept, trial.name, &Contender::name) != kept.end();
      if (is_timed_again) continue;
      ++found_.remembered;
      if (trial.fate == Trial::Fate::kBest && is_all_known) {
        found_.best = trial.geometry;
        found_.best_ns = trial.ns;
        found_.gain = Product(found_.gain, trial.ratio);
        has_all_stages_ = false;
      }
      if (trial.geometry == input_.start) found_.start_ns = trial.ns;
      found_.trials.push_back(std::move(trial));
    }
    ready = std::move(kept);
    return {};
  }

  Result<void> WritePredictions(const std::vector<Contender>& ready) {
    if (!memory_.Rounds(input_.part, KeysOf(ready)).empty()) return {};
    for (const Contender& contender : ready) {
      if (const Prediction* prediction = PredictionOf(contender.geometry)) {
        BOLTBEAM_TRY(memory_.Predict(input_.part, *prediction));
      }
    }
    return {};
  }

  /// Who is as fast as the best, or may be, is told apart by what a faster memory would show; a search that is replayed
  /// takes what was settled then.
  Result<void> BreakTie(const std::vector<Contender>& ready, const HalvingResult& result, bool is_remembered,
                        std::size_t& best) {
    std::vector<std::size_t> even;
    for (const std::size_t candidate : result.order) {
      const measure::Interval& ratio = result.ratio[candidate];
      const bool is_even = result.rounds[candidate] == result.rounds[best] && ratio.estimate <= kEven;
      if (is_even || (ratio.low <= 1 && ratio.estimate <= kMayBeEven)) even.push_back(candidate);
    }
    if (even.size() < 2) return {};
    if (is_remembered) {
      for (const std::size_t candidate : even) {
        BOLTBEAM_ASSIGN(const std::optional<Settled> settled,
                        memory_.Find(input_.part, {ready[candidate].name, ready[candidate].code}));
        if (settled && settled->is_best) best = candidate;
      }
      return {};
    }
    const double best_ns = MedianNs(result, best);
    std::vector<const Contender*> contenders;
    std::vector<double> now_ns;
    for (const std::size_t candidate : even) {
      contenders.push_back(&ready[candidate]);
      now_ns.push_back(best_ns * result.ratio[candidate].estimate);
    }
    BOLTBEAM_ASSIGN(const std::size_t fastest, FastestOfEven(contenders, now_ns, bench_, hooks_.cancelled));
    best = even[fastest];
    return {};
  }

  Result<void> Conclude(const std::vector<Contender>& ready, const HalvingResult& result, std::size_t best,
                        bool is_remembered) {
    const bool is_first = found_.best == input_.start;
    PairedWindows gain = result.pairs.front();  // the control's windows
    gain.is_inverse = true;
    if (is_first) found_.start_ns = MedianNs(result, 0);
    for (std::size_t i = 0; i < ready.size(); ++i) {
      Trial trial = TrialOf(ready[i], "");
      trial.ratio = result.ratio[i];
      trial.ns = MedianNs(result, i);
      trial.windows = WindowsOf(result, i).size();
      trial.is_remembered = is_remembered;
      if (const Prediction* prediction = PredictionOf(trial.geometry)) trial.predicted_ns = prediction->ns;
      const bool is_slower = trial.ratio.low > 1 && trial.ratio.estimate > 1 + rules_.claim;
      trial.fate = i == best ? Trial::Fate::kBest : is_slower ? Trial::Fate::kSlower : Trial::Fate::kEven;
      Settled settled;
      settled.is_best = i == best;
      settled.is_refuted = is_slower && i != best;
      settled.stages = {i == best ? gain : result.pairs[i]};
      settled.ratio = i == best ? gain.Ratio() : trial.ratio;
      settled.against = i == best ? ready.front().name : ready[best].name;
      settled.ns = trial.ns;
      settled.windows = trial.windows;
      settled.reason = i == best   ? fmt::format("the fastest of {} of {}", ready.size(), input_.part.table)
                       : is_slower ? fmt::format("slower by {:.1f} % than the best", (trial.ratio.estimate - 1) * 100)
                                   : fmt::format("within {:.0f} % of the best", rules_.claim * 100);
      trial.why = settled.reason;
      (is_remembered ? found_.remembered : found_.timed) += IsNew(trial) ? 1 : 0;
      BOLTBEAM_ASSIGN(const std::optional<Settled> known, memory_.Find(input_.part, {ready[i].name, ready[i].code}));
      if (!is_remembered || !known) BOLTBEAM_TRY(memory_.Settle(input_.part, {ready[i].name, ready[i].code}, settled));
      Keep(std::move(trial));
    }
    if (best == 0) return {};
    stages_.push_back(std::move(gain));
    found_.gain = Product(found_.gain, stages_.back().Ratio());
    found_.best = ready[best].geometry;
    found_.best_ns = MedianNs(result, best);
    return {};
  }

  [[nodiscard]] bool IsNew(const Trial& trial) const {
    return std::ranges::find(found_.trials, trial.name, &Trial::name) == found_.trials.end();
  }
  /// The last stage's word counts.
  void Keep(Trial trial) {
    const auto known = std::ranges::find(found_.trials, trial.name, &Trial::name);
    if (known != found_.trials.end()) {
      *known = std::move(trial);
    } else {
      found_.trials.push_back(std::move(trial));
    }
  }

  const PartInput& input_;
  TimingBench& bench_;
  runtime::KernelCache& kernels_;
  TrialMemory& memory_;
  const PartRules& rules_;
  const PartHooks& hooks_;
  ProductGate gate_;
  Foresight foresight_;
  CodeReader reader_;
  std::vector<PairedWindows> stages_;        // that the gain follows from
  bool has_all_stages_ = true;               // no part of it was remembered
  std::vector<Contender> contenders_;        // all that were ready
  std::vector<kernel::GemvGeometry> again_;  // timed in the first stage, and once more in the second
  PartSearch found_;
};

}  // namespace

Result<PartSearch> SearchPart(const PartInput& input, const kernel::VectorFacts& facts, TimingBench& bench,
                              runtime::KernelCache& kernels, TrialMemory& memory, const PartRules& rules,
                              const PartHooks& hooks) {
  return Search(input, facts, bench, kernels, memory, rules, hooks).Run();
}

Result<HalvingResult> TimeContenders(const Part& part, const std::vector<Contender>& contenders, TimingBench& bench,
                                     TrialMemory& memory, const HalvingRules& rules, const PartHooks& hooks,
                                     bool& is_remembered) {
  const std::vector<TrialKey> keys = KeysOf(contenders);
  std::vector<Sweep> past = memory.Rounds(part, keys);
  is_remembered = std::ranges::any_of(past, [](const Sweep& sweep) { return sweep.round == kFinalRound; });
  HalvingHooks halving;
  halving.cancelled = hooks.cancelled;
  if (hooks.progress) {
    halving.progress = [&](std::size_t candidate, std::size_t best) {
      hooks.progress(contenders[candidate].name, contenders[best].name);
    };
  }
  halving.round_done = [&](std::size_t round, const std::vector<Sweep>& sweeps) {
    return memory.AddRound(part, keys, round, sweeps, bench.ReadRate());
  };
  BenchStopwatch stopwatch(bench, contenders);
  const runtime::Pin pin(bench.first_cpu());
  return RunHalving(contenders.size(), rules, stopwatch, std::move(past), halving);
}

}  // namespace boltbeam::search
