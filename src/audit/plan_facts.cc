#include "audit/plan_facts.h"

#include <algorithm>

#include "engine/routes.h"
#include "kernel/geometry.h"
#include "kernel/instruction_count.h"
#include "kernel/knobs.h"
#include "model/token_graph.h"

namespace boltbeam::audit {
namespace {

std::string DotName(const kernel::GemvGeometry& geometry) {
  for (const kernel::Knob& knob : kernel::GemvKnobs()) {
    if (knob.name == "dot") return knob.ValueText(knob.get(geometry));
  }
  return {};
}

Result<PartPlan> PlanOf(const engine::Engine& engine, const model::Operation& operation, const chip::Chip& seen,
                        const chip::Chip& machine) {
  const model::Tensor& tensor = *operation.weights;
  BOLTBEAM_ASSIGN(const kernel::GemvGeometry geometry,
                  engine::GeometryFor(engine.options().geometry, tensor, kernel::VectorFactsOf(seen)));
  PartPlan plan{.role = operation.role,
                .format = tensor.format->name,
                .geometry = kernel::GeometryText(geometry),
                .dot = DotName(geometry),
                .best_dot = {}};
  plan.best_dot = DotName(kernel::DefaultGeometry(*tensor.format, kernel::VectorFactsOf(machine), false));
  BOLTBEAM_ASSIGN(const double now, kernel::InstructionsPerWeight(*tensor.format, geometry));
  BOLTBEAM_ASSIGN(const kernel::WeightLayout layout, kernel::LayoutFor(*tensor.format, geometry));
  const double weights_per_byte = static_cast<double>(layout.elements) * layout.lanes / layout.block_bytes;
  plan.instructions_per_byte = now * weights_per_byte;
  plan.ahead_bytes = static_cast<double>(geometry.prefetch_bytes) / geometry.prefetch_every;
  kernel::GemvGeometry words = geometry;
  words.scales = kernel::ScaleForm::kWords;
  // Formats without scales, or whose scales have one form only, have no such point.
  const Result<double> apart = kernel::InstructionsPerWeight(*tensor.format, words);
  const Result<kernel::WeightLayout> apart_layout = kernel::LayoutFor(*tensor.format, words);
  if (apart && apart_layout && now > 0) {
    plan.words_instructions = *apart / now;
    plan.words_growth = static_cast<double>(apart_layout->block_bytes) / layout.block_bytes;
  }
  return plan;
}

}  // namespace

Result<std::vector<PartPlan>> PartPlans(const engine::Engine& engine, const chip::Chip& seen,
                                        const chip::Chip& machine) {
  std::vector<PartPlan> plans;
  for (const model::Operation& operation : model::BuildTokenGraph(engine.model(), {})) {
    if (operation.kind != model::OpKind::kMatmul) continue;
    const bool is_known = std::ranges::any_of(plans, [&](const PartPlan& plan) {
      return plan.role == operation.role && plan.format == operation.weights->format->name;
    });
    if (is_known) continue;
    BOLTBEAM_ASSIGN(PartPlan plan, PlanOf(engine, operation, seen, machine));
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<std::string> IdleRoutes(const engine::Engine& engine) {
  std::vector<std::string> idle;
  for (const engine::Route& route : engine::Routes()) {
    const bool is_on = engine::IsRouteOn(route.name, engine.options().with, engine.options().without);
    if (!is_on && route.refuted.empty()) idle.push_back(route.name);
  }
  return idle;
}

}  // namespace boltbeam::audit
