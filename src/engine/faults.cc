#include "engine/faults.h"

#include <utility>
#include <vector>

#include "engine/plan.h"

namespace boltbeam::engine {
namespace {

/// Piece `index` of `count` of a step: that part of every thread's share.
Step PieceOf(const Step& step, std::uint32_t index, std::uint32_t count, std::uint32_t threads) {
  Step piece = step;
  piece.piece_items = 0;  // nobody takes over the end of a share that is cut already
  piece.shares.clear();
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    const runtime::Range whole =
        step.shares.empty() ? step.work.RangeOf(step.work.items, thread, threads) : step.shares[thread];
    const runtime::Range own = runtime::Share(whole.end - whole.begin, index, count);
    piece.shares.push_back({whole.begin + own.begin, whole.begin + own.end});
  }
  piece.info.stored_bytes = step.info.stored_bytes / count;
  for (auto& [role, bytes] : piece.info.parts) bytes /= count;
  return piece;
}

}  // namespace

void SplitLaunches(Plan& plan, const Faults& faults, std::uint32_t threads) {
  if (faults.launches <= 1) return;
  std::vector<Step> steps;
  std::vector<std::uint32_t> phase_end;
  std::uint32_t first = 0;
  const std::uint32_t body_phases = plan.body_phases;
  const auto end_phase = [&] { phase_end.push_back(static_cast<std::uint32_t>(steps.size())); };
  const auto add = [&](Step step) {
    step.info.phase = static_cast<std::uint32_t>(phase_end.size());
    steps.push_back(std::move(step));
  };
  for (std::uint32_t phase = 0; phase < plan.phase_end.size(); ++phase) {
    for (std::uint32_t at = first; at < plan.phase_end[phase]; ++at) {
      const Step& step = plan.steps[at];
      if (step.info.role != faults.part || !step.info.streams) {
        add(step);
        continue;
      }
      for (std::uint32_t piece = 0; piece < faults.launches; ++piece) {
        if (piece != 0) end_phase();
        add(PieceOf(step, piece, faults.launches, threads));
      }
    }
    first = plan.phase_end[phase];
    end_phase();
    if (phase + 1 == body_phases) {
      plan.body_steps = static_cast<std::uint32_t>(steps.size());
      plan.body_phases = static_cast<std::uint32_t>(phase_end.size());
    }
  }
  plan.steps = std::move(steps);
  plan.phase_end = std::move(phase_end);
}

}  // namespace boltbeam::engine
