// An engine whose tokens take no computing: for tests of what drives one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ticks.h"
#include "engine/engine.h"

namespace boltbeam::measure {

/// Counts what it is asked for. Decode takes at least token_ns of real time, and fails from fail_at on.
class FakeSession : public engine::Session {
 public:
  std::uint64_t token_ns = 0;
  std::optional<std::uint64_t> fail_at;                            // decoded tokens
  std::function<void(std::uint64_t token, engine::Trace&)> trace;  // fills the stamps of a traced token
  std::uint64_t prompted = 0, decoded = 0, truncations = 0;
  std::vector<std::int32_t> context;

  std::uint64_t depth() const override { return context.size(); }
  Result<void> Prompt(std::span<const std::int32_t> tokens,
                      const std::function<void(std::size_t, std::span<const float>)>&) override {
    prompted += tokens.size();
    context.insert(context.end(), tokens.begin(), tokens.end());
    return {};
  }
  Result<void> Decode(std::int32_t token, engine::Trace* stamps) override {
    if (fail_at && decoded >= *fail_at) return Fail(Code::kInternal, "fake", "told to fail");
    const std::uint64_t begin = base::MonotonicNs();
    while (base::MonotonicNs() < begin + token_ns) {
    }
    context.push_back(token);
    if (stamps != nullptr && trace) trace(decoded, *stamps);
    ++decoded;
    return {};
  }
  std::span<const float> logits() const override { return {}; }
  void KeepLogits(bool /*keep*/) override {}
  std::int32_t argmax() const override { return 0; }
  Result<void> Truncate(std::uint64_t depth) override {
    ++truncations;
    context.resize(depth);
    return {};
  }
};

class FakeEngine : public engine::Engine {
 public:
  explicit FakeEngine(model::Model model) : model_(std::move(model)) {}
  std::vector<engine::StepInfo> step_list;
  std::uint32_t phase_count = 0;
  engine::Options engine_options;

  const model::Model& model() const override { return model_; }
  const engine::Options& options() const override { return engine_options; }
  engine::MemoryUse memory() const override { return {}; }
  std::span<const engine::StepInfo> steps() const override { return step_list; }
  std::uint32_t phases() const override { return phase_count; }
  const std::map<std::string, kernel::Program>& programs() const override { return programs_; }
  const std::map<std::string_view, std::uint32_t>& route_uses() const override { return route_uses_; }
  Result<engine::PlanCost> Cost(const std::vector<std::string>& /*with*/,
                                const std::vector<std::string>& /*without*/) const override {
    return engine::PlanCost{};
  }
  std::string plan_id() const override { return "fake"; }
  Result<std::unique_ptr<engine::Session>> NewSession() override { return std::make_unique<FakeSession>(); }

 private:
  model::Model model_;
  std::map<std::string, kernel::Program> programs_;
  std::map<std::string_view, std::uint32_t> route_uses_;
};

}  // namespace boltbeam::measure
