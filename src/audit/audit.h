// Runs an audit: rounds in which the read bandwidth, whole-token windows without time stamps and traced tokens take
// turns, at one depth after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "audit/account.h"
#include "audit/why.h"
#include "engine/engine.h"
#include "measure/environment.h"

namespace boltbeam::audit {

struct Options {
  std::vector<std::uint64_t> depths{0};
  double seconds = 10;            // of rounds, for each depth
  std::uint64_t cache_bytes = 0;  // of the last-level cache; 0: unknown, so nothing is allowed for
  std::uint64_t seed = 1;
  bool alone = true;            // time each kind of kernel alone, too
  std::vector<PartPlan> plans;  // for the causes
  SessionFacts facts;           // as far as they are known before the session
};

/// What measures the memory between the windows.
class BandwidthSource {
 public:
  virtual ~BandwidthSource() = default;
  /// One reading of every probe shape in use, GB/s.
  virtual std::vector<double> Read() = 0;
  [[nodiscard]] virtual double CacheGbS() const = 0;
  [[nodiscard]] virtual std::string Method() const = 0;
  /// Reads through more than the caches hold, as one of so many threads; false where it can't.
  virtual bool SweepCaches(std::uint32_t /*thread*/, std::uint32_t /*threads*/) { return false; }
  /// Of a barrier among its threads, when nothing else runs; 0: not known.
  [[nodiscard]] virtual double BarrierNs() const { return 0; }
};

struct Hooks {
  std::function<void(double done, double total)> progress;  // seconds; between the timed parts
  std::function<bool()> cancelled;
};

/// One traced token, for viewers: when each thread was in which kernel or at which barrier.
struct TimelineSpan {
  std::uint32_t thread = 0;
  std::int32_t step = -1;  // -1: a barrier
  std::uint32_t phase = 0;
  double begin_ns = 0, end_ns = 0;  // from the token's begin
};
struct Timeline {
  std::uint64_t depth = 0;
  double token_ns = 0;
  std::vector<TimelineSpan> spans;
};

struct Audit {
  std::vector<Account> accounts;
  std::vector<Timeline> timelines;      // one an account
  std::vector<engine::StepInfo> steps;  // of the plan
  SessionFacts facts;                   // of the whole run
  measure::Environment environment;
  std::vector<std::string> disturbances;  // what spoiled rounds, by cause, over the whole run
  double disturbed_share = 0;             // of the rounds
  double cache_gb_s = 0;
  std::string bandwidth_method;
  std::string clock;
  double stamp_ns = 0;       // of reading the clock once
  std::uint64_t stamps = 0;  // of one traced token, per thread
  std::uint32_t window_tokens = 0;
  std::uint64_t seed = 0;
};

/// Rounds that a cause spoiled, as a share: beyond it a run is unstable.
inline constexpr double kDisturbedShare = 0.2;

/// Positions that the KV cache must hold for these depths.
std::uint64_t ContextNeeded(const Options& options);

Result<Audit> RunAudit(engine::Engine& engine, engine::Session& session, BandwidthSource& bandwidth,
                       const Options& options, const Hooks& hooks = {});

/// kMeasurementUnstable names the depth whose residual is beyond the budget, or whose bandwidth varied so much that no
/// figure of it could be refused.
Result<void> RequireTieOut(const Audit& audit);

}  // namespace boltbeam::audit
