#include "compare_live.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
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

constexpr int kRepackedRuns = 3;
constexpr double kBeyondCaches = 1.25;           // a set read again and again: hardly any of it stays
constexpr double kUnknownCacheBytes = 64 << 20;  // of the last level, where the machine does not say

using TheirWindow = std::function<Result<double>()>;

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

Result<audit::Account> Account(const Globals& globals, const LiveArguments& arguments, const model::Model& model,
                               engine::Engine& engine, engine::Session& session) {
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  audit::Options options;
  options.depths = {arguments.depth};
  options.seconds = arguments.seconds;
  options.cache_bytes =
      static_cast<std::uint64_t>(machine.Get("l3_bytes").value_or(machine.Get("l2_bytes").value_or(0)));
  std::vector<int> cpus = chip::UsableCpus();
  cpus.resize(1);
  runtime::KernelCache kernels(codegen::TargetFor(machine), (paths.cache / "kernels").string());
  const std::uint64_t token_bytes =
      audit::MemoryBytes(audit::PartFloors(model, arguments.depth, engine.options().cache));
  BOLTBEAM_ASSIGN(const auto bandwidth, audit::ProbeBandwidth::Create(kernels, machine, cpus, token_bytes));
  BOLTBEAM_ASSIGN(const audit::Audit audit, audit::RunAudit(engine, session, *bandwidth, options, {{}, Interrupted}));
  return audit.accounts.front();
}

Result<void> OneThread(const Globals& globals, const LiveArguments& arguments, const model::Model& model,
                       const audit::Peer& peer, audit::LiveFindings& findings) {
  const cpu_set_t all = AllCpus();
  EngineFlags flags = arguments.engine;
  flags.threads = 1;
  BOLTBEAM_ASSIGN(const auto engine, LoadEngine(globals, model, flags, ContextNeeded(arguments)));
  BOLTBEAM_ASSIGN(const auto session, engine->NewSession());
  {
    Progress progress("one thread");
    const TheirWindow theirs =
        OnAllCpus(all, [&] { return audit::PeerTokenNs(peer, arguments.model, RunOf(arguments, 1, false)); });
    BOLTBEAM_ASSIGN(findings.one_thread, audit::Interleave(*engine, *session, theirs, Windows(arguments, progress)));
  }
  const TheirWindow repacked =
      OnAllCpus(all, [&] { return audit::PeerTokenNs(peer, arguments.model, RunOf(arguments, 1, true)); });
  std::vector<double> windows;
  for (int run = 0; run < kRepackedRuns; ++run) {
    BOLTBEAM_ASSIGN(const double ns, repacked());
    windows.push_back(ns);
  }
  findings.theirs_repacked_ns = measure::Median(windows);
  BOLTBEAM_TRY(session->Truncate(0));
  BOLTBEAM_ASSIGN(findings.account, Account(globals, arguments, model, *engine, *session));
  return {};
}

// Tables that are timed together: more than the last-level cache keeps.
Result<std::uint64_t> ColdBytes(const Globals& globals) {
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  return static_cast<std::uint64_t>(kBeyondCaches * machine.Get("l3_bytes").value_or(kUnknownCacheBytes));
}

// Its parts, and tokens of it among them.
Result<void> TheirParts(const LiveArguments& arguments, const model::Model& model, const audit::Peer& peer,
                        std::uint64_t cold_bytes, audit::LiveFindings& findings) {
  const TheirWindow theirs =
      OnAllCpus(AllCpus(), [&] { return audit::PeerTokenNs(peer, arguments.model, RunOf(arguments, 1, false)); });
  Status status("llama.cpp's operations, one by one:");
  audit::PartTiming timing;
  timing.depth = arguments.depth;
  timing.positions = findings.positions = RunOf(arguments, 1, false).Positions();
  timing.cold_bytes = cold_bytes;
  timing.between = [&]() -> Result<void> {
    if (Interrupted()) return Fail(Code::kInterrupted, "compare", "Ctrl-C");
    BOLTBEAM_ASSIGN(const double ns, theirs());
    findings.among_parts_ns.push_back(ns);
    status.Show(fmt::format("{} windows of its tokens among them", findings.among_parts_ns.size()));
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
    return [&] { return audit::CommandTokenNs(arguments.command); };
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
  if (!arguments.command.empty()) return WithCommand(globals, arguments, model);
  BOLTBEAM_ASSIGN(const audit::Peer peer, audit::FindPeer(arguments.peer));
  audit::LiveFindings findings;
  const auto theirs = [&](std::uint32_t threads) -> TheirWindow {
    return [&, threads] { return audit::PeerTokenNs(peer, arguments.model, RunOf(arguments, threads, true)); };
  };
  BOLTBEAM_ASSIGN(findings.fastest, Fastest(globals, arguments, model, theirs, findings.threads));
  BOLTBEAM_TRY(OneThread(globals, arguments, model, peer, findings));
  BOLTBEAM_ASSIGN(const std::uint64_t cold_bytes, ColdBytes(globals));
  BOLTBEAM_TRY(TheirParts(arguments, model, peer, cold_bytes, findings));
  BOLTBEAM_TRY(TheirBetween(arguments, model, peer, cold_bytes, findings));
  const audit::Comparison comparison = audit::CompareLive(findings, "llama.cpp");
  BOLTBEAM_TRY(WriteOutput(globals, report::CompareReport({&comparison, 1}, globals.format)));
  constexpr const char* kCure = "within 10 %: a quieter machine, or more time (--seconds)";
  for (const audit::Term& term : comparison.terms) {
    if (term.IsWithinBudget()) continue;
    return Fail(Code::kMeasurementUnstable, term.name, fmt::format("{:.1f} us", term.DifferenceNs() / 1e3), kCure);
  }
  if (std::fabs(audit::TieOut(findings)) <= audit::kTiesOut) return {};
  return Fail(Code::kMeasurementUnstable, "llama.cpp's parts and what is between them",
              fmt::format("{:+.1f} % off its own token", 100 * audit::TieOut(findings)), kCure);
}

}  // namespace boltbeam::app
