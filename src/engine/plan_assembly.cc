#include "engine/plan_assembly.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/routes.h"

namespace boltbeam::engine {

void PlanAssembly::AddStep(kernel::Program&& program, const std::string& role, const std::string& format, Work work,
                           Buffers buffers, std::uint64_t stored_bytes) {
  // Layers share most programs, and to compare two costs less than to print one for its identity.
  auto place = std::ranges::find_if(c_.programs, [&](const auto& known) { return known.second == program; });
  if (place == c_.programs.end()) {
    std::string identity = kernel::Identity(program);
    place = c_.programs.try_emplace(std::move(identity), std::move(program)).first;
  }
  Step step;
  step.program = &place->second;
  step.info.role = role;
  step.info.format = format;
  step.info.layer = operation_->layer;
  step.info.kernel = step.program->name;
  step.info.kernel_id = place->first;
  step.info.provenance = kernel::ProvenanceName(step.program->provenance);
  step.info.phase = static_cast<std::uint32_t>(plan_.phase_end.size());
  step.info.stored_bytes = stored_bytes;
  step.work = work;
  step.buffers = std::move(buffers);
  plan_.steps.push_back(std::move(step));
  group_bytes_ = 0;
}

void PlanAssembly::ShareTails(Step& step) {
  constexpr std::uint64_t kLeastPieces = 2;
  // A stream begins anew at every piece: it must be long enough to run at speed for most of it.
  const std::uint64_t piece_groups = std::max<std::uint64_t>(1, c_.options.piece_bytes / group_bytes_);
  const auto groups_per_thread = static_cast<std::uint64_t>(step.work.items) / c_.threads;
  const bool is_worth_it = groups_per_thread / kSharedPart >= kLeastPieces * piece_groups;
  const bool is_possible = c_.threads > 1 && step.buffers.front().size() <= kMostSharedBuffers;
  if (Take(kSharedTails, is_worth_it && is_possible)) step.piece_items = static_cast<std::int64_t>(piece_groups);
}

void PlanAssembly::EndPhase() {
  const auto end = static_cast<std::uint32_t>(plan_.steps.size());
  if (group_bytes_ != 0) ShareTails(plan_.steps.back());
  group_bytes_ = 0;
  if (end != 0 && (plan_.phase_end.empty() || plan_.phase_end.back() != end)) plan_.phase_end.push_back(end);
  is_columnwise_ = false;
  is_spread_ = false;
}

void PlanAssembly::EndColumnwise() {
  if (is_spread_ || (is_columnwise_ && !decode_)) EndPhase();
  is_columnwise_ = false;
}

Result<std::vector<std::byte*>> PlanAssembly::Scratch(const std::string& purpose, std::uint64_t column_bytes,
                                                      bool together) {
  const auto [place, is_new] =
      scratch_.try_emplace(fmt::format("{}.{}{}", purpose, column_bytes, together ? ".together" : ""));
  if (is_new) {
    const std::uint32_t copies = decode_ && !together ? c_.threads : 1;
    const std::uint64_t padded = AlignUp<std::uint64_t>(columns_, 16);  // tiles of columns may be padded
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      BOLTBEAM_ASSIGN(std::byte * memory, c_.arena.Allocate(column_bytes * (decode_ ? 1 : padded)));
      place->second.push_back(memory);
    }
    place->second.resize(c_.threads, place->second.front());
  }
  return place->second;
}

Result<std::vector<std::byte*>> PlanAssembly::ThreadScratch(const std::string& purpose, std::uint64_t bytes) {
  std::vector<std::byte*>& memory = scratch_[purpose];
  while (memory.size() < c_.threads) {
    BOLTBEAM_ASSIGN(std::byte * place, c_.arena.Allocate(bytes));
    memory.push_back(place);
  }
  return memory;
}

bool PlanAssembly::IsOn(std::string_view route) const {
  return decode_ && IsRouteOn(route, c_.options.with, c_.options.without);
}

bool PlanAssembly::Take(std::string_view route, bool is_possible) {
  if (!is_possible || !IsOn(route)) return false;
  ++plan_.route_uses[route];
  return true;
}

void PlanAssembly::EndBody() {
  EndPhase();
  plan_.body_steps = static_cast<std::uint32_t>(plan_.steps.size());
  plan_.body_phases = static_cast<std::uint32_t>(plan_.phase_end.size());
}

Plan PlanAssembly::Finish() {
  EndPhase();
  return std::move(plan_);
}

}  // namespace boltbeam::engine
