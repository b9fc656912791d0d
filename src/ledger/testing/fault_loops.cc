#include "ledger/testing/fault_loops.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace boltbeam::ledger {
namespace {

constexpr Fault kFaults[] = {Fault::kNoSpace, Fault::kIo, Fault::kInterrupted, Fault::kShort, Fault::kSync};
constexpr Survives kSurvivals[] = {Survives::kNothing, Survives::kAll, Survives::kFront, Survives::kAnything};

struct Case {
  SimulatedDisk disk;
  std::vector<Said> said;
};

Case Begin(Start start) {
  Case begun;
  begun.disk = MakeDisk(start, begun.said);
  begun.disk.Disarm();
  return begun;
}

std::uint64_t OperationsOfThree(Case begun) {
  AppendThree(begun.disk, "counted", begun.said);
  return begun.disk.operations();
}

std::uint64_t OperationsOfOne(Case begun) {
  begun.disk.Disarm();
  AppendOne(begun.disk, "counted", begun.said);
  return begun.disk.operations();
}

/// The power is gone: whatever the calls returned, nobody heard it unless it was the receipt.
void LosePower(Case& now, Survives survives, std::uint32_t seed) {
  for (Said& one : now.said) {
    if (one.what == Said::What::kNotRecorded) one.what = Said::What::kUnknown;
  }
  now.disk.Restart(survives, seed);
}

/// What decides whether a ledger is sound: the disk, and what was said. Its hash, because there are many.
std::string StateOf(const Case& now) {
  std::string text = now.disk.State();
  for (const Said& one : now.said) {
    text += fmt::format("|{}|{}|{}|{}", one.marker, static_cast<int>(one.what), one.hash, one.blob);
  }
  return base::Sha256Hex(text);
}

/// Empty when the ledger is sound, otherwise what is wrong.
std::string Unsound(Case now) {
  std::string wrong = WhatIsWrong(now.disk, now.said, true);
  if (!wrong.empty()) return "at once: " + wrong;
  AppendOne(now.disk, "afterwards", now.said);
  if (now.said.back().what != Said::What::kRecorded) return "the next record is refused";
  wrong = WhatIsWrong(now.disk, now.said, false);
  if (!wrong.empty()) return "with the next record: " + wrong;
  now.disk.Restart(Survives::kNothing, 0);
  wrong = WhatIsWrong(now.disk, now.said, false);
  return wrong.empty() ? wrong : "after a power loss: " + wrong;
}

/// Counts the case; false when it failed. Many faults leave the same ledger: the checks, which see nothing but its
/// state, would find the same again.
bool Passes(LoopResult& result, Case now, const std::string& where) {
  ++result.cases;
  if (!result.states.insert(StateOf(now)).second) return true;
  const std::string wrong = Unsound(std::move(now));
  if (!wrong.empty()) result.wrong = where + ": " + wrong;
  return wrong.empty();
}

std::uint32_t SeedsOf(Survives survives, std::uint32_t seeds) {
  return survives == Survives::kFront || survives == Survives::kAnything ? seeds : 1;
}

/// Second faults at every operation of the recovery of one ledger that lost its power.
bool LoopOverRecovery(LoopResult& result, const Case& lost, const std::string& where) {
  const std::uint64_t operations = OperationsOfOne(lost);
  for (std::uint64_t at = 1; at <= operations; ++at) {
    for (const Fault fault : {Fault::kNoSpace, Fault::kIo, Fault::kSync}) {
      Case now = lost;
      now.disk.Arm(fault, at, true);
      AppendOne(now.disk, "recovering", now.said);
      now.disk.Disarm();
      if (!Passes(result, std::move(now), fmt::format("{}, fault {} at {}", where, static_cast<int>(fault), at))) {
        return false;
      }
    }
    for (const Survives survives : kSurvivals) {
      Case now = lost;
      now.disk.Arm(Fault::kPower, at, true);
      AppendOne(now.disk, "recovering", now.said);
      LosePower(now, survives, static_cast<std::uint32_t>(at));
      const std::string again = fmt::format("{}, again at {}, survival {}", where, at, static_cast<int>(survives));
      if (!Passes(result, std::move(now), again)) return false;
    }
  }
  return true;
}

}  // namespace

LoopResult LoopOverFaults(std::span<const Start> starts) {
  LoopResult result;
  for (const Start start : starts) {
    const Case begun = Begin(start);
    const std::uint64_t operations = OperationsOfThree(begun);
    for (std::uint64_t at = 1; at <= operations; ++at) {
      for (const Fault fault : kFaults) {
        for (const bool always : {false, true}) {
          Case now = begun;
          now.disk.Arm(fault, at, always);
          AppendThree(now.disk, "during", now.said);
          now.disk.Disarm();
          const std::string where = fmt::format("start {}, fault {} at operation {}, always {}",
                                                static_cast<int>(start), static_cast<int>(fault), at, always);
          if (!Passes(result, std::move(now), where)) return result;
        }
      }
    }
  }
  return result;
}

LoopResult LoopOverPowerLosses(std::span<const Start> starts, std::uint32_t seeds) {
  LoopResult result;
  for (const Start start : starts) {
    const Case begun = Begin(start);
    const std::uint64_t operations = OperationsOfThree(begun);
    for (std::uint64_t at = 1; at <= operations; ++at) {
      Case lost = begun;
      lost.disk.Arm(Fault::kPower, at, true);
      AppendThree(lost.disk, "during", lost.said);
      for (const Survives survives : kSurvivals) {
        for (std::uint32_t seed = 1; seed <= SeedsOf(survives, seeds); ++seed) {
          Case now = lost;
          LosePower(now, survives, seed);
          const std::string where = fmt::format("start {}, power lost at {}, survival {}, seed {}",
                                                static_cast<int>(start), at, static_cast<int>(survives), seed);
          if (!Passes(result, std::move(now), where)) return result;
        }
      }
    }
  }
  return result;
}

LoopResult LoopOverSecondFaults(std::span<const Start> starts, std::uint32_t seed) {
  LoopResult result;
  for (const Start start : starts) {
    const Case begun = Begin(start);
    const std::uint64_t operations = OperationsOfThree(begun);
    for (std::uint64_t at = 1; at <= operations; ++at) {
      Case lost = begun;
      lost.disk.Arm(Fault::kPower, at, true);
      AppendThree(lost.disk, "during", lost.said);
      LosePower(lost, Survives::kAnything, seed + static_cast<std::uint32_t>(at));
      const std::string where = fmt::format("start {}, power lost at {}", static_cast<int>(start), at);
      if (!LoopOverRecovery(result, lost, where)) return result;
    }
  }
  return result;
}

}  // namespace boltbeam::ledger
