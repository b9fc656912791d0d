#include "search/plan_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "codegen/codegen.h"
#include "engine/attention_choice.h"
#include "engine/thread_choice.h"
#include "engine/weights.h"
#include "kernel/families/gemv.h"
#include "kernel/knobs.h"
#include "kernel/space.h"
#include "model/token_graph.h"
#include "search/product_gate.h"

namespace boltbeam::search {
namespace {

using engine::TableName;

/// Of a large table so much is checked again before a plan is used: `kernel check` takes all of it.
constexpr std::uint64_t kMostWeights = std::uint64_t{4} << 20;

/// A choice for one table, and the plan that it comes from.
struct Pick {
  PlanFile* plan = nullptr;
  PlanTable* table = nullptr;
};

class Chooser {
 public:
  Chooser(const model::Model& model, const chip::Chip& machine, runtime::KernelCache& kernels, std::uint32_t threads,
          const model::CacheFormats& cache)
      : model_(model), facts_(kernel::VectorFactsOf(machine)), kernels_(kernels), threads_(threads), cache_(cache) {
    for (const model::Operation& operation : model::BuildTokenGraph(model, {})) {
      if (operation.kind == model::OpKind::kMatmul) tables_.emplace(TableName(*operation.weights), operation.weights);
    }
  }

  /// Plans in the order of preference.
  Result<PlanUse> Choose(std::vector<PlanFile>& plans) {
    std::ranges::stable_partition(plans, [this](const PlanFile& plan) { return plan.threads == threads_; });
    for (PlanFile& plan : plans) Offer(plan);
    BOLTBEAM_TRY(KeepTogether());
    BOLTBEAM_TRY(CheckAgain());
    PlanUse use;
    for (const auto& [name, pick] : picks_) {
      use.geometry.push_back({name, pick.table->knobs});
      if (std::ranges::find(use.plans, pick.plan->name) == use.plans.end()) use.plans.push_back(pick.plan->name);
    }
    for (const PlanFile& plan : plans) {
      if (!IsForAllOf(plan)) continue;
      use.with = plan.with;
      use.without = plan.without;
      TakeAttention(plan, use);
      break;
    }
    for (const PlanFile& plan : plans) {
      if (plan.threads == threads_ || std::ranges::find(use.plans, plan.name) == use.plans.end()) continue;
      notes_.push_back(fmt::format("plan {} was measured with {} threads, {} run now: what is fastest may be otherwise",
                                   plan.name, plan.threads, threads_));
    }
    use.notes = std::move(notes_);
    return use;
  }

  /// Plans whose tables were found correct again.
  [[nodiscard]] const std::vector<const PlanFile*>& changed() const { return changed_; }

 private:
  bool HasInstructions(const PlanFile& plan) const {
    return std::ranges::all_of(plan.features, [&](const std::string& feature) {
      return std::ranges::find(kernels_.target().features, feature) != kernels_.target().features.end();
    });
  }

  void Offer(PlanFile& plan) {
    if (!HasInstructions(plan)) {
      return Leave(plan.name, "it was measured with instruction sets that are not there now");
    }
    for (PlanTable& table : plan.tables) {
      const auto found = tables_.find(table.table);
      if (found == tables_.end() || picks_.contains(table.table)) continue;
      const engine::GeometryChoice choice{table.table, table.knobs};
      if (const auto legal = engine::GeometryFor({&choice, 1}, *found->second, facts_); !legal) {
        Leave(fmt::format("{} of {}", table.table, plan.name), legal.error().found);
        continue;
      }
      picks_.emplace(table.table, Pick{&plan, &table});
    }
  }

  /// Tables that one step multiplies together must have one geometry, or the step falls apart: a plan that has chosen
  /// for some of them says nothing about that.
  Result<void> KeepTogether() {
    engine::Options options;
    options.threads = 1;
    BOLTBEAM_ASSIGN(const engine::Weights weights, engine::Weights::Plan(model_, facts_, options));
    const std::map<std::string, const model::Tensor*> tables = tables_;
    for (const model::Operation& operation : model::BuildTokenGraph(model_, {})) {
      if (operation.kind != model::OpKind::kMatmul) continue;
      const auto& tensors = weights.space(*operation.weights).tensors;
      const auto knobs = [&](const model::Tensor* tensor) {
        const auto pick = picks_.find(TableName(*tensor));
        return pick == picks_.end() ? std::string() : pick->second.table->knobs;
      };
      const std::string first = knobs(tensors.front());
      if (std::ranges::all_of(tensors, [&](const model::Tensor* tensor) { return knobs(tensor) == first; })) continue;
      for (const model::Tensor* tensor : tensors) {
        if (picks_.erase(TableName(*tensor)) != 0) {
          Leave(TableName(*tensor), "a kernel multiplies it together with tables that no plan gives the same knobs");
        }
      }
    }
    return {};
  }

  Result<void> CheckAgain() {
    std::vector<std::string> wrong;
    for (auto& [name, pick] : picks_) {
      const model::Tensor& tensor = *tables_.at(name);
      BOLTBEAM_ASSIGN(const kernel::GemvGeometry geometry, kernel::ParseGeometry(pick.table->knobs, {}));
      BOLTBEAM_ASSIGN(const std::string key,
                      CheckKey(*tensor.format, tensor.rows(), tensor.cols(), geometry, kernels_.target()));
      if (key == pick.table->checked) continue;
      BOLTBEAM_ASSIGN(const GateRows rows, ReadGateRows(model_, tensor, kMostWeights));
      BOLTBEAM_ASSIGN(const GateFinding finding, ProductGate(rows, facts_, kernels_).Check(geometry));
      if (!finding.ok) {
        Leave(fmt::format("{} of {}", name, pick.plan->name),
              fmt::format("{}: its kernel is wrong now, by {:.1e} in row {}", WhatChanged(*pick.plan), finding.error,
                          finding.worst_row));
        wrong.push_back(name);
        continue;
      }
      pick.table->checked = key;
      notes_.push_back(
          fmt::format("{} of plan {} was checked again ({}): correct", name, pick.plan->name, WhatChanged(*pick.plan)));
      if (std::ranges::find(changed_, pick.plan) == changed_.end()) changed_.push_back(pick.plan);
    }
    for (const std::string& name : wrong) picks_.erase(name);
    // What is left of tables that go together goes too.
    return wrong.empty() ? Result<void>{} : KeepTogether();
  }

  std::string WhatChanged(const PlanFile& plan) const {
    if (plan.llvm != codegen::CompilerVersion()) {
      return fmt::format("LLVM {} before, {} now", plan.llvm.empty() ? "unknown" : plan.llvm,
                         codegen::CompilerVersion());
    }
    return plan.features != kernels_.target().features ? "other instruction sets" : "other kernels";
  }

  bool IsForAllOf(const PlanFile& plan) const {
    const std::size_t tables = plan.tables.size() - (plan.Find(engine::kAttentionTable) != nullptr ? 1 : 0);
    const bool has_all = std::ranges::all_of(tables_, [&](const auto& table) {
      const auto pick = picks_.find(table.first);
      return pick != picks_.end() && pick->second.plan == &plan;
    });
    return has_all && tables == tables_.size();
  }

  /// Its kernels have no table to be checked on: the judge has compared its logits.
  void TakeAttention(const PlanFile& plan, PlanUse& use) {
    const PlanTable* attention = plan.Find(engine::kAttentionTable);
    if (attention == nullptr) return;
    engine::Options options;
    options.cache = cache_;
    options.geometry = {{attention->table, attention->knobs}};
    if (const auto legal = engine::AttentionShapeOf(model_, options, facts_); !legal) {
      return Leave(fmt::format("attention of {}", plan.name), legal.error().found);
    }
    use.geometry.push_back(options.geometry.front());
  }

  void Leave(const std::string& what, const std::string& why) {
    notes_.push_back(fmt::format("plan {} is not used: {}", what, why));
  }

  const model::Model& model_;
  const kernel::VectorFacts facts_;
  runtime::KernelCache& kernels_;
  const std::uint32_t threads_;
  const model::CacheFormats cache_;
  std::map<std::string, const model::Tensor*> tables_;  // one of each name
  std::map<std::string, Pick> picks_;
  std::vector<const PlanFile*> changed_;
  std::vector<std::string> notes_;
};

bool IsFile(const std::string& choice) { return choice.find('/') != std::string::npos || choice.ends_with(".json"); }

Result<std::vector<PlanFile>> PlansOf(const PlanStore& store, const chip::Chip& machine, const std::string& choice) {
  if (choice.empty()) return store.ForChip(machine.id);
  if (!IsFile(choice)) {
    BOLTBEAM_ASSIGN(PlanFile plan, store.Find(choice));
    return std::vector{std::move(plan)};
  }
  BOLTBEAM_ASSIGN(PlanFile plan, LoadPlanFile(choice));
  plan.name = choice;
  return std::vector{std::move(plan)};
}

}  // namespace

Result<std::string> CheckKey(const formats::Format& format, std::uint64_t rows, std::uint64_t cols,
                             const kernel::GemvGeometry& geometry, const codegen::Target& target) {
  BOLTBEAM_ASSIGN(const kernel::WeightLayout layout, kernel::LayoutFor(format, geometry));
  BOLTBEAM_ASSIGN(const kernel::Program program, kernel::BuildGemv(layout, geometry, {.rows = rows, .cols = cols}));
  return runtime::KernelKey(kernel::Identity(program), target);
}

Result<PlanUse> UsePlan(const model::Model& model, const chip::Chip& machine, const PlanStore& store,
                        const std::string& choice, runtime::KernelCache& kernels, std::uint32_t threads,
                        const model::CacheFormats& cache) {
  if (choice == kDefaultPlan) return PlanUse{};
  BOLTBEAM_ASSIGN(std::vector<PlanFile> plans, PlansOf(store, machine, choice));
  if (plans.empty()) return PlanUse{};
  if (threads == 0) threads = engine::ChooseThreads(machine).threads;
  Chooser chooser(model, machine, kernels, threads, cache);
  BOLTBEAM_ASSIGN(PlanUse use, chooser.Choose(plans));
  if (!choice.empty() && use.geometry.empty() && !plans.front().tables.empty()) {
    return Fail(Code::kUsage, "--plan " + choice,
                use.notes.empty() ? "it has none of the model's tables" : use.notes.front(),
                "a plan for this model's formats and shapes");
  }
  if (IsFile(choice)) return use;
  for (const PlanFile* plan : chooser.changed()) {
    // A store that can't be written costs another check the next time, not the plan.
    static_cast<void>(store.Update(*plan));
  }
  return use;
}

}  // namespace boltbeam::search
