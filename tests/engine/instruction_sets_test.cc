// The same model on every instruction set that this machine has, against a forward pass in double precision.
#include "chip/instruction_sets.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "codegen/codegen.h"
#include "engine/kernel_check.h"
#include "engine/loaded.h"
#include "engine/reference_model.h"

namespace boltbeam::engine {
namespace {

struct Held {
  std::string set;
  chip::Chip machine;
};

std::vector<Held> Machines() {
  const chip::Chip machine = chip::DetectThisMachine().value();
  std::vector<Held> all;
  for (const std::string_view set : chip::InstructionSetsOf(machine)) {
    all.push_back({std::string(set), machine});
    EXPECT_TRUE(chip::HoldTo(all.back().machine, set));
  }
  return all;
}

/// The mean distance of the logits of a few tokens, decoded one by one, from double precision.
double Distance(const chip::Chip& machine, const std::string& spec, const Options& options) {
  const Loaded loaded = LoadOn(machine, Synth(spec), options);
  ReferenceModel reference(*loaded.model);
  const std::vector<std::int32_t> tokens = Tokens(12, loaded.model->hyper().vocab);
  double total = 0;
  for (const std::int32_t token : tokens) {
    EXPECT_TRUE(loaded.session->Decode(token));
    total += Divergence(reference.Append(token), loaded.session->logits());
  }
  return total / static_cast<double>(tokens.size());
}

TEST(InstructionSetsTest, FloatWeightsGiveTheLogitsOfDoublePrecision) {
  Options options;
  options.cache = {formats::FindFormat("F32"), formats::FindFormat("F32")};
  for (const Held& held : Machines()) {
    for (const char* spec : {"tiny-llama:F32", "tiny-qwen3:F32", "tiny-gemma3:F32"}) {
      EXPECT_LT(Distance(held.machine, spec, options), 1e-9) << spec << " held to " << held.set;
    }
  }
}

TEST(InstructionSetsTest, QuantisedWeightsKeepTheDistanceOfEightBitActivations) {
  for (const Held& held : Machines()) {
    for (const char* spec : {"tiny-qwen3:Q8_0", "tiny-gemma3:Q4_K_M"}) {
      EXPECT_LT(Distance(held.machine, spec, {}), 2e-2) << spec << " held to " << held.set;
    }
  }
}

TEST(InstructionSetsTest, ThePlansDifferAndTheirKernelsAgreeWithDoubleArithmetic) {
  const std::string path = Synth("tiny-gemma3:Q4_K_M");
  std::set<std::string> plans;
  for (const Held& held : Machines()) {
    const Loaded loaded = LoadOn(held.machine, path);
    const auto checks = CheckKernels(*loaded.engine, held.machine, {});
    ASSERT_TRUE(checks) << held.set << ": " << checks.error().Message();
    for (const KernelCheck& check : *checks) EXPECT_TRUE(check.ok) << held.set << " " << check.kernel << check.error;
    plans.insert(loaded.engine->plan_id());
  }
  EXPECT_EQ(plans.size(), Machines().size());
}

TEST(InstructionSetsTest, NoKernelOfThePlanHoldsAnInstructionAboveTheSet) {
  static const std::map<std::string, std::string> kAbove = {{"plain", "\\n\\tv|%ymm"},
                                                            {"avx2", "%zmm|%k[0-7]|%[xy]mm(1[6-9]|[23][0-9])|vpdp"},
                                                            {"avx512", "vpdp"},
                                                            {"neon", "dot\\s"},
                                                            {"dotprod", "usdot\\s"}};
  const std::string path = Synth("tiny-qwen3:Q8_0");
  for (const Held& held : Machines()) {
    if (!kAbove.contains(held.set)) continue;
    const std::regex above(kAbove.at(held.set));
    const Loaded loaded = LoadOn(held.machine, path);
    for (const auto& [id, program] : loaded.engine->programs()) {
      const auto text = codegen::EmitListing(program, codegen::TargetFor(held.machine), codegen::Listing::kAssembly);
      ASSERT_TRUE(text) << text.error().Message();
      std::smatch found;
      EXPECT_FALSE(std::regex_search(*text, found, above)) << held.set << ": " << program.name << ": " << found.str();
    }
  }
}

}  // namespace
}  // namespace boltbeam::engine
