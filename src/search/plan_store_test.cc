#include "search/plan_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "chip/facts.h"
#include "engine/weights.h"
#include "kernel/knobs.h"
#include "search/decide.h"
#include "search/plan_use.h"
#include "test_model.h"

namespace boltbeam::search {
namespace {

constexpr const char* kKnobs =
    "lanes=8,scales=packed,vectors=1,dot=maddhalves,unroll=1,chains=1,depth=1,order=ascending,prefetch=0,hint=near,"
    "every=1";

PlanFile APlan() {
  PlanFile plan;
  plan.chip = "a-chip";
  plan.chip_name = "A chip";
  plan.made_for = "Some Model.gguf";
  plan.baseline = "default";
  plan.threads = 2;
  plan.date = "2026-11-30T01:00:00Z";
  plan.tables = {{"Q8_0.256x256", kKnobs, "abc"}, {"Q8_0.128x256", kKnobs, ""}};
  plan.without = {"shared-tails"};
  plan.llvm = "19.1.7-3";
  plan.features = {"avx2"};
  plan.gain = PlanGain{0.95, 0.94, 0.96, "promote", std::string(64, 'a')};
  return plan;
}

class Folder {
 public:
  Folder() : path_(std::filesystem::path(testing::TempDir()) / ("plans-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(PlanFileTest, IsReadAsItWasWritten) {
  const PlanFile plan = APlan();
  const auto read = ParsePlan(ToJson(plan), "x.json");
  ASSERT_TRUE(read) << read.error().Message();
  EXPECT_EQ(ToJson(*read), ToJson(plan));
  EXPECT_EQ(read->tables.size(), 2U);
  EXPECT_EQ(read->Find("Q8_0.128x256")->knobs, kKnobs);
  EXPECT_EQ(read->without, plan.without);
  EXPECT_EQ(read->gain->ratio, 0.95);
  EXPECT_EQ(read->Choices()[0].table, "Q8_0.256x256");
}

TEST(PlanFileTest, SaysWhichFieldIsBroken) {
  const auto good = nlohmann::json::parse(ToJson(APlan()));
  const auto with = [&](const char* pointer, const nlohmann::json& value) {
    auto broken = good;
    broken[nlohmann::json::json_pointer(pointer)] = value;
    return broken.dump();
  };
  const std::pair<std::string, std::string> cases[] = {
      {"not json", "x.json"},
      {"[]", "x.json"},
      {with("/schema", "boltbeam.plan.v9"), "schema"},
      {with("/chip", ""), "chip"},
      {with("/threads", 1.5), "threads"},
      {with("/threads", "two"), "threads"},
      {with("/tables", 3), "tables"},
      {with("/tables/0", 3), "tables[0]"},
      {with("/tables/1/table", "Q8_0.256x256"), "tables"},
      {with("/tables/1/knobs", "unroll=many"), "knobs"},
      {with("/tables/1/knobs", "speed=9"), "knobs"},
      {with("/without", {"no-such-route"}), "without"},
      {with("/features", {1}), "features"},
      {with("/gain", 1), "gain"},
      {with("/gain/ratio", "less"), "ratio"},
  };
  for (const auto& [text, where] : cases) {
    const auto plan = ParsePlan(text, "x.json");
    ASSERT_FALSE(plan) << text;
    EXPECT_EQ(plan.error().code, Code::kPlanFile) << text;
    EXPECT_NE(plan.error().where.find(where), std::string::npos) << plan.error().Message();
  }
}

TEST(PlanStoreTest, ANewerPlanForTheSameTablesReplacesTheOlder) {
  const Folder folder;
  const PlanStore store(folder.path());
  EXPECT_TRUE(store.List().plans.empty());
  PlanFile plan = APlan();
  const PlanFile first = store.Install(plan).value();
  EXPECT_TRUE(first.name.starts_with("some-model.gguf-"));
  plan.made_for = "another name";
  plan.date = "2026-11-30T02:00:00Z";
  const PlanFile second = store.Install(plan).value();
  ASSERT_EQ(store.List().plans.size(), 1U);
  EXPECT_EQ(store.List().plans[0].made_for, "another name");
  plan.tables.pop_back();
  plan.date = "2026-11-30T03:00:00Z";
  ASSERT_TRUE(store.Install(plan));
  plan.chip = "another-chip";
  ASSERT_TRUE(store.Install(plan));
  EXPECT_EQ(store.List().plans.size(), 3U);
  EXPECT_EQ(store.ForChip("a-chip").size(), 2U);
  EXPECT_EQ(store.ForChip("a-chip")[0].tables.size(), 1U);            // the newest first
  EXPECT_EQ(store.Find("another").error().code, Code::kPlanUnknown);  // three begin so
  EXPECT_EQ(store.Find("nothing").error().code, Code::kPlanUnknown);
  ASSERT_TRUE(store.Remove(store.Find(second.name).value()));
  EXPECT_EQ(store.List().plans.size(), 2U);
  EXPECT_EQ(store.Remove(second).error().code, Code::kFileWrite);
}

TEST(PlanStoreTest, ADamagedFileIsNamedAndLeftAlone) {
  const Folder folder;
  const PlanStore store(folder.path());
  ASSERT_TRUE(store.Install(APlan()));
  ASSERT_TRUE(base::WriteFileAtomically(store.PathOf("broken"), "{"));
  const PlanStore::Listing listing = store.List();
  EXPECT_EQ(listing.plans.size(), 1U);
  ASSERT_EQ(listing.damaged.size(), 1U);
  EXPECT_NE(listing.damaged[0].where.find("broken.json"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(store.PathOf("broken")));
}

/// A model with weights, and a plan for all its tables that gives each the geometry of a lesser chip.
class PlanUseTest : public testing::Test {
 protected:
  PlanUseTest() : file_("qwen3"), machine_(chip::DetectThisMachine().value()) {
    file_.fill = [](const gguf::Writer::Tensor& tensor) {
      std::uint64_t elements = 1;
      for (const std::uint64_t dimension : tensor.shape) elements *= dimension;
      const formats::Format& format = *formats::FindType(tensor.type);
      std::vector<float> values(elements);
      for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i * 7919 % 255) / 127 - 1;
      std::vector<std::byte> bytes(elements / format.elements * format.bytes);
      EXPECT_TRUE(formats::Quantize(format, values, bytes));
      return bytes;
    };
    model_.emplace(model::Model::Load(file_.Write()).value());
    kernels_.emplace(codegen::TargetFor(machine_), "");
    plan_ = APlan();
    plan_.chip = machine_.id;
    plan_.llvm = codegen::CompilerVersion();
    plan_.features = kernels_->target().features;
    plan_.without = {"shared-tails"};
    plan_.tables.clear();
    for (const char* name : {"Q8_0.256x256", "Q8_0.128x256", "Q8_0.512x256", "Q8_0.256x512", "Q8_0.320x256"}) {
      plan_.tables.push_back({name, kKnobs, ""});
    }
  }

  Result<PlanUse> Use(const std::string& choice = "") {
    return UsePlan(*model_, machine_, PlanStore(folder_.path()), choice, *kernels_, 2);
  }
  PlanFile Installed() { return PlanStore(folder_.path()).List().plans.at(0); }

  model::TestModel file_;
  chip::Chip machine_;
  std::optional<model::Model> model_;
  std::optional<runtime::KernelCache> kernels_;
  PlanFile plan_;
  Folder folder_;
};

TEST_F(PlanUseTest, TakesWhatIsInstalledAndChecksItOnce) {
  ASSERT_TRUE(Use()->geometry.empty());
  ASSERT_TRUE(PlanStore(folder_.path()).Install(plan_));
  const PlanUse first = Use().value();
  EXPECT_EQ(first.geometry.size(), 5U);
  EXPECT_EQ(first.without, plan_.without);
  ASSERT_EQ(first.plans.size(), 1U);
  EXPECT_EQ(first.notes.size(), 5U);  // never checked before
  EXPECT_NE(first.notes[0].find("correct"), std::string::npos) << first.notes[0];
  EXPECT_TRUE(Use()->notes.empty());  // it is remembered
  EXPECT_TRUE(Use("default")->geometry.empty());
}

TEST_F(PlanUseTest, IsCheckedAgainWhenTheCompilerHasChanged) {
  ASSERT_TRUE(PlanStore(folder_.path()).Install(plan_));
  ASSERT_TRUE(Use());
  PlanFile old = Installed();
  old.llvm = "18.0.0";
  for (PlanTable& table : old.tables) table.checked = "another kernel";
  ASSERT_TRUE(PlanStore(folder_.path()).Update(old));
  const PlanUse use = Use().value();
  ASSERT_EQ(use.notes.size(), 5U);
  EXPECT_NE(use.notes[0].find("LLVM 18.0.0 before"), std::string::npos) << use.notes[0];
}

TEST_F(PlanUseTest, NeverTakesWhatWasMeasuredForAnotherShapeOrWithOtherInstructions) {
  plan_.tables = {{"Q8_0.256x1024", kKnobs, ""}, {"Q4_0.256x256", kKnobs, ""}};
  ASSERT_TRUE(PlanStore(folder_.path()).Install(plan_));
  EXPECT_TRUE(Use()->geometry.empty());
  plan_.tables = {{"Q8_0.256x512", kKnobs, ""}};
  plan_.date = "2026-11-30T04:00:00Z";
  ASSERT_TRUE(PlanStore(folder_.path()).Install(plan_));
  const PlanUse inherited = Use().value();
  ASSERT_EQ(inherited.geometry.size(), 1U);
  EXPECT_TRUE(inherited.without.empty());  // routes are a matter of the whole model
  plan_.features.emplace_back("an-instruction-set-that-is-not-there");
  plan_.date = "2026-11-30T05:00:00Z";
  ASSERT_TRUE(PlanStore(folder_.path()).Install(plan_));
  const PlanUse without = Use().value();
  EXPECT_TRUE(without.geometry.empty());
  EXPECT_NE(without.notes.at(0).find("instruction sets"), std::string::npos);
}

TEST_F(PlanUseTest, TablesThatOneKernelMultipliesTogetherKeepOneGeometry) {
  plan_.tables = {{"Q8_0.256x256", kKnobs, ""}};  // of q, but not of k and v
  ASSERT_TRUE(PlanStore(folder_.path()).Install(plan_));
  const PlanUse use = Use().value();
  EXPECT_TRUE(use.geometry.empty());
  ASSERT_FALSE(use.notes.empty());
  EXPECT_NE(use.notes[0].find("together"), std::string::npos) << use.notes[0];
}

// Kernels are right with any number of threads: a plan for another one is used where there is none for this one.
TEST_F(PlanUseTest, APlanMeasuredWithAsManyThreadsGoesFirst) {
  const auto with = [&](std::uint32_t threads) {
    return UsePlan(*model_, machine_, PlanStore(folder_.path()), "", *kernels_, threads).value();
  };
  ASSERT_TRUE(PlanStore(folder_.path()).Install(plan_));
  ASSERT_TRUE(Use());
  const PlanUse other = with(1);
  EXPECT_EQ(other.geometry.size(), 5U);
  ASSERT_EQ(other.notes.size(), 1U);
  EXPECT_NE(other.notes[0].find("measured with 2 threads, 1 run now"), std::string::npos) << other.notes[0];
  EXPECT_TRUE(with(2).notes.empty());

  // The newest goes first only among those of as many threads.
  PlanFile one = plan_;
  one.threads = 1;
  one.date = "2026-11-30T09:00:00Z";
  one.tables = {{"Q8_0.256x512", std::string(kKnobs).replace(0, 7, "lanes=4"), ""}};
  ASSERT_TRUE(PlanStore(folder_.path()).Install(one));
  const auto knobs = [](const PlanUse& use) {
    return std::ranges::find(use.geometry, std::string("Q8_0.256x512"), &engine::GeometryChoice::table)->knobs;
  };
  EXPECT_TRUE(knobs(with(2)).starts_with("lanes=8"));
  EXPECT_TRUE(knobs(with(1)).starts_with("lanes=4"));
}

TEST_F(PlanUseTest, OfTwoPromotedGeometriesOfAttentionThePlanKeepsTheLast) {
  const std::vector<engine::GeometryChoice> choices{{"attention", "lanes=4,chunk=64,dot=maddhalves"},
                                                    {"attention", "lanes=4,chunk=256,dot=maddhalves"}};
  const PlanFile plan = PlanOf(*model_, machine_, kernels_->target(), choices, 2).value();
  EXPECT_EQ(std::ranges::count(plan.tables, std::string("attention"), &PlanTable::table), 1);
  ASSERT_NE(plan.Find("attention"), nullptr);
  EXPECT_EQ(plan.Find("attention")->knobs, choices[1].knobs);
  // And so it comes back: written, read, installed, taken.
  const PlanFile read = ParsePlan(ToJson(plan), "plan").value();
  ASSERT_TRUE(PlanStore(folder_.path()).Install(read));
  const PlanUse use = Use().value();
  EXPECT_EQ(std::ranges::count(use.geometry, std::string("attention"), &engine::GeometryChoice::table), 1);
  EXPECT_EQ(use.geometry.back().knobs, choices[1].knobs);
}

TEST_F(PlanUseTest, AttentionThatAnotherCacheForbidsIsLeftOut) {
  const std::vector<engine::GeometryChoice> choices{{"attention", "lanes=4,chunk=1024"}};
  const PlanFile plan = PlanOf(*model_, machine_, kernels_->target(), choices, 2).value();
  ASSERT_TRUE(PlanStore(folder_.path()).Install(plan));
  const auto with = [&](const model::CacheFormats& cache) {
    return UsePlan(*model_, machine_, PlanStore(folder_.path()), "", *kernels_, 2, cache).value();
  };
  EXPECT_EQ(with({}).geometry.back().table, "attention");
  const formats::Format* codes = formats::FindFormat("Q8_0");
  const PlanUse use = with({codes, codes});  // sums of 1024 values in codes leave 32 bits
  EXPECT_EQ(std::ranges::count(use.geometry, std::string("attention"), &engine::GeometryChoice::table), 0);
  ASSERT_FALSE(use.notes.empty());
  EXPECT_NE(use.notes.back().find("32 bits hold"), std::string::npos) << use.notes.back();
}

TEST_F(PlanUseTest, TakesAFileByItsPath) {
  const std::string path = folder_.path() + "/mine.json";
  ASSERT_TRUE(base::WriteFileAtomically(path, ToJson(plan_)));
  EXPECT_EQ(Use(path)->geometry.size(), 5U);
  plan_.tables = {{"Q8_0.256x1024", kKnobs, ""}};
  ASSERT_TRUE(base::WriteFileAtomically(path, ToJson(plan_)));
  EXPECT_EQ(Use(path).error().code, Code::kUsage);
  EXPECT_EQ(Use(folder_.path() + "/none.json").error().code, Code::kFileNotFound);
  EXPECT_EQ(Use("none").error().code, Code::kPlanUnknown);
}

}  // namespace
}  // namespace boltbeam::search
