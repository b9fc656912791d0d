#include "search_contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

#include "base/paths.h"
#include "base/ticks.h"
#include "kernel/knobs.h"
#include "measure/environment.h"
#include "search/decide.h"
#include "search/part_search.h"

namespace boltbeam::search {
namespace {

constexpr std::size_t kSampleSweeps = 15;
constexpr std::size_t kLastSweeps = 51;
constexpr std::size_t kBeamSweeps = 5;
constexpr std::size_t kBeamWidth = 2;
constexpr std::size_t kBestOfSample = 5;
constexpr std::uint64_t kGateWeights = std::uint64_t{1} << 19;
constexpr std::uint64_t kSampleSeed = 7, kRandomSeed = 99, kLastSeed = 11;
constexpr std::size_t kMostAttempts = 6;
constexpr double kMostDrift = 0.15;      // of the memory's rate, while the sample is timed
constexpr double kMostOtherCpus = 0.25;  // beside it
// What was turned away was foretold to be slower than all others.
constexpr double kTurnedAwayNs = 1e18;

}  // namespace

Contest::Contest(const Part& part, const chip::Chip& chip, runtime::KernelCache& kernels, TimingBench& bench,
                 Record& record, ContestRules rules)
    : part_(part),
      chip_(chip),
      facts_(kernel::VectorFactsOf(chip)),
      kernels_(kernels),
      bench_(bench),
      record_(record),
      rules_(std::move(rules)),
      cpus_(static_cast<unsigned>(chip::UsableCpus().size())),
      proposal_(ProposeProduct(part, chip)),
      start_(kernel::DefaultGeometry(*part.format, part.cols, facts_)),
      points_(AtRandom(proposal_.points, rules_.points, kSampleSeed)),
      reader_(part, kernels.target()),
      coefficients_(record.CoefficientsFor(part)) {
  row_.format = part.format->name;
  row_.shape = part.ShapeText();
  row_.fitted_on = coefficients_.source;
  row_.legal = proposal_.points.size();
  row_.sampled = points_.size();
  for (const kernel::Knob& knob : kernel::GemvKnobs()) {
    std::set<std::uint32_t> values;
    for (const kernel::GemvGeometry& point : points_) values.insert(knob.get(point));
    row_.knobs += values.size() > 1 ? 1 : 0;
  }
}

std::string Contest::StreamsFile() const { return fmt::format("{}/streams.{}.json", rules_.cache, part_.table); }

void Contest::ReadStreams() {
  const auto text = base::ReadWholeFile(StreamsFile());
  if (!text) return;  // nothing was prepared
  const nlohmann::json all = nlohmann::json::parse(*text, nullptr, false);
  if (!all.is_object()) return;
  for (const auto& [candidate, one] : all.items()) reader_.Know(candidate, StreamFrom(one));
}

Result<void> Contest::WriteStreams() const {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [candidate, stream] : reader_.known()) {
    all[candidate] = nlohmann::json::object();
    AddStream(all[candidate], stream);
  }
  return base::WriteFileAtomically(StreamsFile(), all.dump());
}

Result<void> Contest::Prepare() {
  ReadStreams();
  BOLTBEAM_ASSIGN(foresight_, PredictProduct(proposal_, chip_, bench_.threads(), coefficients_));
  const std::vector<kernel::GemvGeometry> first = FirstSurvivors(foresight_, PartRules().refined);
  reader_.Prepare(points_, cpus_);
  reader_.Prepare(first, cpus_);
  BOLTBEAM_TRY(WriteStreams());
  std::vector<kernel::GemvGeometry> points = points_;
  const auto add = [&](const std::vector<kernel::GemvGeometry>& more) {
    points.insert(points.end(), more.begin(), more.end());
  };
  add({start_});
  add(first);
  add(AtRandom(proposal_.points, rules_.timed, kRandomSeed));
  add(ByHash(proposal_.points, rules_.timed));
  add(Neighbours(start_, proposal_.points, rules_.timed));
  BOLTBEAM_TRY(Make(points));
  return {};
}

Result<std::vector<Contender>> Contest::Make(const std::vector<kernel::GemvGeometry>& points) {
  BOLTBEAM_ASSIGN(const GateRows rows, MakeGateRows(*part_.format, part_.rows, part_.cols, kGateWeights));
  ProductGate gate(rows, facts_, kernels_);
  BOLTBEAM_ASSIGN(const std::vector<Made> made, MakeContenders(part_, points, gate, kernels_, cpus_));
  std::vector<Contender> ready;
  for (const Made& one : made) {
    if (one.state == Made::State::kReady) ready.push_back(one.contender);
    if (one.state == Made::State::kWrong || one.state == Made::State::kFailed) {
      std::fprintf(stderr, "%s %s: %s\n", part_.table.c_str(), one.contender.name.c_str(), one.why.c_str());
      ++row_.wrong;
    }
  }
  return ready;
}

Result<Row> Contest::Time() {
  ReadStreams();
  BOLTBEAM_ASSIGN(all_, Make(points_));
  row_.codes = all_.size();
  BOLTBEAM_TRY(TimeSample());
  BOLTBEAM_TRY(Rank());
  EnterBestOfSample();
  BOLTBEAM_TRY(EnterSearch());
  BOLTBEAM_TRY(EnterSimple("random", AtRandom(proposal_.points, rules_.timed, kRandomSeed)));
  BOLTBEAM_TRY(EnterSimple("hash", ByHash(proposal_.points, rules_.timed)));
  BOLTBEAM_TRY(EnterBeam());
  BOLTBEAM_TRY(EnterOne("default", {start_}));
  BOLTBEAM_TRY(EnterPredicted());
  TimeLast();
  return row_;
}

Result<void> Contest::ForetellSample() {
  row_.foretold_gb_s = bench_.ColdReadRate();
  chip_ = AtReadRate(std::move(chip_), row_.foretold_gb_s);
  BOLTBEAM_ASSIGN(foresight_, PredictProduct(proposal_, chip_, bench_.threads(), coefficients_));
  Foresight refined = foresight_;
  BOLTBEAM_TRY(Refine(refined, part_, chip_, bench_.threads(), coefficients_, reader_, points_, cpus_));
  BOLTBEAM_TRY(WriteStreams());
  foretold_.clear();
  for (const kernel::GemvGeometry& point : points_) {
    const auto found = std::ranges::find(refined.survivors, point, &Prediction::geometry);
    if (found == refined.survivors.end()) continue;
    BOLTBEAM_ASSIGN(std::string record, record_.Predict(part_, *found));
    foretold_[CandidateName(point)] = {found->ns, std::move(record)};
  }
  return {};
}

Result<void> Contest::TimeSample() {
  for (std::size_t attempt = 1;; ++attempt) {
    BOLTBEAM_TRY(ForetellSample());
    for (Contender& one : all_) one.stream = reader_.Of(one.geometry);
    const measure::Counters before = measure::ReadCounters();
    const std::uint64_t begin = base::MonotonicNs();
    swept_ = SweepAll(bench_, all_, kSampleSweeps);
    const auto wall_ns = static_cast<double>(base::MonotonicNs() - begin);
    row_.other_cpus = measure::OtherCpus(before, measure::ReadCounters(), wall_ns);
    row_.read_gb_s = swept_.read_gb_s;
    row_.repeat = swept_.repeat;
    const bool has_drifted = std::abs(row_.read_gb_s / row_.foretold_gb_s - 1) > kMostDrift;
    const bool is_disturbed = row_.other_cpus > kMostOtherCpus;
    if (!has_drifted && !is_disturbed) return {};
    if (attempt == kMostAttempts) {
      return Fail(Code::kMeasurementUnstable, part_.table,
                  fmt::format("the memory's rate or other programs spoiled it {} times", attempt),
                  "a machine with nothing else to do; the tables that are done are kept");
    }
    std::fprintf(stderr, "%s: foretold at %.0f GB/s, timed at %.0f, other programs kept %.2f CPUs busy: once more\n",
                 part_.table.c_str(), row_.foretold_gb_s, row_.read_gb_s, row_.other_cpus);
  }
}

Result<void> Contest::Rank() {
  std::vector<double> foretold;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto known = foretold_.find(all_[i].name);
    const Foretold one = known == foretold_.end() ? Foretold{kTurnedAwayNs, ""} : known->second;
    foretold.push_back(one.ns);
    row_.foretold += known == foretold_.end() ? 0 : 1;
    row_.points.push_back({{"candidate", all_[i].name}, {"ns", swept_.ns[i]}, {"predicted_ns", one.ns}});
    BOLTBEAM_TRY(record_.Measure(part_, all_[i], swept_.ns[i], kSampleSweeps, swept_.read_gb_s, one.record));
  }
  const double best = std::ranges::min(swept_.ns);
  row_.rank = RankCorrelation(foretold, swept_.ns);
  row_.top1 = swept_.ns[static_cast<std::size_t>(std::ranges::min_element(foretold) - foretold.begin())] / best;
  row_.median_over_best = measure::Median(swept_.ns) / best;
  return {};
}

void Contest::Enter(const std::string& strategy, const Contender& contender) {
  const auto known = std::ranges::find(last_, contender.code, &Contender::code);
  places_[strategy] = static_cast<std::size_t>(known - last_.begin());
  if (known == last_.end()) last_.push_back(contender);
}

void Contest::EnterBestOfSample() {
  std::vector<std::size_t> order(all_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return swept_.ns[i]; });
  for (std::size_t i = 0; i < std::min(kBestOfSample, order.size()); ++i) {
    Enter(fmt::format("sample{}", i), all_[order[i]]);
  }
}

Result<void> Contest::EnterSearch() {
  BOLTBEAM_ASSIGN(const GateRows rows, MakeGateRows(*part_.format, part_.rows, part_.cols, kGateWeights));
  TrialMemory nothing;
  PartRules rules;
  rules.most_timed = rules_.timed;
  rules.compilers = cpus_;
  const PartInput input{part_, proposal_.points, foresight_, start_, rows, chip_, coefficients_};
  BOLTBEAM_ASSIGN(const PartSearch found, SearchPart(input, facts_, bench_, kernels_, nothing, rules));
  row_.timed["search"] = found.timed;
  return EnterOne("search", {found.best});
}

Result<void> Contest::EnterSimple(const std::string& strategy, const std::vector<kernel::GemvGeometry>& points) {
  BOLTBEAM_ASSIGN(const std::vector<Contender> contenders, Make(points));
  TrialMemory nothing;
  bool is_remembered = false;
  BOLTBEAM_ASSIGN(const HalvingResult result,
                  TimeContenders(part_, contenders, bench_, nothing, {}, {}, is_remembered));
  row_.timed[strategy] = contenders.size();
  Enter(strategy, contenders[result.order.front()]);
  return {};
}

Result<void> Contest::EnterBeam() {
  const TimePoints time = [&](const std::vector<kernel::GemvGeometry>& points) -> Result<std::vector<double>> {
    std::vector<double> all(points.size(), std::nan(""));
    BOLTBEAM_ASSIGN(const std::vector<Contender> ready, Make(points));
    const std::vector<double> times = SweepAll(bench_, ready, kBeamSweeps).ns;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const auto point = std::ranges::find(points, ready[i].geometry);
      all[static_cast<std::size_t>(point - points.begin())] = times[i];
    }
    row_.timed["beam"] += times.size();
    return all;
  };
  BOLTBEAM_ASSIGN(const std::vector<kernel::GemvGeometry> walked,
                  BeamWalk(proposal_.points, start_, kBeamWidth, rules_.timed, time));
  return EnterOne("beam", {walked.front()});
}

Result<void> Contest::EnterOne(const std::string& strategy, const std::vector<kernel::GemvGeometry>& point) {
  BOLTBEAM_ASSIGN(const std::vector<Contender> made, Make(point));
  if (!made.empty()) Enter(strategy, made.front());
  return {};
}

Result<void> Contest::EnterPredicted() {
  Foresight refined = foresight_;
  BOLTBEAM_TRY(Refine(refined, part_, chip_, bench_.threads(), coefficients_, reader_,
                      FirstSurvivors(refined, PartRules().refined), cpus_));
  return EnterOne("predicted", PredictedFirst(refined, 1));
}

void Contest::TimeLast() {
  bench_.Refresh(kLastSeed);
  const Swept last = SweepAll(bench_, last_, kLastSweeps);
  row_.last_gb_s = last.read_gb_s;
  const double best = std::ranges::min(last.ns);
  for (const auto& [strategy, place] : places_) {
    const bool is_sample = strategy.starts_with("sample");  // the best of them, whichever it is now
    double& regret = row_.regret.try_emplace(is_sample ? "sample" : strategy, HUGE_VAL).first->second;
    regret = std::min(regret, last.ns[place] / best);
  }
}

}  // namespace boltbeam::search
