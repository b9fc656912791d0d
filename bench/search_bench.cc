// How near to the best of a table's legal geometries a search comes that times only few of them, and how well
// predictions rank them. For each format and shape a sample of all legal points is timed, cold, by all threads, in
// sweeps; then each strategy chooses with as few as the search may time; then all that were chosen and the best of the
// sample are timed once more, in turns, on fresh data.
//   search_bench prepare --cache=FOLDER --home=FOLDER          compiles, checks, writes predictions to the ledger
//   search_bench time --cache=FOLDER --home=FOLDER > table.md  times: run it with nothing else on the machine
// --points=200 --timed=12 --formats=Q4_K,... --shapes=ROWSxCOLS,... --json=FILE
// A prediction comes from a fit on what that ledger holds of other formats and other shapes alone; with an empty
// ledger, from a guess. So: prepare and time, which fills the ledger, then prepare and time once more.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/paths.h"
#include "base/ticks.h"
#include "chip/facts.h"
#include "codegen/codegen.h"
#include "kernel/knobs.h"
#include "search/decide.h"
#include "search/part_search.h"
#include "search/refine.h"
#include "search_record.h"
#include "search_sweeps.h"
#include "search_table.h"

namespace boltbeam::search {
namespace {

constexpr std::size_t kSampleSweeps = 15;
constexpr std::size_t kLastSweeps = 51;
constexpr std::size_t kBeamSweeps = 5;
constexpr std::size_t kBestOfSample = 5;
constexpr std::uint64_t kGateWeights = std::uint64_t{1} << 19;

struct Options {
  bool is_prepare = false;
  std::size_t points = 200, timed = 12;
  std::vector<std::string> formats{"Q4_K", "Q6_K", "Q8_0"};
  std::vector<std::string> shapes{"1024x1024", "3072x1024", "4096x4096", "4096x12288"};
  std::string cache, home, json;
};

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = std::min(argument.find('='), argument.size() - 1);
    const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
    if (argument == "prepare") options.is_prepare = true;
    if (name == "--points") options.points = std::stoul(value);
    if (name == "--timed") options.timed = std::stoul(value);
    if (name == "--formats") options.formats = Split(value);
    if (name == "--shapes") options.shapes = Split(value);
    if (name == "--cache") options.cache = value;
    if (name == "--home") options.home = value;
    if (name == "--json") options.json = value;
  }
  return options;
}

Result<Part> PartFor(const std::string& format_name, const std::string& shape) {
  const formats::Format* format = formats::FindFormat(format_name);
  const std::size_t x = shape.find('x');
  if (format == nullptr || x == std::string::npos) {
    return Fail(Code::kUsage, "search_bench", format_name + " " + shape, "a format and ROWSxCOLS");
  }
  Part part;
  part.format = format;
  part.rows = std::stoull(shape);
  part.cols = std::stoull(shape.substr(x + 1));
  part.table = fmt::format("{}.{}", format_name, shape);
  part.role = "bench";
  part.calls = 1;
  part.bytes = part.weights() / format->elements * format->bytes;
  return part;
}

class Bench {
 public:
  static Result<std::unique_ptr<Bench>> Create(const Options& options) {
    auto bench = std::unique_ptr<Bench>(new Bench(options));
    BOLTBEAM_TRY(bench->Open());
    return bench;
  }

  Result<void> Run() {
    for (const std::string& format : options_.formats) {
      for (const std::string& shape : options_.shapes) {
        BOLTBEAM_ASSIGN(const Part part, PartFor(format, shape));
        const std::uint64_t begin = base::MonotonicNs();
        BOLTBEAM_TRY(options_.is_prepare ? Prepare(part) : Time(part));
        std::fprintf(stderr, "%s: %.1f s\n", part.table.c_str(), base::SecondsSince(begin));
      }
    }
    if (options_.is_prepare) return {};
    std::fputs(TableText(rows_, bench_->threads()).c_str(), stdout);
    if (!options_.json.empty()) BOLTBEAM_TRY(base::WriteFileAtomically(options_.json, json_.dump(1) + "\n"));
    return {};
  }

 private:
  explicit Bench(const Options& options) : options_(options) {}

  Result<void> Open() {
    const base::Paths paths = base::ResolvePaths(options_.home);
    BOLTBEAM_ASSIGN(chip_, chip::ThisMachine(paths.data.string()));
    facts_ = kernel::VectorFactsOf(chip_);
    kernels_ = std::make_unique<runtime::KernelCache>(codegen::TargetFor(chip_), options_.cache);
    const auto threads = static_cast<std::uint32_t>(chip::UsableCpus().size());
    constexpr std::uint64_t kMostRows = std::uint64_t{1} << 18, kMostCols = std::uint64_t{1} << 16;
    BOLTBEAM_ASSIGN(bench_, TimingBench::Create(chip_, *kernels_, threads, kMostRows, kMostCols));
    BOLTBEAM_ASSIGN(chip_, WithRates(chip_, *kernels_, *bench_));
    BOLTBEAM_ASSIGN(record_, Record::Open(paths, chip_, threads));
    return {};
  }

  struct Drawn {
    Proposal proposal;
    Foresight foresight;  // before anything is compiled
    Foresight foretold;   // of the sample, from its compiled code
    std::vector<kernel::GemvGeometry> points;
    kernel::GemvGeometry start;
    std::string fitted_on;
  };

  Result<Drawn> SampleOf(const Part& part, CodeReader& reader) {
    Drawn sample{ProposeProduct(part, chip_), {}, {}, {}, kernel::DefaultGeometry(*part.format, facts_, false), {}};
    coefficients_ = record_->CoefficientsFor(part);
    sample.fitted_on = coefficients_.source;
    BOLTBEAM_ASSIGN(sample.foresight, PredictProduct(sample.proposal, chip_, bench_->threads(), coefficients_));
    sample.points = AtRandom(sample.proposal.points, options_.points, 7);
    BOLTBEAM_TRY(ReadStreams(part, reader));
    sample.foretold = sample.foresight;
    BOLTBEAM_TRY(Refine(sample.foretold, part, chip_, bench_->threads(), coefficients_, reader, sample.points, Cpus()));
    BOLTBEAM_TRY(WriteStreams(part, reader));
    return sample;
  }

  static unsigned Cpus() { return static_cast<unsigned>(chip::UsableCpus().size()); }

  /// What `prepare` saw in compiled code, so that `time` need not compile it again.
  [[nodiscard]] std::string StreamsFile(const Part& part) const {
    return fmt::format("{}/streams.{}.json", options_.cache, part.table);
  }
  Result<void> ReadStreams(const Part& part, CodeReader& reader) const {
    const auto text = base::ReadWholeFile(StreamsFile(part));
    if (!text) return {};  // nothing was prepared
    const nlohmann::json all = nlohmann::json::parse(*text, nullptr, false);
    if (!all.is_object()) return {};
    for (const auto& [candidate, one] : all.items()) reader.Know(candidate, StreamFrom(one));
    return {};
  }
  Result<void> WriteStreams(const Part& part, const CodeReader& reader) const {
    nlohmann::json all = nlohmann::json::object();
    for (const auto& [candidate, stream] : reader.known()) {
      all[candidate] = nlohmann::json::object();
      AddStream(all[candidate], stream);
    }
    return base::WriteFileAtomically(StreamsFile(part), all.dump());
  }

  /// Every geometry that a strategy may time, so that nothing is compiled while others wait for a quiet machine.
  Result<void> Prepare(const Part& part) {
    CodeReader reader(part, kernels_->target());
    BOLTBEAM_ASSIGN(const Drawn sample, SampleOf(part, reader));
    for (const kernel::GemvGeometry& point : sample.points) {
      const auto found = std::ranges::find(sample.foretold.survivors, point, &Prediction::geometry);
      if (found != sample.foretold.survivors.end()) BOLTBEAM_TRY(record_->Predict(part, *found));
    }
    std::vector<kernel::GemvGeometry> points = sample.points;
    const auto add = [&](const std::vector<kernel::GemvGeometry>& more) {
      points.insert(points.end(), more.begin(), more.end());
    };
    add({sample.start});
    add(FirstSurvivors(sample.foresight, PartRules().refined));
    add(AtRandom(sample.proposal.points, options_.timed, 99));
    add(ByHash(sample.proposal.points, options_.timed));
    add(Neighbours(sample.start, sample.proposal.points, options_.timed));
    BOLTBEAM_TRY(Make(part, points));
    return {};
  }

  Result<std::vector<Contender>> Make(const Part& part, const std::vector<kernel::GemvGeometry>& points,
                                      Row* row = nullptr) {
    BOLTBEAM_ASSIGN(const GateRows rows, MakeGateRows(*part.format, part.rows, part.cols, kGateWeights));
    ProductGate gate(rows, facts_, *kernels_);
    BOLTBEAM_ASSIGN(const std::vector<Made> made,
                    MakeContenders(part, points, gate, *kernels_, static_cast<unsigned>(chip::UsableCpus().size())));
    std::vector<Contender> ready;
    for (const Made& one : made) {
      if (one.state == Made::State::kReady) ready.push_back(one.contender);
      if (one.state == Made::State::kWrong || one.state == Made::State::kFailed) {
        std::fprintf(stderr, "%s %s: %s\n", part.table.c_str(), one.contender.name.c_str(), one.why.c_str());
        if (row != nullptr) ++row->wrong;
      }
    }
    return ready;
  }

  Result<void> Time(const Part& part) {
    CodeReader reader(part, kernels_->target());
    BOLTBEAM_ASSIGN(const Drawn sample, SampleOf(part, reader));
    Row row;
    row.format = part.format->name;
    row.shape = part.ShapeText();
    row.fitted_on = sample.fitted_on;
    row.legal = sample.proposal.points.size();
    for (const kernel::Knob& knob : kernel::GemvKnobs()) {
      std::set<std::uint32_t> values;
      for (const kernel::GemvGeometry& point : sample.points) values.insert(knob.get(point));
      row.knobs += values.size() > 1 ? 1 : 0;
    }
    BOLTBEAM_ASSIGN(std::vector<Contender> all, Make(part, sample.points, &row));
    for (Contender& one : all) one.stream = reader.Of(one.geometry);
    row.sampled = sample.points.size();
    row.codes = all.size();
    const Swept swept = SweepAll(*bench_, all, kSampleSweeps);
    const std::vector<double>& times = swept.ns;
    BOLTBEAM_TRY(Correlate(part, all, swept, row));

    // Every strategy's choice, then all of them and the best of the sample once more.
    std::vector<Contender> last;
    std::map<std::string, std::size_t> place;
    const auto enter = [&](const std::string& strategy, const Contender& contender) {
      const auto known = std::ranges::find(last, contender.code, &Contender::code);
      place[strategy] = static_cast<std::size_t>(known - last.begin());
      if (known == last.end()) last.push_back(contender);
    };
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return times[i]; });
    for (std::size_t i = 0; i < std::min(kBestOfSample, order.size()); ++i) {
      enter(fmt::format("sample{}", i), all[order[i]]);
    }
    BOLTBEAM_TRY(RunSearch(part, sample, enter, row));
    BOLTBEAM_TRY(RunSimple(part, "random", AtRandom(sample.proposal.points, options_.timed, 99), enter, row));
    BOLTBEAM_TRY(RunSimple(part, "hash", ByHash(sample.proposal.points, options_.timed), enter, row));
    BOLTBEAM_TRY(RunBeam(part, sample, enter, row));
    BOLTBEAM_ASSIGN(const std::vector<Contender> start, Make(part, {sample.start}));
    if (!start.empty()) enter("default", start.front());
    Foresight refined = sample.foresight;
    BOLTBEAM_TRY(Refine(refined, part, chip_, bench_->threads(), coefficients_, reader,
                        FirstSurvivors(refined, PartRules().refined), Cpus()));
    const auto first = PredictedFirst(refined, 1);
    BOLTBEAM_ASSIGN(const std::vector<Contender> top, Make(part, first));
    if (!top.empty()) enter("predicted", top.front());

    bench_->Refresh(11);
    const Swept last_sweeps = SweepAll(*bench_, last, kLastSweeps);
    const std::vector<double>& again = last_sweeps.ns;
    row.last_gb_s = last_sweeps.read_gb_s;
    const double best = *std::ranges::min_element(again);
    for (const auto& [strategy, index] : place) {
      if (!strategy.starts_with("sample")) row.regret[strategy] = again[index] / best;
    }
    double of_sample = again[place["sample0"]];
    for (std::size_t i = 1; place.contains(fmt::format("sample{}", i)); ++i) {
      of_sample = std::min(of_sample, again[place[fmt::format("sample{}", i)]]);
    }
    row.regret["sample"] = of_sample / best;
    std::vector<double> sorted = times;
    row.median_over_best = measure::Median(sorted) / times[order.front()];
    rows_.push_back(std::move(row));
    return {};
  }

  Result<void> Correlate(const Part& part, const std::vector<Contender>& all, const Swept& swept, Row& row) {
    const std::vector<double>& times = swept.ns;
    row.repeat = swept.repeat;
    row.read_gb_s = swept.read_gb_s;
    std::vector<double> foretold, found;
    nlohmann::json& points = json_[part.table];
    std::size_t top = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Record::Foretold* prediction = record_->Find(part, all[i].name);
      row.foretold += prediction != nullptr ? 1 : 0;
      points.push_back({{"candidate", all[i].name},
                        {"ns", times[i]},
                        {"read_bandwidth_gb_s", swept.read_gb_s},
                        {"predicted_ns", prediction != nullptr ? prediction->ns : 0}});
      BOLTBEAM_TRY(record_->Measure(part, all[i], times[i], kSampleSweeps, swept.read_gb_s));
      // What was turned away was foretold to be slower than all others.
      foretold.push_back(prediction != nullptr ? prediction->ns : 1e18);
      found.push_back(times[i]);
      if (foretold[i] < foretold[top]) top = i;
    }
    if (row.foretold == 0) {
      return Fail(Code::kUsage, part.table, "the ledger holds no prediction of it", "`search_bench prepare` before");
    }
    row.rank = RankCorrelation(foretold, found);
    row.top1 = found[top] / *std::ranges::min_element(found);
    return {};
  }

  template <typename Enter>
  Result<void> RunSearch(const Part& part, const Drawn& sample, const Enter& enter, Row& row) {
    BOLTBEAM_ASSIGN(const GateRows rows, MakeGateRows(*part.format, part.rows, part.cols, kGateWeights));
    TrialMemory nothing;
    PartRules rules;
    rules.most_timed = options_.timed;
    rules.compilers = static_cast<unsigned>(chip::UsableCpus().size());
    const PartInput input{part, sample.proposal.points, sample.foresight, sample.start, rows, chip_, coefficients_};
    BOLTBEAM_ASSIGN(const PartSearch found, SearchPart(input, facts_, *bench_, *kernels_, nothing, rules));
    BOLTBEAM_ASSIGN(const std::vector<Contender> best, Make(part, {found.best}));
    enter("search", best.front());
    row.timed["search"] = found.timed;
    return {};
  }

  Result<void> Choose(const Part& part, const std::vector<Contender>& contenders, std::size_t& best) {
    TrialMemory nothing;
    bool is_remembered = false;
    BOLTBEAM_ASSIGN(const HalvingResult result,
                    TimeContenders(part, contenders, *bench_, nothing, {}, {}, is_remembered));
    best = result.order.front();
    return {};
  }

  template <typename Enter>
  Result<void> RunSimple(const Part& part, const std::string& strategy, const std::vector<kernel::GemvGeometry>& points,
                         const Enter& enter, Row& row) {
    BOLTBEAM_ASSIGN(const std::vector<Contender> contenders, Make(part, points));
    std::size_t best = 0;
    BOLTBEAM_TRY(Choose(part, contenders, best));
    enter(strategy, contenders[best]);
    row.timed[strategy] = contenders.size();
    return {};
  }

  template <typename Enter>
  Result<void> RunBeam(const Part& part, const Drawn& sample, const Enter& enter, Row& row) {
    const TimePoints time = [&](const std::vector<kernel::GemvGeometry>& points) -> Result<std::vector<double>> {
      std::vector<double> all;
      std::vector<Contender> ready;
      std::vector<std::size_t> index;
      for (std::size_t i = 0; i < points.size(); ++i) {
        BOLTBEAM_ASSIGN(const std::vector<Contender> one, Make(part, {points[i]}));
        all.push_back(std::nan(""));
        if (one.empty()) continue;
        ready.push_back(one.front());
        index.push_back(i);
      }
      const std::vector<double> times = SweepAll(*bench_, ready, kBeamSweeps).ns;
      for (std::size_t i = 0; i < times.size(); ++i) all[index[i]] = times[i];
      row.timed["beam"] += times.size();
      return all;
    };
    constexpr std::size_t kWidth = 2;
    BOLTBEAM_ASSIGN(const std::vector<kernel::GemvGeometry> walked,
                    BeamWalk(sample.proposal.points, sample.start, kWidth, options_.timed, time));
    BOLTBEAM_ASSIGN(const std::vector<Contender> best, Make(part, {walked.front()}));
    enter("beam", best.front());
    return {};
  }

  const Options& options_;
  chip::Chip chip_;
  kernel::VectorFacts facts_;
  std::unique_ptr<runtime::KernelCache> kernels_;
  std::unique_ptr<TimingBench> bench_;
  std::unique_ptr<Record> record_;
  Coefficients coefficients_;  // of the part
  std::vector<Row> rows_;
  nlohmann::json json_;
};

}  // namespace
}  // namespace boltbeam::search

int main(int argc, char** argv) {
  const auto options = boltbeam::search::Parse(argc, argv);
  auto bench = boltbeam::search::Bench::Create(options);
  const auto done = bench ? (*bench)->Run() : std::unexpected(bench.error());
  if (!done) {
    std::fprintf(stderr, "search_bench: %s\n", done.error().Message().c_str());
    return 1;
  }
  return 0;
}
