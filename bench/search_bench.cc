// How near to the best of a table's legal geometries a search comes that times only few of them, and how well
// predictions rank them. For each format and shape a sample of all legal points is foretold, into the ledger, and then
// timed, cold, by all threads, in sweeps; then each strategy chooses with as few as the search may time; then all that
// were chosen and the best of the sample are timed once more, in turns, on fresh data.
//   search_bench prepare --cache=FOLDER --home=FOLDER                         compiles, checks; beside what ever
//   search_bench time --cache=FOLDER --home=FOLDER --rows=FOLDER > table.md   on a machine with nothing else to do
// --points=200 --timed=12 --formats=Q4_K,... --shapes=ROWSxCOLS,...
// A table is written below --rows when it is done; whoever is stopped goes on from there. A prediction comes from a fit
// on what the ledger holds of other formats and other shapes alone; with an empty ledger, from a guess. So: prepare,
// time, which fills the ledger, and time once more with other rows.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/paths.h"
#include "base/ticks.h"
#include "codegen/codegen.h"
#include "measure/environment.h"
#include "search/decide.h"
#include "search_contest.h"

namespace boltbeam::search {
namespace {

constexpr double kWatch_s = 1, kMostOtherCpus = 0.25;

struct Options {
  bool is_prepare = false;
  ContestRules rules;
  std::vector<std::string> formats{"Q4_K", "Q6_K", "Q8_0"};
  std::vector<std::string> shapes{"1024x1024", "3072x1024", "4096x4096", "4096x12288"};
  std::string home, rows;
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

Result<Options> Parse(int argc, char** argv) {
  Options options;
  bool is_time = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = std::min(argument.find('='), argument.size() - 1);
    const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
    if (argument == "prepare") options.is_prepare = true;
    if (argument == "time") is_time = true;
    if (name == "--points") options.rules.points = std::stoul(value);
    if (name == "--timed") options.rules.timed = std::stoul(value);
    if (name == "--formats") options.formats = Split(value);
    if (name == "--shapes") options.shapes = Split(value);
    if (name == "--cache") options.rules.cache = value;
    if (name == "--home") options.home = value;
    if (name == "--rows") options.rows = value;
  }
  const bool has_folders = !options.rules.cache.empty() && !options.home.empty();
  if (has_folders && options.is_prepare != is_time && is_time != options.rows.empty()) return options;
  return Fail(Code::kUsage, "search_bench", argc < 2 ? "nothing" : argv[1],
              "prepare --cache=FOLDER --home=FOLDER, or time with --rows=FOLDER, too");
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

/// What other programs do spoils timings, and the rates that every prediction takes from the chip.
Result<void> RequireQuiet() {
  const measure::Counters before = measure::ReadCounters();
  const std::uint64_t begin = base::MonotonicNs();
  std::this_thread::sleep_for(std::chrono::duration<double>(kWatch_s));
  const auto wall_ns = static_cast<double>(base::MonotonicNs() - begin);
  const double others = measure::OtherCpus(before, measure::ReadCounters(), wall_ns);
  if (others <= kMostOtherCpus) return {};
  return Fail(Code::kMeasurementUnstable, "search_bench", fmt::format("other programs keep {:.2f} CPUs busy", others),
              "a machine with nothing else to do; the tables that are done are kept");
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
        BOLTBEAM_TRY(options_.is_prepare ? NewContest(part)->Prepare() : Time(part));
        std::fprintf(stderr, "%s: %.1f s\n", part.table.c_str(), base::SecondsSince(begin));
      }
    }
    return {};
  }

  /// Of the tables that are done.
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

 private:
  explicit Bench(const Options& options) : options_(options) {}

  Result<void> Open() {
    const base::Paths paths = base::ResolvePaths(options_.home);
    BOLTBEAM_ASSIGN(chip_, chip::ThisMachine(paths.data.string()));
    kernels_ = std::make_unique<runtime::KernelCache>(codegen::TargetFor(chip_), options_.rules.cache);
    const auto threads = static_cast<std::uint32_t>(chip::UsableCpus().size());
    constexpr std::uint64_t kMostRows = std::uint64_t{1} << 18, kMostCols = std::uint64_t{1} << 16;
    BOLTBEAM_ASSIGN(bench_, TimingBench::Create(chip_, *kernels_, threads, kMostRows, kMostCols));
    BOLTBEAM_ASSIGN(chip_, WithRates(chip_, *kernels_, *bench_));
    BOLTBEAM_ASSIGN(record_, Record::Open(paths, chip_, threads));
    return {};
  }

  std::unique_ptr<Contest> NewContest(const Part& part) {
    return std::make_unique<Contest>(part, chip_, *kernels_, *bench_, *record_, options_.rules);
  }

  Result<void> Time(const Part& part) {
    const std::string path = fmt::format("{}/{}.json", options_.rows, part.table);
    if (const auto text = base::ReadWholeFile(path)) {
      BOLTBEAM_ASSIGN(Row row, RowFrom(nlohmann::json::parse(*text, nullptr, false)));
      rows_.push_back(std::move(row));
      return {};
    }
    BOLTBEAM_TRY(RequireQuiet());
    BOLTBEAM_ASSIGN(Row row, NewContest(part)->Time());
    BOLTBEAM_TRY(base::WriteFileAtomically(path, ToJson(row).dump(1) + "\n"));
    rows_.push_back(std::move(row));
    return {};
  }

  const Options& options_;
  chip::Chip chip_;
  std::unique_ptr<runtime::KernelCache> kernels_;
  std::unique_ptr<TimingBench> bench_;
  std::unique_ptr<Record> record_;
  std::vector<Row> rows_;
};

Result<void> Main(int argc, char** argv) {
  BOLTBEAM_ASSIGN(const Options options, Parse(argc, argv));
  if (!options.is_prepare) BOLTBEAM_TRY(RequireQuiet());
  BOLTBEAM_ASSIGN(const std::unique_ptr<Bench> bench, Bench::Create(options));
  const Result<void> done = bench->Run();
  if (!bench->rows().empty()) std::fputs(TableText(bench->rows()).c_str(), stdout);
  return done;
}

}  // namespace
}  // namespace boltbeam::search

int main(int argc, char** argv) {
  if (const auto done = boltbeam::search::Main(argc, argv); !done) {
    std::fprintf(stderr, "search_bench: %s\n", done.error().Message().c_str());
    return 1;
  }
  return 0;
}
