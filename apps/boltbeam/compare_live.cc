#include "compare_live.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>

#include "audit/audit.h"
#include "audit/compare/live.h"
#include "audit/floors.h"
#include "audit/probe_bandwidth.h"
#include "base/paths.h"
#include "chip/facts.h"
#include "measure/bench.h"
#include "report/compare_format.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

constexpr std::size_t kRepackedRuns = 3, kMostRepackedRuns = 9;
constexpr double kBeyondCaches = 1.25;           // a set read again and again: hardly any of it stays
constexpr double kUnknownCacheBytes = 64 << 20;  // of the last level, where the machine does not say

using TheirWindow = std::function<Result<audit::PeerWindow>()>;

// A session pins this thread, and a program started meanwhile would inherit that one CPU: it gets those that this
// process had at first.
class Unpinned {
 public:
  explicit Unpinned(const cpu_set_t& all) {
    sched_getaffinity(0, sizeof pinned_, &pinned_);
    sched_setaffinity(0, sizeof all, &all);
  }
  Unpinned(const Unpinned&) = delete;
  Unpinned& operator=(const Unpinned&) = delete;
  ~Unpinned() { sched_setaffinity(0, sizeof pinned_, &pinned_); }

 private:
  cpu_set_t pinned_{};
};

cpu_set_t AllCpus() {
  cpu_set_t all;
  CPU_ZERO(&all);
  sched_getaffinity(0, sizeof all, &all);
  return all;
}

TheirWindow OnAllCpus(const cpu_set_t& all, TheirWindow window) {
  return [all, window = std::move(window)] {
    const Unpinned unpinned(all);
    return window();
  };
}

audit::InterleaveOptions Windows(const LiveArguments& arguments, Progress& progress) {
  audit::InterleaveOptions options;
  options.depth = arguments.depth;
  options.tokens = arguments.window;
  options.seconds = arguments.seconds;
  options.cancelled = Interrupted;
  options.progress = [&progress](double done, double total) {
    constexpr double kParts = 1000;
    progress.Show(static_cast<std::uint64_t>(done / total * kParts), static_cast<std::uint64_t>(kParts));
  };
  return options;
}

std::uint64_t ContextNeeded(const LiveArguments& arguments) {
  audit::Options options;
  options.depths = {arguments.depth};
  return std::max(audit::ContextNeeded(options), arguments.depth + arguments.window + 1);
}

audit::PeerRun RunOf(const LiveArguments& arguments, std::uint32_t threads, bool repack) {
  return {threads, repack, arguments.window, arguments.depth};
}

// Whole tokens of both, each as it runs by default.
Result<audit::Interleaved> Fastest(const Globals& globals, const LiveArguments& arguments, const model::Model& model,
                                   const std::function<TheirWindow(std::uint32_t threads)>& theirs,
                                   std::uint32_t& threads) {
  const cpu_set_t all = AllCpus();
  BOLTBEAM_ASSIGN(const auto engine, LoadEngine(globals, model, arguments.engine, ContextNeeded(arguments)));
  BOLTBEAM_ASSIGN(const auto session, engine->NewSession());
  threads = engine->options().threads;
  Progress progress("whole tokens");
  return audit::Interleave(*engine, *session, OnAllCpus(all, theirs(threads)), Windows(arguments, progress));
}

// The memory as one thread reads it.
Result<std::unique_ptr<audit::ProbeBandwidth>> Bandwidth(runtime::KernelCache& kernels, const chip::Chip& machine,
                                                         const LiveArguments& arguments, const model::Model& model) {
  BOLTBEAM_ASSIGN(const model::CacheFormats cache, arguments.engine.Cache());
  const std::uint64_t token_bytes = audit::MemoryBytes(audit::PartFloors(model, arguments.depth, cache));
  return audit::ProbeBandwidth::Create(kernels, machine, {chip::UsableCpus().front()}, token_bytes);
}

Result<audit::Account> Account(const chip::Chip& machine, const LiveArguments& arguments,
                               audit::BandwidthSource& bandwidth, engine::Engine& engine, engine::Session& session) {
  audit::Options options;
  options.depths = {arguments.depth};
  options.seconds = arguments.seconds;
  options.cache_bytes =
      static_cast<std::uint64_t>(machine.Get("l3_bytes").value_or(machine.Get("l2_bytes").value_or(0)));
  BOLTBEAM_ASSIGN(const audit::Audit audit, audit::RunAudit(engine, session, bandwidth, options, {{}, Interrupted}));
  return audit.accounts.front();
}

// The median of undisturbed windows; of all, where too many are disturbed.
Result<double> MedianNs(const TheirWindow& window) {
  std::vector<double> all, undisturbed;
  while (undisturbed.size() < kRepackedRuns && all.size() < kMostRepackedRuns) {
    BOLTBEAM_ASSIGN(const audit::PeerWindow one, window());
    all.push_back(one.token_ns);
    if (!one.disturbed.value_or(false)) undisturbed.push_back(one.token_ns);
  }
  return measure::Median(undisturbed.size() < kRepackedRuns ? all : undisturbed);
}

Result<void> OneThread(const Globals& globals, const chip::Chip& machine, const LiveArguments& arguments,
                       const model::Model& model, const audit::Peer& peer, audit::BandwidthSource& bandwidth,
                       audit::LiveFindings& findings) {
  const cpu_set_t all = AllCpus();
  EngineFlags flags = arguments.engine;
  flags.threads = 1;
  BOLTBEAM_ASSIGN(const auto engine, LoadEngine(globals, model, flags, ContextNeeded(arguments)));
  BOLTBEAM_ASSIGN(const auto session, engine->NewSession());
  {
    Progress progress("one thread");
    const TheirWindow theirs =
        OnAllCpus(all, [&] { return audit::RunPeerWindow(peer, arguments.model, RunOf(arguments, 1, false)); });
    audit::InterleaveOptions options = Windows(arguments, progress);
    options.bandwidth = &bandwidth;
    BOLTBEAM_ASSIGN(findings.one_thread, audit::Interleave(*engine, *session, theirs, options));
  }
  const TheirWindow repacked =
      OnAllCpus(all, [&] { return audit::RunPeerWindow(peer, arguments.model, RunOf(arguments, 1, true)); });
  BOLTBEAM_ASSIGN(findings.theirs_repacked_ns, MedianNs(repacked));
  BOLTBEAM_TRY(session->Truncate(0));
  BOLTBEAM_ASSIGN(findings.account, Account(machine, arguments, bandwidth, *engine, *session));
  return {};
}

// Tables that are timed together: more than the last-level cache keeps.
std::uint64_t ColdBytes(const chip::Chip& machine) {
  return static_cast<std::uint64_t>(kBeyondCaches * machine.Get("l3_bytes").value_or(kUnknownCacheBytes));
}

// Its parts, and tokens of it among them.
Result<void> TheirParts(const LiveArguments& arguments, const model::Model& model, const audit::Peer& peer,
                        std::uint64_t cold_bytes, audit::BandwidthSource& bandwidth, audit::LiveFindings& findings) {
  const TheirWindow theirs =
      OnAllCpus(AllCpus(), [&] { return audit::RunPeerWindow(peer, arguments.model, RunOf(arguments, 1, false)); });
  Status status("llama.cpp's operations, one by one:");
  audit::PartTiming timing;
  timing.depth = arguments.depth;
  timing.positions = findings.positions = RunOf(arguments, 1, false).Positions();
  timing.cold_bytes = cold_bytes;
  timing.between = [&]() -> Result<void> {
    if (Interrupted()) return Fail(Code::kInterrupted, "compare", "Ctrl-C");
    BOLTBEAM_ASSIGN(const audit::PeerWindow window, theirs());
    findings.among_parts.push_back(window);
    findings.among_gb_s.push_back(std::ranges::max(bandwidth.Read()));
    status.Show(fmt::format("{} windows of its tokens among them", findings.among_parts.size()));
    return {};
  };
  BOLTBEAM_ASSIGN(const auto operations, audit::PeerOperations(peer, arguments.model, timing));
  findings.matching = audit::MatchOperations(operations, model, arguments.depth);
  return {};
}

// What it does between operations; where that can't be measured the comparison stands without it.
Result<void> TheirBetween(const LiveArguments& arguments, const model::Model& model, const audit::Peer& peer,
                          std::uint64_t cold_bytes, audit::LiveFindings& findings) {
  Status status("llama.cpp's token on a skeleton of the model");
  status.Show("");
  audit::BetweenOptions options;
  options.run = RunOf(arguments, 1, false);
  options.cold_bytes = cold_bytes;
  options.cancelled = Interrupted;
  const Result<audit::Between> between = audit::MeasureBetween(peer, model, options);
  if (Interrupted()) return Fail(Code::kInterrupted, "compare", "Ctrl-C");
  if (between) {
    findings.between = *between;
  } else {
    findings.between_unknown = between.error().Message();
  }
  return {};
}

Result<void> WithCommand(const Globals& globals, const LiveArguments& arguments, const model::Model& model) {
  std::uint32_t threads = 1;
  const auto theirs = [&](std::uint32_t) -> TheirWindow {
    return [&]() -> Result<audit::PeerWindow> {
      BOLTBEAM_ASSIGN(const double ns, audit::CommandTokenNs(arguments.command));
      return audit::PeerWindow{ns};
    };
  };
  BOLTBEAM_ASSIGN(const audit::Interleaved windows, Fastest(globals, arguments, model, theirs, threads));
  audit::Comparison comparison;
  comparison.ours = "boltbeam";
  comparison.theirs = "the command";
  comparison.basis = fmt::format("{} threads; the command as it is", threads);
  comparison.depth = arguments.depth;
  comparison.paired = {windows.Paired(comparison.basis)};
  comparison.ours_token_ns = windows.OursNs();
  comparison.theirs_token_ns = windows.TheirsNs();
  comparison.notes.emplace_back("Whole tokens only: a command shows no parts.");
  return WriteOutput(globals, report::CompareReport({&comparison, 1}, globals.format));
}

}  // namespace

Result<void> CompareWithProgram(const Globals& globals, const LiveArguments& arguments) {
  CatchInterrupts();
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  BOLTBEAM_TRY(measure::RefuseSparse(model));
  for (const std::string& doubt : measure::ReadEnvironment().doubts) Note("before anything is timed: " + doubt);
  if (!arguments.command.empty()) return WithCommand(globals, arguments, model);
  BOLTBEAM_ASSIGN(const audit::Peer peer, audit::FindPeer(arguments.peer));
  audit::LiveFindings findings;
  const auto theirs = [&](std::uint32_t threads) -> TheirWindow {
    return [&, threads] { return audit::RunPeerWindow(peer, arguments.model, RunOf(arguments, threads, true)); };
  };
  BOLTBEAM_ASSIGN(findings.fastest, Fastest(globals, arguments, model, theirs, findings.threads));
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  runtime::KernelCache kernels(codegen::TargetFor(machine), (paths.cache / "kernels").string());
  BOLTBEAM_ASSIGN(const auto bandwidth, Bandwidth(kernels, machine, arguments, model));
  BOLTBEAM_TRY(OneThread(globals, machine, arguments, model, peer, *bandwidth, findings));
  const std::uint64_t cold_bytes = ColdBytes(machine);
  BOLTBEAM_TRY(TheirParts(arguments, model, peer, cold_bytes, *bandwidth, findings));
  BOLTBEAM_TRY(TheirBetween(arguments, model, peer, cold_bytes, findings));
  const audit::Comparison comparison = audit::CompareLive(findings, "llama.cpp");
  BOLTBEAM_TRY(WriteOutput(globals, report::CompareReport({&comparison, 1}, globals.format)));
  return audit::RequireTieOut(comparison, findings);
}

}  // namespace boltbeam::app
