#include "engine/planned_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "codegen/code_count.h"
#include "engine/attention_choice.h"
#include "engine/plan.h"
#include "engine/unused_workspace.h"
#include "kernel/families/state.h"

namespace boltbeam::engine {
namespace {

/// What a session writes before a pass of one token at this depth.
struct Pass {
  PassSizes sizes;
  std::int64_t position = 0, window_first = 0;
};

Pass PassAt(const kernel::AttentionShape& shape, std::uint64_t window, std::uint64_t depth) {
  const std::uint64_t chunks = depth / shape.chunk + 1;
  const std::uint64_t first = window == 0 || depth + 1 <= window ? 0 : (depth + 1 - window) / shape.chunk;
  return {{1, static_cast<std::int64_t>(chunks), static_cast<std::int64_t>(chunks - first)},
          static_cast<std::int64_t>(depth),
          static_cast<std::int64_t>(first)};
}

std::vector<kernel::KnownWord> StateOf(const kernel::Program& program, const Pass& pass) {
  std::vector<kernel::KnownWord> words;
  for (std::uint32_t buffer = 0; buffer < program.buffers.size(); ++buffer) {
    if (program.buffers[buffer].name != "state") continue;
    const auto add = [&](std::int64_t offset, std::int64_t value) {
      words.push_back({buffer, offset, static_cast<std::int32_t>(value)});
    };
    add(kernel::kStateColumns, pass.sizes.columns);
    add(kernel::kStateTiles, 1);
    add(kernel::kStatePosition, pass.position);
    add(kernel::kStateChunks, pass.sizes.chunks);
    add(kernel::kStateWindowFirst, pass.window_first);
    add(kernel::kStateWindowChunks, pass.sizes.window_chunks);
    add(kernel::kStateKeepLogits, 0);
  }
  return words;
}

class Account {
 public:
  explicit Account(codegen::CodeCounter& counter) : counter_(counter) {}

  std::vector<PartCode> parts;
  std::map<std::string, std::string> uncompiled;  // by kernel: why

  void Add(const Step& step, const Pass& pass) {
    const runtime::Range range =
        step.shares.empty() ? step.work.RangeOf(step.work.Count(pass.sizes), 0, 1) : step.shares.front();
    if (range.begin == range.end) return;
    // A kernel runs in every layer, each time on as many work items.
    const auto [known, is_new] = counts_.try_emplace({step.program, range.begin, range.end});
    if (is_new) known->second = counter_.Count(*step.program, range.begin, range.end, StateOf(*step.program, pass));
    const codegen::CodeCount& count = known->second;
    if (!count.is_from_listing) uncompiled.emplace(step.program->name, count.why);
    const auto all = static_cast<double>(step.info.stored_bytes);
    if (step.info.parts.empty()) return AddTo(step, step.info.role, count, 1);
    for (const auto& [role, own] : step.info.parts) AddTo(step, role, count, static_cast<double>(own) / all);
  }

 private:
  /// share: of the step that this part is.
  void AddTo(const Step& step, const std::string& role, const codegen::CodeCount& count, double share) {
    const bool is_table = step.info.streams && step.info.role != "attention";
    const std::string format = is_table ? step.info.format : "";
    auto found =
        std::ranges::find_if(parts, [&](const PartCode& part) { return part.role == role && part.format == format; });
    if (found == parts.end()) found = parts.insert(parts.end(), {role, format});
    found->vector_instructions += count.vector_instructions * share;
    if (is_table) found->stored_bytes += static_cast<double>(step.info.stored_bytes) * share;
    found->is_from_listing = found->is_from_listing && count.is_from_listing;
  }

  codegen::CodeCounter& counter_;
  std::map<std::tuple<const kernel::Program*, std::int64_t, std::int64_t>, codegen::CodeCount> counts_;
};

}  // namespace

Result<TokenCode> CodeOfToken(const model::Model& model, const chip::Chip& chip, const model::CacheFormats& cache,
                              std::span<const std::uint64_t> depths) {
  if (chip.backend != "cpu") {
    return Fail(Code::kUsage, chip.name, fmt::format("a chip of the backend {}", chip.backend),
                "a CPU: machine code is generated for no other");
  }
  if (!model.architecture().runnable) {
    return Fail(Code::kModelNotRunnable, model.architecture().name, model.architecture().not_runnable_reason,
                "an architecture whose tokens are computed");
  }
  Options options;
  options.threads = 1;
  options.cache = cache;
  options.context = depths.empty() ? 1 : std::ranges::max(depths) + 1;
  const kernel::VectorFacts facts = kernel::VectorFactsOf(chip);
  BOLTBEAM_ASSIGN(const kernel::AttentionShape attention, AttentionShapeOf(model, options, facts));
  BOLTBEAM_ASSIGN(const Weights weights, Weights::Plan(model, facts, options));
  Arena arena;
  std::map<std::string, kernel::Program> programs;
  std::array<std::byte, 64> place{};
  PlanContext context{model, weights, options, facts, attention, UnusedWorkspace(place.data(), 1), 1, arena, programs};
  BOLTBEAM_ASSIGN(const Plan plan, BuildPlan(context, true));
  codegen::CodeCounter counter(codegen::TargetFor(chip), facts.bits());
  TokenCode code;
  std::map<std::string, std::string> uncompiled;
  for (const std::uint64_t depth : depths) {
    Account account(counter);
    const Pass pass = PassAt(attention, model.hyper().sliding_window, depth);
    for (const Step& step : plan.steps) account.Add(step, pass);
    code.depths.push_back(std::move(account.parts));
    uncompiled.merge(account.uncompiled);
  }
  for (const auto& [kernel, why] : uncompiled) code.uncompiled.push_back(kernel + ": " + why);
  return code;
}

}  // namespace boltbeam::engine
