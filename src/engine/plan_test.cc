#include "engine/plan.h"

#include <gtest/gtest.h>

namespace boltbeam::engine {
namespace {

Plan PlanOf(const kernel::Program& program) {
  Plan plan;
  Step step;
  step.program = &program;
  plan.steps.push_back(step);
  return plan;
}

TEST(PlanTest, OnlyGeneratedKernelsMayShip) {
  kernel::Program program;
  program.name = "a.kernel";
  for (const auto provenance : {kernel::Provenance::kSearchGenerated, kernel::Provenance::kCompilerGenerated}) {
    program.provenance = provenance;
    EXPECT_TRUE(CheckProvenance(PlanOf(program)));
  }
  for (const auto provenance : {kernel::Provenance::kHandWritten, kernel::Provenance::kUnknown}) {
    program.provenance = provenance;
    const Result<void> checked = CheckProvenance(PlanOf(program));
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::kKernelProvenance);
    EXPECT_EQ(checked.error().where, "a.kernel");
  }
}

}  // namespace
}  // namespace boltbeam::engine
