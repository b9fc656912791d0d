// The account of a token: every nanosecond on a line.
//
//   floor + lost in kernels + gaps + unaccounted = token
//
// A part's time, the waiting at barriers and the host's time between kernels come from time stamps, each the mean over
// threads, so that per thread work + waiting + host = the traced token exactly. The token comes from windows without
// stamps, interleaved with the traced ones; unaccounted is the difference and nothing is computed to make it small.
// All lines are means over the same pairs of windows, so they add up.
//
// The same stamps give the wall's account, union = sum of kernels - overlap and token = union + gaps (nobody in a
// kernel), and each thread's: work + imbalance + barrier + idle.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "measure/clock.h"

namespace boltbeam::audit {

/// What a part of the token must do at least: from the model's tensors, not from how the engine stores them.
struct PartFloor {
  std::string role, format;
  std::uint64_t calls = 0;
  std::uint64_t memory_bytes = 0;      // weights and KV cache
  std::uint64_t activation_bytes = 0;  // activations and small vectors: what a cache holds
  std::uint64_t flops = 0;             // two for a multiply-add
};

/// Where one traced token's time went; nanoseconds, means over threads unless it says otherwise.
struct TokenTimes {
  std::vector<double> work;     // [step]
  std::vector<double> slowest;  // [step] of the slowest thread
  std::vector<double> release;  // [phase] what even the last thread to arrive waited
  double wait = 0;              // at all barriers
  double host = 0;              // in no kernel and at no barrier
  double total = 0;             // work + wait + host
  // [thread]: total of its kernels, of its waits and of what lies between; [step * threads + thread]: one kernel's.
  std::vector<double> thread_work, thread_wait, thread_host, by_thread;
  double busy = 0;  // while at least one thread is in a kernel
};

/// What one thread of a token does: the four add up to the traced token.
struct ThreadTime {
  double work_ns = 0;       // in kernels
  double imbalance_ns = 0;  // at barriers, for slower threads
  double barrier_ns = 0;    // at barriers, after the last thread has come
  double idle_ns = 0;       // between kernels: the host, loops, stamps
};

/// The wall's account of the traced token.
struct Wall {
  double sum_ns = 0;      // of the kernels of all threads
  double union_ns = 0;    // while at least one thread is in a kernel
  double overlap_ns = 0;  // sum - union
  double gaps_ns = 0;     // nobody is in a kernel: token - union, from stamps
};

/// One kernel of the plan in the account.
struct StepTime {
  std::string role, format;
  std::int32_t layer = -1;  // -1: of no layer
  std::uint64_t bytes = 0;  // that it reads as they are stored
  double floor_ns = 0;      // its share of its part's floor
  double now_ns = 0, slowest_ns = 0;
};

/// Why time is lost, and what would give it back at most.
struct Cause {
  std::string kind;          // of CauseKinds()
  std::string role, format;  // empty: the whole token
  double recoverable_ns = 0;
  std::string evidence;  // measured facts, a sentence for a person
  std::string lever;     // a knob or a route that exists, or what else to do
  // Causes of its kind and role together are worth kFindingShare of the token or more; else it is an ordinary line.
  bool is_finding = false;
};

/// kMeasurementImpossible when stamps run backwards or lie outside their token; kAccountOpen when the trace does not
/// have the plan's shape.
Result<TokenTimes> ReadTrace(const engine::Trace& trace, std::span<const engine::StepInfo> steps, std::uint32_t phases,
                             const measure::Clock& clock);

/// Two windows of the same tokens, one right after the other, and what the memory read just before.
struct Pair {
  double token_ns = 0;            // of the window without stamps
  TokenTimes traced;              // mean over the stamped window's tokens
  std::vector<double> read_gb_s;  // of each probe shape in use, before and after the round
  bool memory_moved = false;  // the two readings differ by more than kMovedShare: they say little of what lay between
};

struct Part {
  std::string role, format, cause;
  std::uint64_t calls = 0, steps = 0, bytes = 0, stored_bytes = 0, flops = 0;
  double floor_ns = 0, now_ns = 0, excess_ns = 0, share = 0;
  double imbalance_ns = 0;             // of the slowest thread above the mean
  double release_ns = 0;               // of the barriers that end its phases
  bool streams = false;                // it reads tables or the KV cache
  std::vector<double> thread_ns = {};  // what each thread spends in it
  double cold_ns = 0, hot_ns = 0;  // of its kernels alone: after the caches were swept, at the read rate of the rounds,
                                   // and out of them; 0: not taken
};

struct Token {
  double now_ns = 0, floor_ns = 0, lost_ns = 0, gaps_ns = 0, unaccounted_ns = 0;
  double wait_ns = 0, host_ns = 0;         // the two kinds of gaps
  double traced_ns = 0;                    // floor + lost + gaps
  double now_low_ns = 0, now_high_ns = 0;  // 95 % bootstrap interval of now_ns
};

struct Account {
  std::uint64_t depth = 0;
  double read_bandwidth_gb_s = 0;
  double band = 0;                // relative: what the session can't tell apart
  double cached_share = 0;        // of the bytes that a token streams: at most so much can stay in the last-level cache
  std::uint64_t cache_bytes = 0;  // of that cache; 0: not known
  // Read by the probe before and after the kernels ran alone; 0: they did not.
  double alone_before_gb_s = 0, alone_after_gb_s = 0;
  std::uint64_t pairs = 0, pairs_used = 0;
  Token token;
  std::vector<Part> parts;  // by the time they take
  std::vector<StepTime> steps;
  std::vector<ThreadTime> threads;
  Wall wall;
  std::uint32_t barriers = 0;
  std::vector<Cause> causes;  // by what they give back

  [[nodiscard]] double LimitTokensPerSecond() const { return 1e9 / token.floor_ns; }
  [[nodiscard]] double TokensPerSecond() const { return 1e9 / token.now_ns; }
  [[nodiscard]] bool TiesOut() const;
};

/// What may remain unaccounted, as a share of the token.
inline constexpr double kResidualBudget = 0.01;

/// A shared machine's memory switches between speeds that differ by a third and more; what drifts less stays in the
/// band.
inline constexpr double kMovedShare = 0.1;

/// A wider band lets a part be twice as fast as its floor, and refuses nothing any more.
inline constexpr double kWidestBand = 0.5;

struct AccountInput {
  std::uint64_t depth = 0;
  std::span<const PartFloor> floors;
  std::span<const engine::StepInfo> steps;
  std::span<const Pair> pairs;
  double cache_gb_s = 0;
  std::uint64_t cache_bytes = 0;  // of the last-level cache: what may stay there from one token to the next
  std::uint64_t seed = 1;
};

/// Standard error of what these pairs leave unaccounted, as a share of the token: the pairs that the account is made
/// of, and by how much the two windows of each differ.
double ResidualError(std::span<const Pair> pairs);

/// kMeasurementImpossible names the part that was faster than its floor by more than the band, the share of it that a
/// cache may hold allowed for; kMeasurementUnstable:
/// too few windows; kAccountOpen: a table of the model that no kernel of the plan reads.
Result<Account> BuildAccount(const AccountInput& input);

}  // namespace boltbeam::audit
