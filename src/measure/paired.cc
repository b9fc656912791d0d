#include "measure/paired.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "measure/signed_rank.h"

namespace boltbeam::measure {
namespace {

constexpr double kControlTail = 0.025;    // of the control's interval, each way
constexpr double kControlFault = 0.0005;  // the control may show a difference with this probability, each way

Interval Exp(const Interval& logs) { return {std::exp(logs.estimate), std::exp(logs.low), std::exp(logs.high)}; }

// What is known of a session so far: the sums that every look needs, kept as rounds come in.
class Evidence {
 public:
  explicit Evidence(std::uint64_t seed) : lots_(seed ^ 0xA5A5A5A5U) {}

  void Add(const PairedRound& round) {
    ++rounds_;
    Causes all;
    for (const TimedWindow& window : round.windows) {
      all |= window.causes;
      if (window.causes.any()) ++spoiled_windows_;
      for (std::size_t cause = 0; cause < window.causes.size(); ++cause) {
        if (window.causes.test(cause)) ++spoiled_[std::string(CauseName(static_cast<Cause>(cause)))];
      }
    }
    if (round.limit > 0) limits_.push_back(round.limit);
    if (all.any()) return;
    contrasts_.push_back(round.LogRatio());
    for (std::size_t i = 0; i < round.windows.size(); ++i) {
      (round.IsB(i) ? b_ : a_).push_back(round.windows[i].ns);
    }
    if (contrasts_.size() % 2 == 0) AddControls();
  }

  /// The used ones; all, once there are so many that the used ones will not come.
  [[nodiscard]] std::size_t RoundsThatCount(std::size_t many) const {
    return rounds_ >= many ? rounds_ : contrasts_.size();
  }
  [[nodiscard]] const std::vector<double>& contrasts() const { return contrasts_; }
  [[nodiscard]] const std::vector<double>& controls() const { return controls_; }

  void Fill(PairedResult& result) const {
    result.rounds = rounds_;
    result.used = contrasts_.size();
    result.spoiled = spoiled_;
    result.spoiled_share = static_cast<double>(spoiled_windows_) / (4 * static_cast<double>(rounds_));
    result.a_ns = Median(a_);
    result.b_ns = Median(b_);
    if (!limits_.empty()) {
      const Summary summary = Summarise(limits_);
      result.limit = summary.median;
      result.limit_spread = summary.RelativeSpread();
    }
  }

 private:
  // Two rounds hold four windows of each side: the middle two of them against the outer two, the sign by lot.
  void AddControls() {
    for (const std::vector<double>* side : {&a_, &b_}) {
      const double* w = side->data() + side->size() - 4;
      const double contrast = (std::log(w[1]) + std::log(w[2]) - std::log(w[0]) - std::log(w[3])) / 2;
      controls_.push_back((lots_() >> 63) != 0 ? contrast : -contrast);
    }
  }

  std::mt19937_64 lots_;
  std::size_t rounds_ = 0, spoiled_windows_ = 0;
  std::vector<double> contrasts_, controls_, a_, b_, limits_;
  std::map<std::string, std::size_t> spoiled_;
};

// The smallest margin that the session's own control allows: half the width of what A may seem to be from A.
double ControlReach(const Interval& control) {
  return std::isnan(control.low) ? std::numeric_limits<double>::infinity() : (control.high - control.low) / 2;
}

double Margin(const Evidence& evidence, const PairedRules& rules) {
  return std::max(std::log1p(rules.margin), ControlReach(HodgesLehmann(evidence.controls(), kControlTail)));
}

struct Look {
  Interval logs;
  double tail = 0, margin = 0;
  bool equivalent = false;
  Outcome outcome = Outcome::kNoDifference;

  [[nodiscard]] bool Decides() const { return equivalent || outcome != Outcome::kNoDifference; }
};

Look LookAt(const Evidence& evidence, const PairedRules& rules, double tail) {
  Look look;
  look.tail = tail;
  look.margin = std::log1p(rules.margin);
  if (evidence.contrasts().empty()) return look;
  look.logs = PairMeans(evidence.contrasts()).Bounds(tail);
  const double same = std::log1p(rules.equivalence);
  look.equivalent = look.logs.low > -same && look.logs.high < same;
  if (look.logs.low <= look.margin && look.logs.high >= -look.margin) return look;
  look.margin = Margin(evidence, rules);
  if (look.logs.low > look.margin) look.outcome = Outcome::kSlower;
  if (look.logs.high < -look.margin) look.outcome = Outcome::kFaster;
  return look;
}

PairedResult Conclude(const Evidence& evidence, const PairedRules& rules, const Look& look) {
  PairedResult result;
  evidence.Fill(result);
  result.outcome = look.outcome;
  result.equivalent = look.equivalent;
  result.tail = look.tail;
  const Interval logs = HodgesLehmann(evidence.contrasts(), look.tail);
  const double margin = Margin(evidence, rules);
  result.ratio = Exp(logs);
  result.margin = std::expm1(margin);
  result.control = Exp(HodgesLehmann(evidence.controls(), kControlTail));
  const double z = -NormalQuantile(look.tail), half = (logs.high - logs.low) / 2;
  result.smallest = std::expm1(margin + half * (1 + NormalQuantile(rules.power) / z));
  if (rules.resamples > 0) result.median = Exp(BootstrapMedian(evidence.contrasts(), rules.seed, rules.resamples));
  const Interval fault = HodgesLehmann(evidence.controls(), kControlFault);
  const bool control_silent = !(fault.low > 0 || fault.high < 0);
  result.stable = result.used > 0 && control_silent && result.spoiled_share <= rules.spoiled_share;
  return result;
}

Result<void> CheckRound(const PairedRound& round, std::size_t number) {
  for (const TimedWindow& window : round.windows) {
    if (std::isfinite(window.ns) && window.ns > 0) continue;
    return Fail(Code::kMeasurementImpossible, fmt::format("round {}", number + 1),
                fmt::format("a token that took {} ns", window.ns), "work that takes time");
  }
  return {};
}

// The schedule of looks: which one is due, and what it may spend.
class Schedule {
 public:
  explicit Schedule(const PairedRules& rules) : rules_(rules) {}

  /// The tail that a look after this round may spend, each way; 0: no look is due.
  double Due(double spent_s, std::size_t rounds) {
    const double share = spent_s / rules_.budget_s;
    std::size_t reached = done_;
    while (reached < rules_.looks.size() && share >= rules_.looks[reached]) ++reached;
    if (reached == rules_.looks.size() && rounds < rules_.least_rounds) --reached;
    if (reached <= done_) return 0;
    done_ = reached;
    ++taken_;
    const double all = SpentError(rules_.error_rate / 2, rules_.looks[reached - 1]);
    const double tail = all - spent_;
    spent_ = all;
    return tail;
  }
  [[nodiscard]] bool IsLast() const { return done_ == rules_.looks.size(); }
  [[nodiscard]] std::size_t taken() const { return taken_; }

 private:
  const PairedRules& rules_;
  std::size_t done_ = 0, taken_ = 0;
  double spent_ = 0;
};

}  // namespace

Causes PairedRound::AllCauses() const {
  return windows[0].causes | windows[1].causes | windows[2].causes | windows[3].causes;
}

double PairedRound::LogRatio() const {
  const double inner = std::log(windows[1].ns) + std::log(windows[2].ns);
  const double outer = std::log(windows[0].ns) + std::log(windows[3].ns);
  return (b_first ? outer - inner : inner - outer) / 2;
}

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFaster:
      return "faster";
    case Outcome::kSlower:
      return "slower";
    case Outcome::kNoDifference:
      break;
  }
  return "no difference shown";
}

double SpentError(double error, double share) {
  if (share >= 1) return error;
  if (share <= 0) return 0;
  return 2 * NormalBelow(NormalQuantile(error / 2) / std::sqrt(share));
}

Result<PairedSession> RunPaired(RoundSource& source, const PairedRules& rules, const PairedHooks& hooks) {
  PairedSession session;
  std::mt19937_64 lots(rules.seed);
  Evidence evidence(rules.seed);
  Schedule schedule(rules);
  while (true) {
    if (hooks.cancelled && hooks.cancelled()) return Fail(Code::kInterrupted, "rounds", "stopped by the user");
    BOLTBEAM_ASSIGN(const PairedRound round, source.Next((lots() >> 63) != 0));
    BOLTBEAM_TRY(CheckRound(round, session.rounds.size()));
    session.rounds.push_back(round);
    evidence.Add(round);
    if (hooks.progress) hooks.progress(std::min(round.at_s, rules.budget_s), rules.budget_s);
    const double tail = schedule.Due(round.at_s, evidence.RoundsThatCount(rules.patience * rules.least_rounds));
    if (tail == 0) continue;
    const Look look = LookAt(evidence, rules, tail);
    if (!look.Decides() && !schedule.IsLast()) continue;
    session.result = Conclude(evidence, rules, look);
    session.result.looks = schedule.taken();
    session.result.spent_s = round.at_s;
    return session;
  }
}

Result<PairedResult> ReplayPaired(const std::vector<PairedRound>& rounds, const PairedRules& rules) {
  class Stored final : public RoundSource {
   public:
    explicit Stored(const std::vector<PairedRound>& rounds) : rounds_(rounds) {}
    Result<PairedRound> Next(bool) override {
      if (next_ == rounds_.size()) {
        return Fail(Code::kMeasurementUnstable, "stored rounds", fmt::format("only {}", rounds_.size()),
                    "rounds up to the look that decided");
      }
      return rounds_[next_++];
    }

   private:
    const std::vector<PairedRound>& rounds_;
    std::size_t next_ = 0;
  };
  Stored stored(rounds);
  BOLTBEAM_ASSIGN(PairedSession session, RunPaired(stored, rules));
  return std::move(session.result);
}

}  // namespace boltbeam::measure
