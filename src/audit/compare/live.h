// Another program run live beside our engine: whole tokens interleaved, and its parts beside our account.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "audit/account.h"
#include "audit/audit.h"
#include "audit/compare/between.h"
#include "audit/compare/comparison.h"
#include "audit/compare/matching.h"
#include "base/error.h"
#include "engine/engine.h"
#include "measure/environment.h"

namespace boltbeam::audit {

/// Tokens of both, one window after the other, A B B A.
struct Interleaved {
  std::vector<double> ours_ns, theirs_ns;  // of a token, paired
  // Pairs that a cause disturbed, where that is known of both programs: left out, or counted where too few others are.
  std::size_t left_out = 0, disturbed = 0;
  double read_gb_s = 0;  // right before and after our windows, the median; 0: not read

  [[nodiscard]] double OursNs() const;  // medians
  [[nodiscard]] double TheirsNs() const;
  [[nodiscard]] PairedTokens Paired(std::string basis) const;
};

struct InterleaveOptions {
  std::uint64_t depth = 0;
  std::uint32_t tokens = 32;  // of a window
  double seconds = 10;
  std::uint64_t seed = 1;
  BandwidthSource* bandwidth = nullptr;  // to read beside our windows
  std::function<measure::Counters()> counters = [] { return measure::ReadCounters(); };
  std::function<bool()> cancelled;
  std::function<void(double done, double total)> progress;  // between windows
};

/// theirs: runs one window. Goes on for up to four times `seconds` while too few pairs are undisturbed; then all count.
Result<Interleaved> Interleave(engine::Engine& engine, engine::Session& session,
                               const std::function<Result<PeerWindow>()>& theirs, const InterleaveOptions& options);

/// What was measured on one basis and beside it.
struct LiveFindings {
  Account account;                // ours, one thread
  Interleaved one_thread;         // theirs without repacking
  Interleaved fastest;            // both with all threads, theirs with repacking
  double theirs_repacked_ns = 0;  // theirs with one thread and repacking
  Matching matching;
  std::vector<PeerWindow> among_parts;  // their tokens between the timings of their parts, as `one_thread`
  std::vector<double> among_gb_s;       // that the memory read after each of these
  std::uint64_t positions = 0;          // that their attention was timed over
  std::optional<Between> between;       // of their operations
  std::string between_unknown;          // why there is none
  std::uint32_t threads = 1;            // of `fastest`

  /// Their token while their parts were timed: the mean, as a part's time is one of all its runs; of undisturbed
  /// windows where there are any.
  [[nodiscard]] double TheirsAmongPartsNs() const;
};

/// Regions and terms on the basis of one thread, the other bases beside them.
Comparison CompareLive(const LiveFindings& findings, const std::string& theirs);

/// By how much their parts alone miss the token that ran among them, relative.
double PartsTieOut(const LiveFindings& findings);
/// The same of their parts and what is between them, where that is known; within kTiesOut they tie out.
double TieOut(const LiveFindings& findings);
/// kMeasurementUnstable: a check of the comparison is beyond its budget, or their parts do not tie out.
Result<void> RequireTieOut(const Comparison& comparison, const LiveFindings& findings);
/// Of either program: what the token of its account, or among its parts, may differ from that of the windows.
inline constexpr double kTiesOut = 0.10;

}  // namespace boltbeam::audit
