// Why a token takes longer than its floor: causes from measured facts, each with what its cure gives back at most.
//
// What a late thread or too many launches cost a part is not its rate's. What only the plan tells of it (bytes, unit,
// scales) may share that part's time with what was measured: two cures of the same microseconds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "audit/account.h"
#include "roofline/in_flight.h"

namespace boltbeam::audit {

/// What is known of a part from the plan, before anything runs. 0 and empty: not known.
struct PartPlan {
  std::string role, format;
  std::string geometry;              // knobs as text
  std::string dot, best_dot;         // the instruction used, and the one that this chip is best at
  double instructions_per_byte = 0;  // vector instructions for a byte of the stored table
  double ahead_bytes = 0;            // that each thread's program asks the memory for ahead of its loads; 0: none
  // With scales written out: instructions and stored bytes over those now.
  double words_instructions = 0, words_growth = 0;
};

/// What the session tells beside its stamps. 0: not known.
struct SessionFacts {
  double throttled_share = 0;            // of the wall's time: threads stopped by a quota of CPU time
  double other_cpus = 0;                 // that other processes of this machine kept busy
  double barrier_ns = 0;                 // of a barrier among the same threads that does nothing else
  double reference_gb_s = 0;             // what so many threads read when this chip was measured
  roofline::Latencies latencies;         // of a load from memory
  std::vector<std::string> idle_routes;  // fusions that exist and that the plan does not take
};

struct CauseKind {
  std::string_view kind, meaning;
};
/// Every kind there is, with what it means for a person.
std::span<const CauseKind> CauseKinds();

/// The largest first, marked which are findings; nothing that is within what the session can't tell apart.
std::vector<Cause> CausesOf(const Account& account, std::span<const PartPlan> plans, const SessionFacts& facts);

/// Causes of one kind and role worth less of the token together are in the list, but no findings.
inline constexpr double kFindingShare = 0.02;

/// Causes of one kind and role, in all formats.
struct Finding {
  const Cause* cause = nullptr;  // the largest of them; as long as the account lives
  double recoverable_ns = 0;     // of all
};
/// The largest of those that are marked.
std::optional<Finding> FindingOf(const Account& account);

}  // namespace boltbeam::audit
