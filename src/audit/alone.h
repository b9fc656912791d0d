// A part's kernels apart from the token: with the caches swept before each, and out of them.
#pragma once

#include <functional>
#include <string>

#include "audit/account.h"
#include "engine/engine.h"
#include "measure/clock.h"

namespace boltbeam::audit {

/// Evicts what caches hold by reading: called by every thread of the engine at once.
using Sweep = std::function<void(std::uint32_t thread, std::uint32_t threads)>;

struct AloneOptions {
  Sweep sweep;                        // empty: no cold times
  std::uint64_t hot_bytes = 1 << 18;  // of a thread's share that its own caches keep
  std::uint64_t seed = 1;
};

/// Fills in cold_ns and hot_ns of every part whose kernels stream tables: one kernel of each kind is run, in a middle
/// layer, and stands for all of its kind. Cold: the slowest thread, the median of some runs with a sweep before each.
/// Hot: the fastest of many runs over so much of the table as caches keep, times the whole. Kernels that the engine
/// can't run apart leave both 0.
Result<void> TimeAlone(const engine::Engine& engine, engine::Session& session, const measure::Clock& clock,
                       const AloneOptions& options, Account& account);

/// What the times of a part in the token and alone say together, in some words; empty: it was not timed alone. One that
/// is below its floor alone says why: the probe's reading changed meanwhile, or its table fits the last-level cache, or
/// neither is known.
std::string WhatAloneSays(const Account& account, const Part& part);

}  // namespace boltbeam::audit
