#include "fault_stage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "audit/floors.h"
#include "audit/plan_facts.h"
#include "audit/why.h"
#include "base/ticks.h"
#include "fault_system.h"
#include "measure/bench.h"
#include "measure/statistics.h"
#include "model/synth.h"

namespace boltbeam {
namespace {

constexpr double kLeastWorth = audit::kFindingShare;

template <typename T>
T Must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "fault_draw: {}\n", result.error().Message());
  std::exit(1);
}

}  // namespace

std::string NameOf(FaultKind kind) {
  static const std::map<FaultKind, std::string> kNames = {
      {FaultKind::kClean, "none"},           {FaultKind::kSlowKernel, "compute"}, {FaultKind::kSlowBarrier, "barrier"},
      {FaultKind::kLateThread, "imbalance"}, {FaultKind::kScattered, "rate"},     {FaultKind::kLaunches, "toll"},
      {FaultKind::kTaken, "taken"},          {FaultKind::kQuota, "throttled"}};
  return kNames.at(kind);
}

bool HasRow(FaultKind kind) {
  return kind == FaultKind::kSlowKernel || kind == FaultKind::kLateThread || kind == FaultKind::kScattered ||
         kind == FaultKind::kLaunches;
}

Stage::Stage(const StageOptions& given) : options_(given), is_owner_(given.in_quota.empty()) {
  folder_ = is_owner_ ? std::filesystem::temp_directory_path() / fmt::format("boltbeam_faults_{}", getpid())
                      : std::filesystem::path(given.in_quota);
  const std::string path = (folder_ / "model.gguf").string();
  if (is_owner_) {
    std::filesystem::create_directories(folder_);
    model::SynthOptions synth;
    synth.layers = given.layers;
    const Result<void> written = model::WriteSynth(Must(model::PlanSynth("qwen3-0.6b:Q4_K_M", synth)), path, synth);
    if (!written) Must<int>(std::unexpected(written.error()));
  }
  model_ = std::make_unique<model::Model>(Must(model::Model::Load(path)));
  machine_ = Must(chip::DetectThisMachine());
  kernels_ = std::make_unique<runtime::KernelCache>(codegen::TargetFor(machine_), folder_.string());
  cpus_ = chip::UsableCpus();
  for (const std::uint32_t threads : {1U, kFaultThreads}) {
    if (is_owner_ || threads == kFaultThreads) AddThreads(threads);
  }
}

Stage::~Stage() {
  clean_.clear();
  if (is_owner_) std::filesystem::remove_all(folder_);
}

void Stage::RunInQuota() {
  constexpr double kCpus = 1.7;
  std::optional<QuotaGroup> group = QuotaGroup::Create(kCpus);
  if (!group) std::exit(1);
  double without = 0, with = 0;
  {
    const auto session = Must(clean_.at(kFaultThreads)->NewSession());
    without = TokenNs(*session, 100);
    group->Enter();
    with = TokenNs(*session, 100);
  }
  const Said said = Audit(*clean_.at(kFaultThreads), kFaultThreads);
  group->Leave();
  fmt::print("{} {} {} {}\n", with / without - 1, said.kind, said.share, said.words);
}

std::optional<Stage::Trial> Stage::Try(const Fault& fault) {
  const std::uint32_t threads = fault.kind == FaultKind::kTaken ? 1 : kFaultThreads;
  if (fault.kind == FaultKind::kClean) return Trial{0, Audit(*clean_.at(threads), threads)};
  if (fault.kind == FaultKind::kTaken) return TryTaken(threads);
  if (fault.kind == FaultKind::kQuota) return TryQuota();
  // What a turn or a launch costs is another on each chip, and a part of it hides behind the memory: weighed, and made
  // larger until it is about what was drawn.
  constexpr int kAttempts = 4;
  constexpr double kNearAim = 0.7, kMostScale = 3;
  std::unique_ptr<engine::Engine> engine;
  double worth = 0, scale = 1;
  for (int attempt = 0; attempt < kAttempts && worth < kNearAim * fault.aim; ++attempt) {
    if (attempt > 0) scale *= std::clamp(fault.aim / std::max(worth, fault.aim / kMostScale), 1.0, kMostScale);
    engine = Must(Load(OptionsFor(fault, threads, scale)));
    worth = Worth(*clean_.at(threads), *engine);
    if (fault.kind == FaultKind::kScattered) break;  // loads are out of order or they are not
  }
  if (worth < kLeastWorth) return std::nullopt;
  return Trial{worth, Audit(*engine, threads)};
}

void Stage::AddThreads(std::uint32_t threads) {
  std::vector<int> cpus(cpus_.begin(), cpus_.begin() + threads);
  const std::uint64_t bytes = audit::MemoryBytes(audit::PartFloors(*model_, 0, {}));
  bandwidth_[threads] = Must(audit::ProbeBandwidth::Create(*kernels_, machine_, cpus, bytes));
  std::vector<double> readings;
  for (int i = 0; i < 41; ++i) readings.push_back(std::ranges::max(bandwidth_[threads]->Read()));
  reference_gb_s_[threads] = measure::Median(readings);
  engine::Options options;
  options.threads = threads;
  clean_[threads] = Must(Load(options));
  accounts_[threads] = Must(Run(*clean_[threads], threads)).accounts[0];
}

Result<std::unique_ptr<engine::Engine>> Stage::Load(engine::Options options) {
  options.context = 256;
  options.cache_folder = folder_.string();
  return engine::Engine::Load(*model_, machine_, options);
}

Result<audit::Audit> Stage::Run(engine::Engine& engine, std::uint32_t threads) {
  audit::Options options;
  options.seconds = options_.seconds;
  options.cache_bytes = measure::LastLevelCacheBytes(machine_);
  options.plans = Must(audit::PartPlans(engine, machine_, machine_));
  options.facts.reference_gb_s = reference_gb_s_[threads];
  const auto session = Must(engine.NewSession());
  return audit::RunAudit(engine, *session, *bandwidth_[threads], options);
}

Said Stage::Audit(engine::Engine& engine, std::uint32_t threads) {
  constexpr int kMostRepeats = 2;  // of one that is refused because the machine was not quiet: as a person does
  Result<audit::Audit> audit = Run(engine, threads);
  for (int repeat = 0; repeat < kMostRepeats && !audit; ++repeat) {
    if (audit.error().code != Code::kMeasurementUnstable) break;
    fmt::print("   - refused, repeated: {}\n", audit.error().Message());
    audit = Run(engine, threads);
  }
  if (!audit) return {"refused", "", 0, audit.error().Message()};
  const audit::Account& account = audit->accounts[0];
  if (options_.verbose) Explain(account, *audit);
  const std::optional<audit::Finding> finding = audit::FindingOf(account);
  if (!finding) return {};
  return {finding->cause->kind, finding->cause->role, finding->recoverable_ns / account.token.now_ns,
          fmt::format("{} {}", finding->cause->format, finding->cause->evidence)};
}

void Stage::Explain(const audit::Account& account, const audit::Audit& audit) {
  fmt::print("  token {:.0f} us, floor {:.0f}, gaps {:.0f}, {:.2f} GB/s, band {:.1f} %, others {:.2f} CPUs\n",
             account.token.now_ns / 1e3, account.token.floor_ns / 1e3, account.token.gaps_ns / 1e3,
             account.read_bandwidth_gb_s, account.band * 100, audit.facts.other_cpus);
  for (const audit::Part& part : account.parts) {
    if (part.share < 0.02) continue;
    fmt::print("    {:12} {:5} floor {:6.0f} now {:6.0f} cold {:6.0f} hot {:6.0f} threads", part.role, part.format,
               part.floor_ns / 1e3, part.now_ns / 1e3, part.cold_ns / 1e3, part.hot_ns / 1e3);
    for (const double ns : part.thread_ns) fmt::print(" {:.0f}", ns / 1e3);
    fmt::print(" {}\n", part.cause);
  }
  for (const audit::Cause& cause : account.causes) {
    fmt::print("    {:9} {:12} {:5} {:6.0f} us: {}\n", cause.kind, cause.role, cause.format, cause.recoverable_ns / 1e3,
               cause.evidence);
  }
}

engine::Options Stage::OptionsFor(const Fault& fault, std::uint32_t threads, double scale) {
  engine::Options options;
  options.threads = threads;
  const audit::Account& account = accounts_.at(threads);
  const double aim_ns = fault.aim * scale * account.token.now_ns;
  double row_ns = 0, hot_ns = 0, steps = 0;
  for (const audit::Part& part : account.parts) {
    if (part.role != fault.row) continue;
    row_ns += part.now_ns;
    hot_ns += part.hot_ns;
    steps += static_cast<double>(part.steps);
  }
  options.faults.part = fault.row;
  const auto whole = [](double value) { return static_cast<std::uint32_t>(std::max(1.0, value)); };
  constexpr double kBarrierAndStartNs = 900, kNsPerTurn = 1.4;
  switch (fault.kind) {
    case FaultKind::kSlowKernel:  // what hides behind the memory, and what is to show
      options.slow_part = fault.row;
      options.slow_turns = whole((row_ns - hot_ns + aim_ns) / kNsPerTurn / GroupsOf(fault.row, threads));
      break;
    case FaultKind::kSlowBarrier:
      options.faults.barrier_ns = whole(aim_ns / account.barriers);
      break;
    case FaultKind::kLateThread:
      options.faults.late_thread = fault.thread;
      options.faults.late_ns = whole(aim_ns / steps);
      break;
    case FaultKind::kScattered:
      options.faults.scattered = true;
      break;
    case FaultKind::kLaunches:
      options.faults.launches = 1 + whole(aim_ns / steps / kBarrierAndStartNs);
      break;
    default:
      break;
  }
  return options;
}

double Stage::GroupsOf(const std::string& row, std::uint32_t threads) const {
  double groups = 0;
  for (const model::Operation& operation : model::BuildTokenGraph(*model_, {})) {
    if (operation.kind != model::OpKind::kMatmul || operation.role != row) continue;
    const auto geometry = kernel::DefaultGeometry(*operation.weights->format, kernel::VectorFactsOf(machine_), false);
    groups += static_cast<double>(operation.rows) / geometry.rows();
  }
  return groups / threads;
}

double Stage::Worth(engine::Engine& plain, engine::Engine& faulty) {
  const auto a = Must(plain.NewSession()), b = Must(faulty.NewSession());
  std::vector<double> ratios;
  for (int round = 0; round < 24; ++round) {
    const double first = TokenNs(*a), second = TokenNs(*b), third = TokenNs(*b), fourth = TokenNs(*a);
    if (round >= 4) ratios.push_back((second + third) / (first + fourth));
  }
  return measure::Median(ratios) - 1;
}

double Stage::TokenNs(engine::Session& session, int tokens) {
  if (!session.Truncate(0)) return 0;
  if (!session.Decode(1)) return 0;  // wakes the threads
  const std::uint64_t begin = base::MonotonicNs();
  for (int token = 0; token < tokens; ++token) {
    if (!session.Decode(token)) return 0;
  }
  return static_cast<double>(base::MonotonicNs() - begin);
}

std::optional<Stage::Trial> Stage::TryTaken(std::uint32_t threads) {
  const MemoryHog hog(cpus_.at(threads));
  std::vector<double> ratios;
  {
    const auto session = Must(clean_.at(threads)->NewSession());
    for (int round = 0; round < 16; ++round) {
      hog.Stop();
      const double without = TokenNs(*session, 4);
      hog.Continue();
      ratios.push_back(TokenNs(*session, 4) / without);
    }
  }
  const double worth = measure::Median(ratios) - 1;
  if (worth < kLeastWorth) return std::nullopt;
  return Trial{worth, Audit(*clean_.at(threads), threads)};
}

std::optional<Stage::Trial> Stage::TryQuota() {
  const std::string command =
      fmt::format("{} --in-quota {} --seconds {}{}", std::filesystem::read_symlink("/proc/self/exe").string(),
                  folder_.string(), options_.seconds, options_.verbose ? " --verbose" : "");
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string last;
  std::array<char, 4096> line{};
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr) {
    if (options_.verbose) fmt::print("{}", line.data());
    last = line.data();
  }
  if (pipe == nullptr || pclose(pipe) != 0) return std::nullopt;
  Trial trial;
  std::istringstream words(last);
  words >> trial.worth >> trial.said.kind >> trial.said.share;
  std::getline(words, trial.said.words);
  if (trial.worth < kLeastWorth) return std::nullopt;
  return trial;
}

}  // namespace boltbeam
