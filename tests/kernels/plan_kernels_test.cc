// The kernels of the default plan: where they come from, and whether they are right on a model's own tensors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "chip/facts.h"
#include "engine/engine.h"
#include "engine/kernel_check.h"
#include "engine/plan.h"
#include "report/kernels.h"
#include "report/table.h"
#include "test_model.h"

namespace boltbeam::engine {
namespace {

/// Normal weights in the tensor's own format.
std::vector<std::byte> RandomTensor(const gguf::Writer::Tensor& tensor) {
  static std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.05F);
  std::uint64_t elements = 1;
  for (const std::uint64_t n : tensor.shape) elements *= n;
  std::vector<float> values(elements);
  for (float& value : values) value = normal(random);
  const formats::Format& format = *formats::FindType(tensor.type);
  std::vector<std::byte> bytes(elements / format.elements * format.bytes);
  EXPECT_TRUE(formats::Quantize(format, values, bytes)) << format.name;
  return bytes;
}

class PlanKernelsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model::TestSizes sizes;
    sizes.ffn = 768;
    sizes.vocab = 331;  // no multiple of any vector
    static model::TestModel file("qwen2", sizes, "Q6_K", [](const std::string& name, std::uint32_t layer) {
      if (name == "token_embd" || name == "attn_k") return std::string("Q8_0");
      if (name == "ffn_down") return std::string(layer == 0 ? "Q4_1" : "F16");
      return std::string("Q4_K");
    });
    file.fill = RandomTensor;
    auto model = model::Model::Load(file.Write());
    ASSERT_TRUE(model) << model.error().Message();
    model_ = new model::Model(std::move(*model));
    auto machine = chip::DetectThisMachine();
    ASSERT_TRUE(machine) << machine.error().Message();
    machine_ = new chip::Chip(std::move(*machine));
    Options options;
    options.threads = 1;
    options.context = 128;
    auto engine = Engine::Load(*model_, *machine_, options);
    ASSERT_TRUE(engine) << engine.error().Message();
    engine_ = engine->release();
  }
  static void TearDownTestSuite() {
    delete engine_;
    delete machine_;
    delete model_;
  }

  inline static model::Model* model_ = nullptr;
  inline static chip::Chip* machine_ = nullptr;
  inline static Engine* engine_ = nullptr;
};

TEST_F(PlanKernelsTest, EveryKernelOfTheDefaultPlanIsGenerated) {
  ASSERT_FALSE(engine_->steps().empty());
  for (const StepInfo& step : engine_->steps()) {
    EXPECT_TRUE(step.provenance == "compiler_generated" || step.provenance == "search_generated") << step.kernel;
    EXPECT_TRUE(engine_->programs().contains(step.kernel_id)) << step.kernel;
  }
  for (const auto& [id, program] : engine_->programs()) {
    EXPECT_EQ(id, kernel::Identity(program));
    EXPECT_TRUE(program.provenance == kernel::Provenance::kCompilerGenerated ||
                program.provenance == kernel::Provenance::kSearchGenerated)
        << program.name;
  }
}

TEST_F(PlanKernelsTest, OtherLabelsAreRefused) {
  for (const kernel::Provenance label : {kernel::Provenance::kHandWritten, kernel::Provenance::kUnknown}) {
    kernel::Program program = engine_->programs().begin()->second;
    program.provenance = label;
    Plan plan;
    plan.steps.emplace_back();
    plan.steps.back().program = &program;
    const auto checked = CheckProvenance(plan);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::kKernelProvenance);
    EXPECT_NE(checked.error().Message().find(program.name), std::string::npos);
    program.provenance = kernel::Provenance::kSearchGenerated;
    EXPECT_TRUE(CheckProvenance(plan));
  }
}

TEST_F(PlanKernelsTest, AgreeWithDoubleArithmeticOnTheModelsOwnTensors) {
  const auto checks = CheckKernels(*engine_, *machine_, {});
  ASSERT_TRUE(checks) << checks.error().Message();
  // Seven tables a layer and the head, each in two ways, but gate and up together in one of them; rows; and every other
  // kernel of the plan once.
  std::set<std::string> others;
  for (const StepInfo& step : engine_->steps()) {
    const bool is_table = step.kernel.starts_with("gemv") || step.role == "embed";
    if (!is_table) others.insert(step.kernel_id);
  }
  EXPECT_GE(others.size(), 8U);
  EXPECT_EQ(checks->size(), 2U * (2 * 7 - 1) + 2 + 1 + others.size());
  for (const KernelCheck& check : *checks) {
    EXPECT_TRUE(check.ok) << check.tensor << " " << check.kernel << ": " << check.error << " in row "
                          << check.worst_row;
    // Weights are normal, so an error of exactly nothing would mean that nothing was compared.
    EXPECT_TRUE(check.part == "embed" || check.tensor.empty() || check.error > 0) << check.tensor;
  }
  const std::string table = report::KernelCheckReport(*checks, report::Form::kText);
  EXPECT_NE(table.find(fmt::format("{0} of {0} checks agree", checks->size())), std::string::npos) << table;
}

/// The same model with knobs turned; its engine and what its kernels' check says.
Result<std::vector<KernelCheck>> CheckTurned(const model::Model& model, const chip::Chip& machine,
                                             std::vector<GeometryChoice> choices) {
  Options options;
  options.threads = 1;
  options.context = 128;
  options.geometry = std::move(choices);
  BOLTBEAM_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Load(model, machine, options));
  return CheckKernels(*engine, machine, {});
}

TEST_F(PlanKernelsTest, SharedTailsAreBoundedByWhatTokensWaitWithoutThem) {
  const auto tails = [](const measure::RouteList& routes) {
    return *std::ranges::find(routes.bounds, kSharedTails, [](const RouteBound& bound) { return bound.route->name; });
  };
  const auto alone = measure::BoundRoutes(*engine_, *machine_);
  ASSERT_TRUE(alone) << alone.error().Message();
  EXPECT_EQ(tails(*alone).at_most_ns, 0) << "one thread waits for nobody";
  Options options;
  options.threads = 2;
  options.context = 128;
  const auto engine = Engine::Load(*model_, *machine_, options);
  ASSERT_TRUE(engine) << engine.error().Message();
  const auto routes = measure::BoundRoutes(**engine, *machine_);
  ASSERT_TRUE(routes) << routes.error().Message();
  EXPECT_GT(tails(*routes).at_most_ns.value_or(0), 0);
  EXPECT_EQ(tails(*routes).waits_from, "this plan's tokens");
  EXPECT_EQ(measure::BoundRoutes(**engine, *machine_, [] { return true; }).error().code, Code::kInterrupted);
}

TEST_F(PlanKernelsTest, ChosenGeometriesRunAndAreRight) {
  const auto checks = CheckTurned(*model_, *machine_,
                                  {{"", "lanes=4,chains=2,depth=1"}, {"Q4_K", "scales=bytes,vectors=2,prefetch=1024"}});
  ASSERT_TRUE(checks) << checks.error().Message();
  bool is_turned = false;
  for (const KernelCheck& check : *checks) {
    EXPECT_TRUE(check.ok) << check.tensor << " " << check.kernel << ": " << check.error;
    is_turned = is_turned || check.kernel.find(".r4x2.") != std::string::npos;
  }
  EXPECT_TRUE(is_turned);
}

TEST_F(PlanKernelsTest, IllegalAndUnknownChoicesAreRefused) {
  const auto illegal = CheckTurned(*model_, *machine_, {{"Q4_K", "chains=3,depth=1"}});
  ASSERT_FALSE(illegal);
  EXPECT_EQ(illegal.error().code, Code::kKernelIllegal);
  EXPECT_NE(illegal.error().Message().find("3 chains for 8 products"), std::string::npos) << illegal.error().Message();
  const auto unknown = CheckTurned(*model_, *machine_, {{"Q9", "chains=1"}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUsage);
  EXPECT_FALSE(ParseGeometryChoice("Q4_K:speed=9"));
  EXPECT_EQ(ParseGeometryChoice("Q4_K.8x9:unroll=2").value().table, "Q4_K.8x9");
}

TEST_F(PlanKernelsTest, OnePartOrNone) {
  CheckOptions options;
  options.part = "lm_head";
  const auto head = CheckKernels(*engine_, *machine_, options);
  ASSERT_TRUE(head) << head.error().Message();
  EXPECT_EQ(head->size(), 2U);  // one column, and several
  options.part = "nothing";
  EXPECT_EQ(CheckKernels(*engine_, *machine_, options).error().code, Code::kUsage);
  options.part.clear();
  options.cancelled = [] { return true; };
  EXPECT_EQ(CheckKernels(*engine_, *machine_, options).error().code, Code::kInterrupted);
}

// Small vectors stay in the caches: their floor is not the memory's.
TEST_F(PlanKernelsTest, AFloorIsOfTheMemoryOrOfTheCaches) {
  chip::Chip chip = *machine_;
  std::erase_if(chip.facts, [](const chip::Fact& fact) { return fact.name.ends_with("bandwidth_gb_s"); });
  for (const auto& [name, value] : {std::pair("read_bandwidth_gb_s", 10.0), std::pair("cache_bandwidth_gb_s", 100.0)}) {
    chip.facts.push_back({name, value, "GB/s", chip::Provenance::kMeasured, "", "", 0, "", chip::Use::kNone});
  }
  const auto kernels = report::KernelsOf(*engine_);
  const auto costs = report::CostsOf(kernels, chip, codegen::TargetFor(*machine_), {});
  ASSERT_TRUE(costs) << costs.error().Message();
  std::size_t streams = 0, small = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].stored_bytes == 0) continue;
    ++(kernels[i].streams ? streams : small);
    EXPECT_EQ((*costs)[i].floor_ns, static_cast<double>(kernels[i].stored_bytes) / (kernels[i].streams ? 10 : 100));
  }
  EXPECT_GT(streams, 0U);
  EXPECT_GT(small, 0U);
}

TEST_F(PlanKernelsTest, KernelsAreListedAndShown) {
  const auto kernels = report::KernelsOf(*engine_);
  std::uint64_t steps = 0;
  for (const report::PlannedKernel& kernel : kernels) steps += kernel.steps;
  EXPECT_EQ(steps, engine_->steps().size());
  EXPECT_EQ(kernels.size(), engine_->programs().size());
  const auto routes = measure::BoundRoutes(*engine_, *machine_);
  ASSERT_TRUE(routes) << routes.error().Message();
  for (const RouteBound& bound : routes->bounds) {  // never from a fact about other plans, not even with one thread
    EXPECT_NE(bound.waits_from, "barrier_wait_ns") << bound.route->name;
  }
  const auto times = measure::TimeKernels(*engine_, 3);
  ASSERT_TRUE(times) << times.error().Message();
  const auto costs = report::CostsOf(kernels, *machine_, codegen::TargetFor(*machine_), *times);
  ASSERT_TRUE(costs) << costs.error().Message();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const bool is_product = kernels[i].program->name.starts_with("gemv");
    EXPECT_EQ((*costs)[i].instructions_per_byte.value_or(0) > 0, is_product) << kernels[i].program->name;
    EXPECT_EQ((*costs)[i].now_ns.value_or(0) > 0, kernels[i].steps > 0) << kernels[i].program->name;
    EXPECT_GT((*costs)[i].vector_registers.value_or(0), 0) << kernels[i].program->name;
  }
  const std::string json = report::KernelListReport(*engine_, *routes, *costs, report::Form::kJson);
  EXPECT_NE(json.find("instructions_per_byte"), std::string::npos);
  EXPECT_NE(report::KernelListReport(*engine_, *routes, *costs, report::Form::kCsv).find("cycles_per_byte"),
            std::string::npos);
  EXPECT_NE(json.find("compiler_generated"), std::string::npos);
  EXPECT_NE(json.find("\"route\": \"gate-by-rows\""), std::string::npos) << json;
  const std::string list = report::KernelListReport(*engine_, *routes, *costs, report::Form::kText);
  EXPECT_NE(list.find("attention-by-heads"), std::string::npos);
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(report::DisplayWidth(line), 80U) << line;
  const auto text = report::KernelText(kernels.front(), codegen::TargetFor(*machine_), report::Stage::kAll);
  ASSERT_TRUE(text) << text.error().Message();
  for (const char* part : {"## Loop program\nkernel ", "## LLVM IR\n", "## Machine code\n"})
    EXPECT_NE(text->find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace boltbeam::engine
