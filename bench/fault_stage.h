// The place where faults are put into tokens: a synthetic model, engines with and without, and the audit of each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "audit/probe_bandwidth.h"
#include "chip/facts.h"
#include "engine/engine.h"
#include "model/model.h"
#include "runtime/code.h"

namespace boltbeam {

inline constexpr std::uint32_t kFaultThreads = 2;

enum class FaultKind : std::uint8_t {
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
std::string NameOf(FaultKind kind);

bool HasRow(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kClean;
  std::string row;
  double aim = 0.06;  // of the token
  std::uint32_t thread = 0;
};

struct Said {
  std::string kind = "none", row;
  double share = 0;  // of the token
  std::string words;
};

struct StageOptions {
  double seconds = 1;  // of rounds of each audit
  std::uint32_t layers = 12;
  bool verbose = false;
  std::string in_quota;  // a stage's folder: be the program that has a quota
};

class Stage {
 public:
  explicit Stage(const StageOptions& options);
  ~Stage();

  /// In the program that has a quota: what it costs and what is said of it, on one line.
  void RunInQuota();

  /// The fault as engine options, or by means of the system; nullopt when it can't be made to be worth enough here.
  struct Trial {
    double worth = 0;
    Said said;
  };
  std::optional<Trial> Try(const Fault& fault);

 private:
  void AddThreads(std::uint32_t threads);

  Result<std::unique_ptr<engine::Engine>> Load(engine::Options options);

  Result<audit::Audit> Run(engine::Engine& engine, std::uint32_t threads);

  /// The largest finding of an audit. One that is refused says why, too.
  Said Audit(engine::Engine& engine, std::uint32_t threads);

  static void Explain(const audit::Account& account, const audit::Audit& audit);

  engine::Options OptionsFor(const Fault& fault, std::uint32_t threads, double scale);

  /// Row groups of a thread's shares of all tables of the row.
  double GroupsOf(const std::string& row, std::uint32_t threads) const;

  /// By how much of a token the second takes longer.
  static double Worth(engine::Engine& plain, engine::Engine& faulty);
  static double TokenNs(engine::Session& session, int tokens = 2);

  std::optional<Trial> TryTaken(std::uint32_t threads);

  /// A program of its own in a group with a quota, whose threads have no priority: those are stopped by no quota.
  std::optional<Trial> TryQuota();

  StageOptions options_;
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

}  // namespace boltbeam
