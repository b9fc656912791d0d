#include "ledger/testing/fault_loops.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace boltbeam::ledger {
namespace {

constexpr Fault kFaults[] = {Fault::kNoSpace, Fault::kIo, Fault::kInterrupted, Fault::kShort, Fault::kSync};
constexpr Survives kSurvivals[] = {Survives::kNothing, Survives::kAll, Survives::kFront, Survives::kAnything};

std::uint64_t OperationsOf(Case begun, const std::function<void(Case&)>& act) {
  begun.disk.Disarm();
  act(begun);
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
std::string StateOf(const Task& task, const Case& now) {
  std::string text = task.name + now.disk.State() + (now.is_done ? "|done" : "|not done");
  for (const Said& one : now.said) {
    text += fmt::format("|{}|{}|{}|{}", one.marker, static_cast<int>(one.what), one.hash, one.blob);
  }
  return base::Sha256Hex(text);
}

/// Counts the case; false when it failed. Many faults leave the same ledger: the checks, which see nothing but its
/// state, would find the same again.
bool Passes(LoopResult& result, const Task& task, Case now, const std::string& where) {
  ++result.cases;
  if (!result.states.insert(StateOf(task, now)).second) return true;
  const std::string wrong = task.unsound(std::move(now));
  if (!wrong.empty()) result.wrong = task.name + ", " + where + ": " + wrong;
  return wrong.empty();
}

std::uint32_t SeedsOf(Survives survives, std::uint32_t seeds) {
  return survives == Survives::kFront || survives == Survives::kAnything ? seeds : 1;
}

/// Whether nothing stood in the way but what a second try overcomes.
bool MustBeDone(const Case& now, Fault fault, bool always) {
  return now.disk.failures() == 0 || (fault == Fault::kInterrupted && !always);
}

bool AllIsDone(const Case& now) {
  for (const Said& one : now.said) {
    if (one.what != Said::What::kRecorded) return false;
  }
  return now.is_done;
}

/// Second faults at every operation of what is done with one ledger that lost its power.
bool LoopOverRecovery(LoopResult& result, const Task& task, const Case& lost, const std::string& where) {
  const std::uint64_t operations = OperationsOf(lost, task.again);
  for (std::uint64_t at = 1; at <= operations; ++at) {
    for (const Fault fault : {Fault::kNoSpace, Fault::kIo, Fault::kSync}) {
      Case now = lost;
      now.disk.Arm(fault, at, true);
      task.again(now);
      now.disk.Disarm();
      const std::string again = fmt::format("{}, fault {} at {}", where, static_cast<int>(fault), at);
      if (!Passes(result, task, std::move(now), again)) return false;
    }
    for (const Survives survives : kSurvivals) {
      Case now = lost;
      now.disk.Arm(Fault::kPower, at, true);
      task.again(now);
      LosePower(now, survives, static_cast<std::uint32_t>(at));
      const std::string again = fmt::format("{}, again at {}, survival {}", where, at, static_cast<int>(survives));
      if (!Passes(result, task, std::move(now), again)) return false;
    }
  }
  return true;
}

bool LoopOverFaultsAt(LoopResult& result, const Task& task, std::uint64_t at) {
  for (const Fault fault : kFaults) {
    for (const bool always : {false, true}) {
      Case now = task.begin;
      now.disk.Arm(fault, at, always);
      task.act(now);
      const std::string where = fmt::format("fault {} at operation {}, always {}", static_cast<int>(fault), at, always);
      if (MustBeDone(now, fault, always) && !AllIsDone(now)) {
        result.wrong = task.name + ", " + where + ": it was refused without need";
        return false;
      }
      now.disk.Disarm();
      if (!Passes(result, task, std::move(now), where)) return false;
    }
  }
  return true;
}

}  // namespace

LoopResult LoopOverFaults(const std::vector<Task>& tasks) {
  LoopResult result;
  for (const Task& task : tasks) {
    const std::uint64_t operations = OperationsOf(task.begin, task.act);
    for (std::uint64_t at = 1; at <= operations; ++at) {
      if (!LoopOverFaultsAt(result, task, at)) return result;
    }
  }
  return result;
}

LoopResult LoopOverPowerLosses(const std::vector<Task>& tasks, std::uint32_t seeds) {
  LoopResult result;
  for (const Task& task : tasks) {
    const std::uint64_t operations = OperationsOf(task.begin, task.act);
    for (std::uint64_t at = 1; at <= operations; ++at) {
      Case lost = task.begin;
      lost.disk.Arm(Fault::kPower, at, true);
      task.act(lost);
      for (const Survives survives : kSurvivals) {
        for (std::uint32_t seed = 1; seed <= SeedsOf(survives, seeds); ++seed) {
          Case now = lost;
          LosePower(now, survives, seed);
          const std::string where =
              fmt::format("power lost at {}, survival {}, seed {}", at, static_cast<int>(survives), seed);
          if (!Passes(result, task, std::move(now), where)) return result;
        }
      }
    }
  }
  return result;
}

LoopResult LoopOverSecondFaults(const std::vector<Task>& tasks, std::uint32_t seed, std::uint64_t stride) {
  LoopResult result;
  for (const Task& task : tasks) {
    const std::uint64_t operations = OperationsOf(task.begin, task.act);
    for (std::uint64_t at = 1; at <= operations; at += stride) {
      Case lost = task.begin;
      lost.disk.Arm(Fault::kPower, at, true);
      task.act(lost);
      LosePower(lost, Survives::kAnything, seed + static_cast<std::uint32_t>(at));
      if (!LoopOverRecovery(result, task, lost, fmt::format("power lost at {}", at))) return result;
    }
  }
  return result;
}

}  // namespace boltbeam::ledger
