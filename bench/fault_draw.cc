// Faults put into tokens on purpose, drawn blindly over kinds and rows, and what the audit says of each: the confusion
// table.
//
//   fault_draw [--seed 1] [--faults 40] [--clean 20] [--seconds 1] [--layers 12] [--list]
//
// Every fault is first weighed: tokens with it and without it in turns, A B B A. One that is worth less than 2 % of the
// token is drawn again. Then the audit runs as it would for anyone; its largest finding, kind and row, is compared with
// what was drawn. Bandwidth is taken, and a quota set, by means of the system: another process, a control group.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>

#include "audit/audit.h"
#include "audit/floors.h"
#include "audit/plan_facts.h"
#include "audit/probe_bandwidth.h"
#include "audit/why.h"
#include "base/ticks.h"
#include "fault_system.h"
#include "measure/bench.h"
#include "measure/statistics.h"
#include "model/synth.h"

namespace boltbeam {
namespace {

constexpr double kLeastWorth = 0.02;
constexpr std::uint32_t kThreads = 2;

struct Arguments {
  std::uint64_t seed = 1;
  std::size_t faults = 40, clean = 20;
  double seconds = 1;
  std::uint32_t layers = 12;
  bool verbose = false;
  std::string only;
  std::string in_quota;  // a stage's folder: be the program that has a quota
};

enum class Kind : std::uint8_t {
  kClean,
  kSlowKernel,
  kSlowBarrier,
  kLateThread,
  kScattered,
  kLaunches,
  kTaken,
  kQuota
};

/// What the audit calls each.
std::string NameOf(Kind kind) {
  static const std::map<Kind, std::string> kNames = {{Kind::kClean, "none"},          {Kind::kSlowKernel, "compute"},
                                                     {Kind::kSlowBarrier, "barrier"}, {Kind::kLateThread, "imbalance"},
                                                     {Kind::kScattered, "rate"},      {Kind::kLaunches, "toll"},
                                                     {Kind::kTaken, "taken"},         {Kind::kQuota, "throttled"}};
  return kNames.at(kind);
}

bool HasRow(Kind kind) {
  return kind == Kind::kSlowKernel || kind == Kind::kLateThread || kind == Kind::kScattered || kind == Kind::kLaunches;
}

struct Fault {
  Kind kind = Kind::kClean;
  std::string row;
  double aim = 0.06;  // of the token
  std::uint32_t thread = 0;
};

struct Said {
  std::string kind = "none", row;
  double share = 0;  // of the token
  std::string words;
};

template <typename T>
T Must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "fault_draw: {}\n", result.error().Message());
  std::exit(1);
}

class Stage {
 public:
  explicit Stage(const Arguments& arguments) : arguments_(arguments), is_owner_(arguments.in_quota.empty()) {
    folder_ = is_owner_ ? std::filesystem::temp_directory_path() / fmt::format("boltbeam_faults_{}", getpid())
                        : std::filesystem::path(arguments.in_quota);
    const std::string path = (folder_ / "model.gguf").string();
    if (is_owner_) {
      std::filesystem::create_directories(folder_);
      model::SynthOptions synth;
      synth.layers = arguments.layers;
      const Result<void> written = model::WriteSynth(Must(model::PlanSynth("qwen3-0.6b:Q4_K_M", synth)), path, synth);
      if (!written) Must<int>(std::unexpected(written.error()));
    }
    model_ = std::make_unique<model::Model>(Must(model::Model::Load(path)));
    machine_ = Must(chip::DetectThisMachine());
    kernels_ = std::make_unique<runtime::KernelCache>(codegen::TargetFor(machine_), folder_.string());
    cpus_ = chip::UsableCpus();
    for (const std::uint32_t threads : {1U, kThreads}) {
      if (is_owner_ || threads == kThreads) AddThreads(threads);
    }
  }
  ~Stage() {
    clean_.clear();
    if (is_owner_) std::filesystem::remove_all(folder_);
  }

  /// In the program that has a quota: what it costs and what is said of it, on one line.
  void RunInQuota() {
    constexpr double kCpus = 1.7;
    std::optional<QuotaGroup> group = QuotaGroup::Create(kCpus);
    if (!group) std::exit(1);
    double without = 0, with = 0;
    {
      const auto session = Must(clean_.at(kThreads)->NewSession());
      without = TokenNs(*session, 100);
      group->Enter();
      with = TokenNs(*session, 100);
    }
    const Said said = Audit(*clean_.at(kThreads), kThreads);
    group->Leave();
    fmt::print("{} {} {} {}\n", with / without - 1, said.kind, said.share, said.words);
  }

  /// The fault as engine options, or by means of the system; nullopt when it can't be made to be worth enough here.
  struct Trial {
    double worth = 0;
    Said said;
  };
  std::optional<Trial> Try(const Fault& fault) {
    const std::uint32_t threads = fault.kind == Kind::kTaken ? 1 : kThreads;
    if (fault.kind == Kind::kClean) return Trial{0, Audit(*clean_.at(threads), threads)};
    if (fault.kind == Kind::kTaken) return TryTaken(threads);
    if (fault.kind == Kind::kQuota) return TryQuota();
    double scale = 1;
    for (int attempt = 0; attempt < 3; ++attempt, scale *= 1.6) {
      const auto engine = Must(Load(OptionsFor(fault, threads, scale)));
      const double worth = Worth(*clean_.at(threads), *engine);
      if (worth >= kLeastWorth) return Trial{worth, Audit(*engine, threads)};
    }
    return std::nullopt;
  }

 private:
  void AddThreads(std::uint32_t threads) {
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

  Result<std::unique_ptr<engine::Engine>> Load(engine::Options options) {
    options.context = 256;
    options.cache_folder = folder_.string();
    return engine::Engine::Load(*model_, machine_, options);
  }

  Result<audit::Audit> Run(engine::Engine& engine, std::uint32_t threads) {
    audit::Options options;
    options.seconds = arguments_.seconds;
    options.cache_bytes = measure::LastLevelCacheBytes(machine_);
    options.plans = Must(audit::PartPlans(engine, machine_, machine_));
    options.facts.reference_gb_s = reference_gb_s_[threads];
    const auto session = Must(engine.NewSession());
    return audit::RunAudit(engine, *session, *bandwidth_[threads], options);
  }

  /// The largest finding of an audit. One that is refused says why, too.
  Said Audit(engine::Engine& engine, std::uint32_t threads) {
    const Result<audit::Audit> audit = Run(engine, threads);
    if (!audit) return {"refused", "", 0, audit.error().Message()};
    const audit::Account& account = audit->accounts[0];
    if (arguments_.verbose) Explain(account, *audit);
    const std::optional<audit::Finding> finding = audit::FindingOf(account);
    if (!finding) return {};
    return {finding->cause->kind, finding->cause->role, finding->recoverable_ns / account.token.now_ns,
            fmt::format("{} {}", finding->cause->format, finding->cause->evidence)};
  }

  static void Explain(const audit::Account& account, const audit::Audit& audit) {
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
      fmt::print("    {:9} {:12} {:5} {:6.0f} us: {}\n", cause.kind, cause.role, cause.format,
                 cause.recoverable_ns / 1e3, cause.evidence);
    }
  }

  engine::Options OptionsFor(const Fault& fault, std::uint32_t threads, double scale) {
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
      case Kind::kSlowKernel:  // what hides behind the memory, and what is to show
        options.slow_part = fault.row;
        options.slow_turns = whole((row_ns - hot_ns + aim_ns) / kNsPerTurn / GroupsOf(fault.row, threads));
        break;
      case Kind::kSlowBarrier:
        options.faults.barrier_ns = whole(aim_ns / account.barriers);
        break;
      case Kind::kLateThread:
        options.faults.late_thread = fault.thread;
        options.faults.late_ns = whole(aim_ns / steps);
        break;
      case Kind::kScattered:
        options.faults.scattered = true;
        break;
      case Kind::kLaunches:
        options.faults.launches = 1 + whole(aim_ns / steps / kBarrierAndStartNs);
        break;
      default:
        break;
    }
    return options;
  }

  /// Row groups of a thread's shares of all tables of the row.
  double GroupsOf(const std::string& row, std::uint32_t threads) const {
    double groups = 0;
    for (const model::Operation& operation : model::BuildTokenGraph(*model_, {})) {
      if (operation.kind != model::OpKind::kMatmul || operation.role != row) continue;
      const auto geometry = kernel::DefaultGeometry(*operation.weights->format, kernel::VectorFactsOf(machine_), false);
      groups += static_cast<double>(operation.rows) / geometry.rows();
    }
    return groups / threads;
  }

  /// By how much of a token the second takes longer.
  static double Worth(engine::Engine& plain, engine::Engine& faulty) {
    const auto a = Must(plain.NewSession()), b = Must(faulty.NewSession());
    std::vector<double> ratios;
    for (int round = 0; round < 24; ++round) {
      const double first = TokenNs(*a), second = TokenNs(*b), third = TokenNs(*b), fourth = TokenNs(*a);
      if (round >= 4) ratios.push_back((second + third) / (first + fourth));
    }
    return measure::Median(ratios) - 1;
  }
  static double TokenNs(engine::Session& session, int tokens = 2) {
    if (!session.Truncate(0)) return 0;
    if (!session.Decode(1)) return 0;  // wakes the threads
    const std::uint64_t begin = base::MonotonicNs();
    for (int token = 0; token < tokens; ++token) {
      if (!session.Decode(token)) return 0;
    }
    return static_cast<double>(base::MonotonicNs() - begin);
  }

  std::optional<Trial> TryTaken(std::uint32_t threads) {
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

  /// A program of its own in a group with a quota, whose threads have no priority: those are stopped by no quota.
  std::optional<Trial> TryQuota() {
    const std::string command =
        fmt::format("{} --in-quota {} --seconds {}{}", std::filesystem::read_symlink("/proc/self/exe").string(),
                    folder_.string(), arguments_.seconds, arguments_.verbose ? " --verbose" : "");
    std::FILE* pipe = popen(command.c_str(), "r");
    std::string last;
    std::array<char, 4096> line{};
    while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr) {
      if (arguments_.verbose) fmt::print("{}", line.data());
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

  Arguments arguments_;
  bool is_owner_;
  std::filesystem::path folder_;
  std::unique_ptr<model::Model> model_;
  chip::Chip machine_;
  std::unique_ptr<runtime::KernelCache> kernels_;
  std::vector<int> cpus_;
  std::map<std::uint32_t, std::unique_ptr<audit::ProbeBandwidth>> bandwidth_;
  std::map<std::uint32_t, double> reference_gb_s_;
  std::map<std::uint32_t, std::unique_ptr<engine::Engine>> clean_;
  std::map<std::uint32_t, audit::Account> accounts_;
};

Fault Draw(std::mt19937_64& random, const std::string& only) {
  static const std::vector<Kind> kKinds = {Kind::kSlowKernel, Kind::kSlowBarrier, Kind::kLateThread, Kind::kScattered,
                                           Kind::kLaunches,   Kind::kTaken,       Kind::kQuota};
  static const std::vector<std::string> kRows = {"lm_head", "ffn_gate_up", "ffn_down", "attn_qo"};
  const auto below = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  };
  Fault fault;
  do fault.kind = kKinds[below(kKinds.size())];
  while (!only.empty() && NameOf(fault.kind) != only);
  if (HasRow(fault.kind)) fault.row = kRows[below(kRows.size())];
  fault.aim = std::uniform_real_distribution<double>(0.05, 0.12)(random);
  fault.thread = static_cast<std::uint32_t>(below(kThreads));
  return fault;
}

int Main(const Arguments& arguments) {
  if (!arguments.in_quota.empty()) {
    const NoPriority no_priority;
    Stage(arguments).RunInQuota();
    return 0;
  }
  std::mt19937_64 random(arguments.seed);
  Stage stage(arguments);
  std::vector<bool> is_fault(arguments.faults, true);
  is_fault.resize(arguments.faults + arguments.clean, false);
  std::shuffle(is_fault.begin(), is_fault.end(), random);
  std::map<std::string, std::map<std::string, int>> confusion;
  std::size_t right = 0, quiet = 0, redrawn = 0;
  for (std::size_t index = 0; index < is_fault.size(); ++index) {
    Fault fault;
    std::optional<Stage::Trial> trial;
    while (!trial) {
      fault = is_fault[index] ? Draw(random, arguments.only) : Fault{};
      trial = stage.Try(fault);
      if (!trial)
        fmt::print("   - {} {}: can't be made to be worth 2 % here, drawn again\n", NameOf(fault.kind), fault.row);
      if (!trial && ++redrawn > 4 * is_fault.size()) return 1;
    }
    const Said& said = trial->said;
    const bool is_right = said.kind == NameOf(fault.kind) && said.row == fault.row;
    (is_fault[index] ? right : quiet) += is_right ? 1 : 0;
    ++confusion[NameOf(fault.kind)]
               [said.kind == NameOf(fault.kind) && !is_right ? said.kind + ", other row" : said.kind];
    fmt::print("{:4} {} {:9} {:11} worth {:4.1f} %, said {:9} {:11} {:4.1f} % {}\n", index + 1, is_right ? "ok" : "NO",
               NameOf(fault.kind), fault.row, trial->worth * 100, said.kind, said.row, said.share * 100,
               is_right ? "" : said.words);
    std::cout << std::flush;
  }
  fmt::print("\nput in    said\n");
  for (const auto& [truth, row] : confusion) {
    fmt::print("{:9}", truth);
    for (const auto& [said, count] : row) fmt::print(" {}: {};", said, count);
    fmt::print("\n");
  }
  fmt::print("{} of {} faults right, {} of {} clean runs named none, seed {}\n", right, arguments.faults, quiet,
             arguments.clean, arguments.seed);
  return 0;
}

}  // namespace
}  // namespace boltbeam

int main(int argc, char** argv) {
  boltbeam::Arguments arguments;
  CLI::App app("Faults put into tokens on purpose, and what the audit says of them");
  app.add_option("--seed", arguments.seed, "Of what is drawn")->capture_default_str();
  app.add_option("--faults", arguments.faults, "Faults")->capture_default_str();
  app.add_option("--clean", arguments.clean, "Runs without one, among them")->capture_default_str();
  app.add_option("--seconds", arguments.seconds, "Of rounds of each audit")->capture_default_str();
  app.add_option("--layers", arguments.layers, "Of the synthetic model")->capture_default_str();
  app.add_option("--only", arguments.only, "Draw this kind only, by the audit's name");
  app.add_option("--in-quota", arguments.in_quota)->group("");
  app.add_flag("--verbose", arguments.verbose, "Print each account");
  CLI11_PARSE(app, argc, argv);
  return boltbeam::Main(arguments);
}
