#include "audit/compare/peer.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "audit/compare/operation_lines.h"
#include "audit/import/numbers.h"
#include "base/paths.h"
#include "base/printable.h"
#include "base/shell.h"
#include "base/temporary_folder.h"
#include "base/ticks.h"
#include "measure/environment.h"
#include "measure/printed_rate.h"

namespace boltbeam::audit {
namespace {

namespace fs = std::filesystem;

constexpr double kNsPerSecond = 1e9;
constexpr std::uint64_t kPromptTokens = 13;  // no tensor of a model has this side
constexpr std::uint64_t kKvStep = 256;       // positions by which its cache grows
constexpr double kTimingsPerWindow = 3;      // of time
constexpr std::uint64_t kFewRows = 64;       // of a table whose time is mostly what an operation costs by itself
constexpr int kPlacements = 4;               // of a cache's pages, each in a process of its own
constexpr const char* kBench = "llama-bench";

bool IsProgram(const fs::path& path) { return access(path.c_str(), X_OK) == 0 && !fs::is_directory(path); }

Peer PeerIn(const fs::path& folder) {
  Peer peer{(folder / kBench).string(), {}, {}};
  for (const auto& [name, path] :
       {std::pair{"test-export-graph-ops", &peer.exporter}, std::pair{"test-backend-ops", &peer.operations}}) {
    if (IsProgram(folder / name)) *path = (folder / name).string();
  }
  return peer;
}

Result<std::string> RunPeer(const std::string& command) {
  auto output = base::RunProgram(command);
  if (output) return output;
  return Fail(Code::kPeerFailed, output.error().where, output.error().found,
              "a run that succeeds; its messages are above");
}

// Of the programs that this process ran and awaited.
double ChildrenCpuNs() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto ns = [](const timeval& time) {
    return 1e9 * static_cast<double>(time.tv_sec) + 1e3 * static_cast<double>(time.tv_usec);
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// A program of one thread that computed all the time: what its CPU time lacks it waited.
bool WasDisturbed(double wall_ns, double cpu_ns) {
  measure::Counters counters;
  counters.waits_known = true;
  counters.waited_ns = static_cast<std::uint64_t>(std::max(0.0, wall_ns - cpu_ns));
  return measure::CausesBetween({}, counters, wall_ns).any();
}

// Times the lines of a token's operations, each process with a window of tokens before it.
class OperationTimer {
 public:
  OperationTimer(const Peer& peer, const PartTiming& timing, base::TemporaryFolder&& folder)
      : peer_(peer), timing_(timing), folder_(std::move(folder)) {}

  Result<std::vector<TimedOperation>> Run(const std::string& model) {
    BOLTBEAM_ASSIGN(const std::string lines, Export(model));
    std::string small;  // what reads no tables: all in one process
    std::vector<OperationLine> streaming;
    for (std::string_view rest = lines; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      auto line = OperationLine::Parse(rest.substr(0, end));
      if (line && (line->IsProduct() || line->IsAttention())) {
        streaming.push_back(std::move(*line));
      } else {
        small.append(rest.substr(0, end)).append("\n");
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    std::vector<TimedOperation> operations;
    if (!small.empty()) {
      BOLTBEAM_ASSIGN(operations, Time(small));
    }
    for (const OperationLine& line : streaming) BOLTBEAM_TRY(AddStreaming(line, operations));
    if (operations.empty()) return Fail(Code::kPeerFailed, "test-backend-ops", "no timed operation", "a CPU backend");
    return operations;
  }

 private:
  Result<std::string> Export(const std::string& model) {
    const fs::path all = folder_.path() / "all.txt";
    const std::uint64_t positions = (timing_.depth / kKvStep + 1) * kKvStep;
    BOLTBEAM_TRY(
        RunPeer(fmt::format("{} -m {} -c {} -ub {} -o {} >/dev/null 2>&1", base::ShellQuoted(peer_.exporter),
                            base::ShellQuoted(model), positions, kPromptTokens, base::ShellQuoted(all.string()))));
    BOLTBEAM_ASSIGN(const std::string exported, base::ReadWholeFile(all));
    return LinesOfOneToken(exported, kPromptTokens);
  }

  // A window of tokens first, unless windows have had their share of the time.
  Result<std::vector<TimedOperation>> Time(const std::string& lines) {
    if (timing_.between && kTimingsPerWindow * between_s_ <= timed_s_) {
      const std::uint64_t begin = base::MonotonicNs();
      BOLTBEAM_TRY(timing_.between());
      between_s_ += base::SecondsSince(begin);
    }
    const std::uint64_t begin = base::MonotonicNs();
    const fs::path file = folder_.path() / "lines.txt";
    BOLTBEAM_TRY(base::WriteFileAtomically(file, lines));
    BOLTBEAM_ASSIGN(const std::string output,
                    RunPeer(fmt::format("{} perf -b CPU --test-file {} --output sql 2>/dev/null",
                                        base::ShellQuoted(peer_.operations), base::ShellQuoted(file.string()))));
    BOLTBEAM_ASSIGN(const imports::Imported imported, imports::ImportText("test-backend-ops", output));
    timed_s_ += base::SecondsSince(begin);
    return TimedOperations(imported);
  }

  Result<void> AddStreaming(const OperationLine& exported, std::vector<TimedOperation>& operations) {
    const OperationLine line = exported.IsAttention() ? AtPositions(exported, timing_.positions) : exported;
    BOLTBEAM_ASSIGN(std::vector<TimedOperation> own, Time(line.Text() + "\n"));
    if (own.empty()) return {};  // its backend does not support it
    TimedOperation& operation = own.front();
    const Stacked stacked = StackTo(line, timing_.cold_bytes);
    if (stacked.copies > 1) {
      BOLTBEAM_ASSIGN(const double together, line.IsAttention() ? Placed(stacked.line) : Once(stacked.line));
      // One operation on many tables pays once for what each of them pays for in a token: the vector's quantisation,
      // the start. A table of a few rows tells how much that is.
      constexpr auto few_rows = static_cast<double>(kFewRows);
      double start = 0;
      if (const double rows = static_cast<double>(line.sources[0].shape[1]); line.IsProduct() && rows > few_rows) {
        BOLTBEAM_ASSIGN(const double few, Once(WithRows(line, kFewRows)));
        start = std::clamp(few - few_rows * (operation.ns - few) / (rows - few_rows), 0.0, few);
      }
      operation.hot_ns = operation.ns;
      operation.ns = start + (together - start) / stacked.copies;
    }
    operations.push_back(std::move(operation));
    return {};
  }

  // Attention reads its cache in strides, which is as fast as the pages happen to lie: 437 to 535 us seen for one
  // layer. Every window of tokens is another process, so this is the mean of several.
  Result<double> Placed(const OperationLine& line) {
    double sum = 0;
    for (int process = 0; process < kPlacements; ++process) {
      BOLTBEAM_ASSIGN(const double ns, TimeOne(line.Text() + "\n"));
      sum += ns;
    }
    return sum / kPlacements;
  }

  // A line that may stand for several operations: timed once.
  Result<double> Once(const OperationLine& line) {
    const std::string text = line.Text() + "\n";
    const auto known = known_ns_.find(text);
    if (known != known_ns_.end()) return known->second;
    BOLTBEAM_ASSIGN(const double ns, TimeOne(text));
    return known_ns_[text] = ns;
  }

  // Nanoseconds of one line.
  Result<double> TimeOne(const std::string& text) {
    BOLTBEAM_ASSIGN(const std::vector<TimedOperation> timed, Time(text));
    if (timed.empty()) return Fail(Code::kPeerFailed, "test-backend-ops", "no time of " + text, "one");
    return timed.front().ns;
  }

  const Peer& peer_;
  const PartTiming& timing_;
  base::TemporaryFolder folder_;
  std::map<std::string, double> known_ns_;
  double between_s_ = 0, timed_s_ = 0;
};

bool HasSide(std::string_view line, std::string_view side) {
  while (!line.empty()) {
    line = imports::Trim(line);
    const std::size_t end = std::min(line.find(' '), line.size());
    if (line.substr(0, end) == side) return true;
    line.remove_prefix(end);
  }
  return false;
}

}  // namespace

Result<Peer> FindPeer(const std::string& where) {
  if (!where.empty()) {
    const fs::path path(where);
    const fs::path folder = fs::is_directory(path) ? path : path.parent_path();
    const fs::path bench = fs::is_directory(path) ? path / kBench : path;
    if (!IsProgram(bench)) {
      return Fail(Code::kPeerMissing, where, "no program llama-bench there",
                  "llama.cpp's folder of programs, or llama-bench");
    }
    Peer peer = PeerIn(folder);
    peer.bench = bench.string();
    return peer;
  }
  const char* variable = std::getenv("PATH");
  std::string_view paths = variable == nullptr ? "" : variable;
  while (!paths.empty()) {
    const std::size_t end = std::min(paths.find(':'), paths.size());
    const fs::path folder(paths.substr(0, end));
    if (!folder.empty() && IsProgram(folder / kBench)) return PeerIn(folder);
    paths.remove_prefix(std::min(end + 1, paths.size()));
  }
  return Fail(Code::kPeerMissing, "PATH", "no llama-bench", "llama.cpp installed, or --peer FOLDER, or --command CMD");
}

Result<PeerWindow> RunPeerWindow(const Peer& peer, const std::string& model, const PeerRun& run) {
  const double cpu_before_ns = ChildrenCpuNs();
  const std::uint64_t begin = base::MonotonicNs();
  BOLTBEAM_ASSIGN(const std::string output,
                  RunPeer(fmt::format("{} -m {} -t {} -p 0 -n {} -d {} -r 1 --repack {} -o json 2>/dev/null",
                                      base::ShellQuoted(peer.bench), base::ShellQuoted(model), run.threads, run.tokens,
                                      run.depth, run.repack ? 1 : 0)));
  const auto wall_ns = static_cast<double>(base::MonotonicNs() - begin);
  PeerWindow window;
  if (run.threads == 1) window.disturbed = WasDisturbed(wall_ns, ChildrenCpuNs() - cpu_before_ns);
  BOLTBEAM_ASSIGN(const imports::Imported imported, imports::ImportText("llama-bench", output));
  for (const imports::Rate& rate : imported.rates) {
    if (!rate.tok_s || *rate.tok_s <= 0) continue;
    window.token_ns = kNsPerSecond / *rate.tok_s;
    return window;
  }
  return Fail(Code::kPeerFailed, "llama-bench", "no rate", "tokens per second in its JSON");
}

Result<double> CommandTokenNs(const std::string& command) {
  BOLTBEAM_ASSIGN(const std::string output, RunPeer(command));
  const auto rate = measure::TokensPerSecond(output);
  if (!rate) return Fail(Code::kPeerFailed, base::Printable(command), rate.error().found, rate.error().expected);
  return kNsPerSecond / *rate;
}

std::string LinesOfOneToken(std::string_view exported, std::uint64_t prompt) {
  std::string kept;
  const std::string side = fmt::format("{}", prompt);
  while (!exported.empty()) {
    const std::size_t end = std::min(exported.find('\n'), exported.size());
    const std::string_view line = exported.substr(0, end);
    if (!imports::Trim(line).empty() && !HasSide(line, side)) kept.append(line).append("\n");
    exported.remove_prefix(std::min(end + 1, exported.size()));
  }
  return kept;
}

std::vector<TimedOperation> TimedOperations(const imports::Imported& imported) {
  std::vector<TimedOperation> operations;
  for (const imports::Row& row : imported.rows) {
    const std::size_t open = row.name.find('(');
    if (row.kind != imports::RowKind::kOperation || open == std::string::npos || !row.total_ns) continue;
    const std::string_view inside = std::string_view(row.name).substr(open + 1, row.name.size() - open - 2);
    auto operation = imports::ParseOperation(row.name.substr(0, open), inside);
    if (operation) operations.push_back({std::move(*operation), *row.total_ns});
  }
  return operations;
}

Result<std::vector<TimedOperation>> PeerOperations(const Peer& peer, const std::string& model,
                                                   const PartTiming& timing) {
  if (peer.exporter.empty() || peer.operations.empty()) {
    return Fail(Code::kPeerMissing, fs::path(peer.bench).parent_path().string(),
                "no test-export-graph-ops or no test-backend-ops", "llama.cpp's test programs beside llama-bench");
  }
  BOLTBEAM_ASSIGN(base::TemporaryFolder folder, base::TemporaryFolder::Make());
  return OperationTimer(peer, timing, std::move(folder)).Run(model);
}

}  // namespace boltbeam::audit
