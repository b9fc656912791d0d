#include "audit/compare/peer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "audit/import/numbers.h"
#include "base/paths.h"
#include "base/printable.h"
#include "base/shell.h"
#include "measure/printed_rate.h"

namespace boltbeam::audit {
namespace {

namespace fs = std::filesystem;

constexpr double kNsPerSecond = 1e9;
constexpr std::uint64_t kPromptTokens = 13;  // no tensor of a model has this side
constexpr std::uint64_t kKvStep = 256;       // positions by which its cache grows
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

// A folder of its own, gone again with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "boltbeam-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Result<std::string> Run(const std::string& command) {
  auto output = base::RunProgram(command);
  if (output) return output;
  return Fail(Code::kPeerFailed, output.error().where, output.error().found,
              "a run that succeeds; its messages are above");
}

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

Result<double> PeerTokenNs(const Peer& peer, const std::string& model, const PeerRun& run) {
  BOLTBEAM_ASSIGN(const std::string output,
                  Run(fmt::format("{} -m {} -t {} -p 0 -n {} -d {} -r 1 --repack {} -o json 2>/dev/null",
                                  base::ShellQuoted(peer.bench), base::ShellQuoted(model), run.threads, run.tokens,
                                  run.depth, run.repack ? 1 : 0)));
  BOLTBEAM_ASSIGN(const imports::Imported imported, imports::ImportText("llama-bench", output));
  for (const imports::Rate& rate : imported.rates) {
    if (rate.tok_s && *rate.tok_s > 0) return kNsPerSecond / *rate.tok_s;
  }
  return Fail(Code::kPeerFailed, "llama-bench", "no rate", "tokens per second in its JSON");
}

Result<double> CommandTokenNs(const std::string& command) {
  BOLTBEAM_ASSIGN(const std::string output, Run(command));
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

Result<std::vector<TimedOperation>> PeerOperations(const Peer& peer, const std::string& model, std::uint64_t depth) {
  if (peer.exporter.empty() || peer.operations.empty()) {
    return Fail(Code::kPeerMissing, fs::path(peer.bench).parent_path().string(),
                "no test-export-graph-ops or no test-backend-ops", "llama.cpp's test programs beside llama-bench");
  }
  const TemporaryFolder folder;
  const fs::path all = folder.path() / "all.txt", one = folder.path() / "one.txt";
  const std::uint64_t positions = (depth / kKvStep + 1) * kKvStep;
  BOLTBEAM_TRY(Run(fmt::format("{} -m {} -c {} -ub {} -o {} >/dev/null 2>&1", base::ShellQuoted(peer.exporter),
                               base::ShellQuoted(model), positions, kPromptTokens, base::ShellQuoted(all.string()))));
  BOLTBEAM_ASSIGN(const std::string exported, base::ReadWholeFile(all));
  BOLTBEAM_TRY(base::WriteFileAtomically(one, LinesOfOneToken(exported, kPromptTokens)));
  BOLTBEAM_ASSIGN(const std::string output,
                  Run(fmt::format("{} perf -b CPU --test-file {} --output sql 2>/dev/null",
                                  base::ShellQuoted(peer.operations), base::ShellQuoted(one.string()))));
  BOLTBEAM_ASSIGN(const imports::Imported imported, imports::ImportText("test-backend-ops", output));
  std::vector<TimedOperation> operations = TimedOperations(imported);
  if (operations.empty()) return Fail(Code::kPeerFailed, "test-backend-ops", "no timed operation", "a CPU backend");
  return operations;
}

}  // namespace boltbeam::audit
