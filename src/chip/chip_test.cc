#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/paths.h"
#include "chip/facts.h"
#include "chip/instruction_sets.h"
#include "chip/system.h"

namespace boltbeam::chip {
namespace {

namespace fs = std::filesystem;

/// A made-up root folder that is gone at the end of the test.
class FakeRoot {
 public:
  FakeRoot() : path_(fs::path(testing::TempDir()) / ("root-" + std::to_string(::getpid()) + "-" + Name())) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~FakeRoot() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }
  void Write(const std::string& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }

 private:
  static std::string Name() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }
  fs::path path_;
};

TEST(CpuInfo, ReadsTheFirstProcessorOfBothArchitectures) {
  const CpuInfo x86 = ParseCpuInfo(
      "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
      "stepping\t: 1\nflags\t\t: fpu avx2 fma f16c avx512_vnni\n\nprocessor\t: 1\nmodel name\t: other\n");
  EXPECT_EQ(x86.model, "AMD EPYC");
  EXPECT_EQ(x86.family + "/" + x86.number + "/" + x86.stepping, "25/17/1");
  EXPECT_EQ(x86.features, (std::vector<std::string>{"fpu", "avx2", "fma", "f16c", "avx512_vnni"}));
  const CpuInfo arm =
      ParseCpuInfo("processor\t: 0\nFeatures\t: fp asimd asimddp\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
  EXPECT_EQ(arm.vendor, "0x41");
  EXPECT_EQ(arm.features, (std::vector<std::string>{"fp", "asimd", "asimddp"}));
  EXPECT_TRUE(ParseCpuInfo("").features.empty());
}

TEST(CpuFamily, ARowOfItsFamilyAddsWhatNoSystemTells) {
  CpuInfo cpu;
  cpu.vendor = "AuthenticAMD";
  cpu.family = "26";
  const auto facts = FactsOfFamily(cpu);
  ASSERT_TRUE(facts) << facts.error().Message();
  const auto fact = std::ranges::find(*facts, "prefetch_bytes", &Fact::name);
  ASSERT_NE(fact, facts->end());
  EXPECT_GT(fact->value, 0);
  EXPECT_FALSE(fact->method.empty() || fact->source.empty() || fact->date.empty());
  cpu.family = "25";
  EXPECT_TRUE(FactsOfFamily(cpu)->empty());
  EXPECT_TRUE(FactsOfFamily({})->empty()) << "an arm64 has neither";
  cpu.family = "26";
  cpu.vendor = "GenuineIntel";
  EXPECT_TRUE(FactsOfFamily(cpu)->empty());
}

TEST(CpuList, ReadsRangesAndStopsAtNonsense) {
  EXPECT_EQ(ParseCpuList("0-3,8,10-11\n"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(ParseCpuList("5"), std::vector<int>{5});
  EXPECT_TRUE(ParseCpuList("").empty());
  EXPECT_EQ(ParseCpuList("1,x"), std::vector<int>{1});
}

TEST(Pinning, TakesOneThreadOfEachCoreFirst) {
  const FakeRoot root;
  const auto sibling = [&](int cpu, const std::string& list) {
    root.Write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", list);
  };
  sibling(0, "0-1");
  sibling(1, "0-1");
  sibling(2, "2,3");
  sibling(3, "2,3");
  EXPECT_EQ(PinningOrder(root.path(), {0, 1, 2, 3}), (std::vector<int>{0, 2, 1, 3}));
  EXPECT_EQ(PinningOrder(root.path(), {1, 3}), (std::vector<int>{1, 3}));
  EXPECT_EQ(PinningOrder(root.path(), {7}), std::vector<int>{7}) << "no topology: as it is";
}

TEST(Cgroup, VersionTwoTakesTheLeastOnTheWayToTheRoot) {
  const FakeRoot root;
  root.Write("proc/self/cgroup", "0::/a/b\n");
  root.Write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  root.Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  root.Write("sys/fs/cgroup/a/b/memory.max", "1000000\n");
  root.Write("sys/fs/cgroup/a/b/memory.current", "600000\n");
  root.Write("sys/fs/cgroup/a/b/memory.stat", "anon 100\ninactive_file 200000\n");
  EXPECT_DOUBLE_EQ(CgroupCpuQuota(root.path()).value(), 1.5);
  const CgroupMemory memory = CgroupMemoryLimit(root.path()).value();
  EXPECT_EQ(memory.limit_bytes, 1000000u);
  EXPECT_EQ(memory.used_bytes, 400000u);
}

TEST(Cgroup, VersionOneAndItsWordForNoLimit) {
  const FakeRoot root;
  root.Write("proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/job\n0::/\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_DOUBLE_EQ(CgroupCpuQuota(root.path()).value(), 2.0);
  EXPECT_FALSE(CgroupMemoryLimit(root.path()).has_value());
  root.Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  root.Write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "7000\n");
  root.Write("proc/meminfo", "MemTotal:  100 kB\nMemAvailable:   50 kB\n");
  EXPECT_EQ(AvailableMemory(root.path()), 0u) << "the group is over its limit";
}

TEST(Cgroup, InsideAContainerTheMountIsTheGroup) {
  const FakeRoot root;
  root.Write("proc/self/cgroup", "0::/host/path/that/is/not/here\n");
  root.Write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(CgroupCpuQuota(root.path()).value(), 0.5);
  EXPECT_FALSE(CgroupCpuQuota(root.path() / "nothing").has_value());
}

TEST(Memory, AvailableIsTheLeastOfMachineAndGroup) {
  const FakeRoot root;
  root.Write("proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:    800 kB\nHugepagesize:   2048 kB\n");
  EXPECT_EQ(AvailableMemory(root.path()), 800u * 1024);
  EXPECT_EQ(MemInfo(root.path(), "Hugepagesize"), 2048u * 1024);
  root.Write("proc/self/cgroup", "0::/\n");
  root.Write("sys/fs/cgroup/memory.max", "300000\n");
  root.Write("sys/fs/cgroup/memory.current", "100000\n");
  EXPECT_EQ(AvailableMemory(root.path()), 200000u);
}

TEST(HugePages, Mode) {
  const FakeRoot root;
  EXPECT_FALSE(TransparentHugePages(root.path()).has_value());
  root.Write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  EXPECT_EQ(TransparentHugePages(root.path()), 1);
}

TEST(Detect, SaysWhatIsMissing) {
  const FakeRoot root;
  EXPECT_EQ(DetectMachine(root.path()).error().code, Code::kChipDetect);
}

TEST(Detect, ThisMachine) {
  const Result<Chip> chip = DetectThisMachine();
  ASSERT_TRUE(chip) << chip.error().Message();
  EXPECT_EQ(chip->backend, "cpu");
  EXPECT_GE(chip->Get("cores").value_or(0), 1);
  EXPECT_GE(chip->Get("usable_cpus").value_or(0), 1);
  EXPECT_GT(chip->Get("memory_bytes").value_or(0), 1e6);
  EXPECT_FALSE(chip->features.empty());
  EXPECT_EQ(chip->Bandwidth(), nullptr) << "detection measures nothing";
  EXPECT_FALSE(UsableCpus().empty());
  EXPECT_GT(CpuQuota(), 0);
  EXPECT_LE(CpuQuota(), static_cast<double>(UsableCpus().size()));
  EXPECT_GT(AvailableMemoryBytes(), 0u);
}

TEST(Detect, MeasuredFactsJoinTheDetectedOnes) {
  const FakeRoot home;
  const std::string data = home.path().string();
  const Chip detected = DetectThisMachine().value();
  Chip measured = detected;
  measured.facts = {{"read_bandwidth_gb_s", 21.5, "GB/s", Provenance::kMeasured, "probe", "2026-11-29", 0.01, "", {}},
                    {"cores", 999, "", Provenance::kDetected, "stale", "", 0, "", {}}};
  ASSERT_TRUE(base::WriteFileAtomically(MeasuredFile(data, measured.id), ChipToJson(measured)));
  const Chip chip = ThisMachine(data).value();
  ASSERT_NE(chip.Bandwidth(), nullptr);
  EXPECT_DOUBLE_EQ(chip.Bandwidth()->value, 21.5);
  EXPECT_EQ(chip.Get("cores"), detected.Get("cores"));
  home.Write("chips/" + measured.id + ".json", "{");
  EXPECT_EQ(ThisMachine(data).error().code, Code::kJson);
}

TEST(InstructionSets, AChipIsHeldDownward) {
  Chip chip;
  chip.name = "Zen 4";
  chip.features = {"fpu",  "pni",     "ssse3",    "sse4_1",   "sse4_2",   "avx",  "f16c",        "fma",
                   "avx2", "avx512f", "avx512bw", "avx512vl", "avx512dq", "gfni", "avx512_vnni", "popcnt"};
  EXPECT_EQ(InstructionSetsOf(chip), (std::vector<std::string_view>{"plain", "avx2", "avx512", "vnni"}));
  Chip held = chip;
  ASSERT_TRUE(HoldTo(held, "vnni"));
  EXPECT_EQ(held.features, chip.features) << "nothing lies above it";
  ASSERT_TRUE(HoldTo(held, "avx512"));
  EXPECT_TRUE(held.Has("avx512bw") && !held.Has("avx512_vnni"));
  ASSERT_TRUE(HoldTo(held, "avx2"));
  EXPECT_TRUE(held.Has("fma") && !held.Has("avx512f"));
  const Result<void> higher = HoldTo(held, "vnni");
  ASSERT_FALSE(higher) << "it is gone";
  EXPECT_EQ(higher.error().code, Code::kUsage);
  EXPECT_NE(higher.error().Message().find("Zen 4 has: plain, avx2"), std::string::npos) << higher.error().Message();
  ASSERT_TRUE(HoldTo(held, "plain"));
  EXPECT_EQ(held.features, (std::vector<std::string>{"fpu", "gfni"}));
}

TEST(InstructionSets, TheByteDotComesWithoutAvx512Too) {
  Chip chip;
  chip.features = {"avx2", "fma", "f16c", "avx_vnni"};
  EXPECT_EQ(InstructionSetsOf(chip), (std::vector<std::string_view>{"plain", "avx2", "vnni"}));
  chip.features = {"fp", "asimd", "asimddp", "i8mm"};
  EXPECT_EQ(InstructionSetsOf(chip), (std::vector<std::string_view>{"plain", "neon", "dotprod", "i8mm"}));
  ASSERT_TRUE(HoldTo(chip, "dotprod"));
  EXPECT_EQ(chip.features, (std::vector<std::string>{"fp", "asimd", "asimddp"}));
}

TEST(Row, SurvivesItsOwnJson) {
  const Chip chip = FindChip("rtx-5090", "").value();
  const Chip again = ChipFromJson(ChipToJson(chip), "again").value();
  ASSERT_EQ(again.facts.size(), chip.facts.size());
  EXPECT_EQ(ChipToJson(again), ChipToJson(chip));
  EXPECT_EQ(again.Bandwidth()->value, chip.Bandwidth()->value);
}

Code CodeOf(const std::string& facts, const std::string& schema = "boltbeam.chip.v1") {
  const Result<Chip> chip =
      ChipFromJson(R"({"schema":")" + schema + R"(","id":"x","facts":[)" + facts + "]}", "x.json");
  return chip ? Code::kCount : chip.error().code;
}

TEST(Row, Rules) {
  EXPECT_EQ(CodeOf(R"({"name":"cores","value":8,"provenance":"measured"})"), Code::kCount);
  EXPECT_EQ(CodeOf("", "boltbeam.chip.v9"), Code::kChipRow);
  EXPECT_EQ(CodeOf(R"({"name":"cores","value":8,"provenance":"guessed"})"), Code::kChipRow);
  EXPECT_EQ(CodeOf(R"({"name":"cores","value":null,"provenance":"measured"})"), Code::kChipRow);
  EXPECT_EQ(CodeOf(R"({"name":"cores","value":8,"provenance":"unknown"})"), Code::kChipRow);
  EXPECT_EQ(CodeOf(R"({"name":"cores","value":-8,"provenance":"measured"})"), Code::kChipRow);
  EXPECT_EQ(CodeOf(R"({"name":"cores","value":8,"provenance":"measured","use":"all"})"), Code::kChipRow);
  EXPECT_EQ(CodeOf(R"({"name":"b","value":0,"provenance":"measured","use":"bandwidth"})"), Code::kChipRow);
  EXPECT_EQ(CodeOf(R"({"name":"cores"})"), Code::kJson);
  EXPECT_EQ(ChipFromJson("not json", "x.json").error().code, Code::kJson);
}

TEST(Registry, HoldsTheRecordedDefaults) {
  struct Row {
    const char* id;
    double bandwidth_gb_s, peak_flop_s;
  };
  // JulianAbeleda/BoltBeam-Public boltbeam/data/targets.json; tinygrad-arkey docs/bringing-up-a-new-target-20260731.md.
  for (const Row& row : {Row{"rtx-5090", 1700, 255.4e12}, Row{"apple-m3-10c", 89.9, 3.152e12},
                         Row{"apple-m4-10c", 112.3, 3.7813e12}, Row{"rx-7900-xtx", 829, 105.5e12}}) {
    const Chip chip = FindChip(row.id, "").value();
    ASSERT_NE(chip.Bandwidth(), nullptr) << row.id;
    EXPECT_DOUBLE_EQ(chip.Bandwidth()->value, row.bandwidth_gb_s) << row.id;
    EXPECT_EQ(chip.Bandwidth()->provenance, Provenance::kMeasured) << row.id;
    EXPECT_DOUBLE_EQ(chip.Peak()->value, row.peak_flop_s) << row.id;
    EXPECT_FALSE(chip.note.empty()) << row.id;
  }
}

TEST(Registry, PublishedFiguresAreNeverDividedBy) {
  for (const char* id : {"h100", "h200"}) {
    const Chip chip = FindChip(id, "").value();
    EXPECT_EQ(chip.Bandwidth(), nullptr);
    EXPECT_EQ(chip.Peak(), nullptr);
    EXPECT_EQ(chip.Find("published_bandwidth_gb_s")->provenance, Provenance::kVendor);
    EXPECT_FALSE(chip.Get("read_bandwidth_gb_s").has_value());
  }
}

TEST(Registry, EveryFigureSaysWhereItComesFrom) {
  const std::vector<Chip> chips = LoadRegistry("").value();
  for (const Chip& chip : chips) {
    for (const Fact& fact : chip.facts) {
      EXPECT_FALSE(fact.source.empty()) << chip.id << " " << fact.name;
      if (fact.provenance != Provenance::kMeasured) continue;
      EXPECT_FALSE(fact.method.empty()) << chip.id << " " << fact.name;
      EXPECT_FALSE(fact.date.empty()) << chip.id << " " << fact.name;
    }
  }
}

TEST(Registry, UserRowsAndFiles) {
  const FakeRoot config;
  config.Write("chips/mine.json", R"({"schema":"boltbeam.chip.v1","id":"mine","facts":[
    {"name":"read_bandwidth_gb_s","value":50,"unit":"GB/s","provenance":"measured"}]})");
  config.Write("chips/ours.json", R"({"schema":"boltbeam.chip.v1","id":"h100","name":"my H100","facts":[]})");
  const std::string folder = config.path().string();
  EXPECT_DOUBLE_EQ(FindChip("mine", folder)->Bandwidth()->value, 50);
  EXPECT_EQ(FindChip("h100", folder)->name, "my H100") << "a user's row takes the place of ours";
  EXPECT_EQ(FindChip(folder + "/chips/mine.json", "")->id, "mine");
  EXPECT_EQ(FindChip("mine", "").error().code, Code::kChipUnknown);
  EXPECT_EQ(FindChip("absent.json", "").error().code, Code::kFileNotFound);
  config.Write("chips/broken.json", "[");
  EXPECT_EQ(LoadRegistry(folder).error().code, Code::kJson);
}

}  // namespace
}  // namespace boltbeam::chip
