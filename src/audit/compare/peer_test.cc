// llama.cpp's programs as scripts that print what those would, and the lines that are given to them.
#include "audit/compare/peer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "audit/compare/between.h"
#include "audit/compare/operation_lines.h"
#include "base/paths.h"
#include "base/temporary_folder.h"
#include "test_model.h"

namespace boltbeam::audit {
namespace {

class FakePeer {
 public:
  explicit FakePeer(const std::string& bench) { Write("llama-bench", bench); }

  void Write(const std::string& name, const std::string& script) const {
    const auto path = folder_.path() / name;
    std::ofstream(path) << "#!/bin/sh\n" << script;
    chmod(path.c_str(), 0755);
  }
  [[nodiscard]] std::string folder() const { return folder_.path().string(); }

 private:
  base::TemporaryFolder folder_ = base::TemporaryFolder::Make().value();
};

constexpr const char* kBenchJson =
    R"(echo '[{"model_filename":"m","n_prompt":0,"n_gen":8,"n_depth":0,"avg_ts":50.0,"avg_ns":1}]')";

TEST(Peer, IsFoundByFolderAndByProgram) {
  const FakePeer fake(kBenchJson);
  const auto by_folder = FindPeer(fake.folder());
  ASSERT_TRUE(by_folder);
  EXPECT_TRUE(by_folder->operations.empty());
  const auto by_program = FindPeer(fake.folder() + "/llama-bench");
  ASSERT_TRUE(by_program);
  const auto window = RunPeerWindow(*by_program, "m.gguf", {});
  ASSERT_TRUE(window) << window.error().Message();
  EXPECT_NEAR(window->token_ns, 2e7, 1);
  const auto parts = PeerOperations(*by_program, "m.gguf", {});
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, Code::kPeerMissing);
  const auto none = FindPeer("/nowhere");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kPeerMissing);
}

TEST(Peer, FailuresSayWhat) {
  const FakePeer broken("echo nothing\nexit 3\n");
  const auto peer = FindPeer(broken.folder());
  ASSERT_TRUE(peer);
  const auto window = RunPeerWindow(*peer, "m.gguf", {});
  ASSERT_FALSE(window);
  EXPECT_EQ(window.error().code, Code::kPeerFailed);
  EXPECT_NE(window.error().found.find("exit status 3"), std::string::npos);
  EXPECT_NEAR(*CommandTokenNs("echo 'rate: 200 tok/s 100'"), 1e7, 1);
  EXPECT_EQ(CommandTokenNs("echo none").error().code, Code::kPeerFailed);
}

TEST(Peer, AWindowWithoutACpuIsDisturbed) {
  const FakePeer fake(std::string("sleep 0.2\n") + kBenchJson);
  const auto peer = FindPeer(fake.folder());
  ASSERT_TRUE(peer);
  PeerRun run;
  const auto one = RunPeerWindow(*peer, "m.gguf", run);
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->disturbed.value_or(false));
  run.threads = 2;
  const auto two = RunPeerWindow(*peer, "m.gguf", run);
  ASSERT_TRUE(two);
  EXPECT_FALSE(two->disturbed) << "of several threads it is not known";
}

TEST(Peer, PartsComeFromItsOwnTestPrograms) {
  const FakePeer fake(kBenchJson);
  fake.Write("test-export-graph-ops",
             "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\nprintf '29 0 8 1 a\\n29 0 8 13 b\\n' > "
             "\"$out\"\n");
  fake.Write(
      "test-backend-ops",
      "while [ $# -gt 0 ]; do [ \"$1\" = --test-file ] && in=$2; shift; done\n"
      "[ $(wc -l < \"$in\") = 1 ] || exit 9\n"
      "echo 'CREATE TABLE IF NOT EXISTS test_backend_ops (op_name TEXT, op_params TEXT, test_mode TEXT, supported "
      "INTEGER, time_us REAL);'\n"
      "echo \"INSERT INTO test_backend_ops VALUES ('MUL_MAT', "
      "'name=a,type=f32,ne=[8,1,1,1],op_params=[],sources=q8_0[32,8,1,1],f32[32,1,1,1]', 'perf', '1', '2.5');\"\n");
  const auto peer = FindPeer(fake.folder());
  ASSERT_TRUE(peer);
  const auto operations = PeerOperations(*peer, "m.gguf", {});
  ASSERT_TRUE(operations) << operations.error().Message();
  ASSERT_EQ(operations->size(), 1U);
  EXPECT_EQ(operations->front().ns, 2500);
  EXPECT_EQ(operations->front().operation.sources[0].shape[0], 32U);
}

constexpr const char* kProduct =
    "29 0 1024 1 1 1 2 0 0 2 12 512 1024 1 1 144 288 294912 294912 0 512 1 1 1 4 2048 2048 2048 Kcur-0";
constexpr const char* kAttention =
    "74 0 128 16 1 1 1 7 4 0 128 1 16 1 4 8192 512 8192 1 128 256 8 1 2 2048 256 524288 1 128 256 8 1 2 2048 256 "
    "524288 1 256 1 1 1 2 512 512 512 node 28";

TEST(OperationLines, AreToldByTheirShapes) {
  const auto product = OperationLine::Parse(kProduct), attention = OperationLine::Parse(kAttention);
  ASSERT_TRUE(product && attention);
  EXPECT_EQ(product->Text(), kProduct);
  EXPECT_EQ(attention->Text(), kAttention);
  EXPECT_TRUE(product->IsProduct() && !product->IsAttention());
  EXPECT_TRUE(attention->IsAttention() && !attention->IsProduct());
  EXPECT_EQ(product->StreamedBytes(), 294912U);
  EXPECT_EQ(attention->StreamedBytes(), 2 * 524288U);
  // A gathered row, a sum and a norm's factor are no products.
  for (const char* line : {"40 0 512 1 1 1 0 2 14 512 900 1 1 210 420 378000 378000 26 1 1 1 1 4 4 4 4 embd",
                           "2 0 512 1 1 1 0 2 0 512 1 1 1 4 2048 2048 2048 0 512 1 1 1 4 2048 2048 2048 sum",
                           "7 0 128 8 1 1 0 2 0 128 8 1 1 4 512 4096 4096 0 128 1 1 1 4 512 512 512 normed"}) {
    const auto other = OperationLine::Parse(line);
    ASSERT_TRUE(other) << line;
    EXPECT_FALSE(other->IsProduct() || other->IsAttention()) << line;
  }
  for (const char* cut : {"", "29 0 1024", "29 0 8 1 1 1 99", "29 0 8 1 1 1 0 2 12 512 1024 1 1 144 288"}) {
    EXPECT_FALSE(OperationLine::Parse(cut)) << cut;
  }
}

TEST(OperationLines, AttentionOverThePositionsOfTheTokenNotOfThePaddedCache) {
  const OperationLine padded = *OperationLine::Parse(kAttention);
  EXPECT_EQ(AtPositions(padded, 17).Text(),
            "74 0 128 16 1 1 1 7 4 0 128 1 16 1 4 8192 512 8192 1 128 17 8 1 2 2048 256 34816 1 128 17 8 1 2 2048 256 "
            "34816 1 17 1 1 1 2 34 34 34 node 28");
  EXPECT_EQ(AtPositions(padded, 300).Text(), padded.Text());  // a window that slides keeps its length
}

TEST(OperationLines, StackedTablesAreMoreThanACacheKeeps) {
  const Stacked product = StackTo(*OperationLine::Parse(kProduct), 2'000'000);
  EXPECT_NEAR(product.copies, 6976.0 / 1024, 1e-9);  // rows, a multiple of 64
  EXPECT_EQ(product.line.StreamedBytes(), 6976U * 288);
  EXPECT_TRUE(product.line.IsProduct());
  EXPECT_EQ(StackTo(*OperationLine::Parse(kProduct), 1000).copies, 1);  // it is as large by itself
  const Stacked attention = StackTo(AtPositions(*OperationLine::Parse(kAttention), 17), 1'000'000);
  EXPECT_EQ(attention.copies, 15);
  EXPECT_EQ(attention.line.shape, (std::array<std::uint64_t, 4>{128, 16, 1, 15}));
  EXPECT_EQ(attention.line.sources[0].shape[3], 15U);
  EXPECT_EQ(attention.line.sources[2].shape[3], 15U);
  EXPECT_EQ(attention.line.sources[3].shape[3], 1U);
}

// The fake program takes 100 ns and 1 ns a row of a table, half a ns when the table is small: out of caches. Attention:
// 1 µs for 17 positions of one layer, for each of several 3 or 1 µs from process to process, and it fails for padded
// ones.
TEST(Peer, TablesComeOutOfMemoryAndAttentionIsOfTheTokensPositions) {
  const FakePeer fake(kBenchJson);
  fake.Write("test-export-graph-ops",
             std::string("while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\nprintf '%s\\n' '") + kProduct +
                 "' '" + kAttention + "' '8 0 4 1 small' > \"$out\"\n");
  fake.Write("test-backend-ops",
             "while [ $# -gt 0 ]; do [ \"$1\" = --test-file ] && in=$2; shift; done\n"
             "echo 'CREATE TABLE IF NOT EXISTS test_backend_ops (op_name TEXT, op_params TEXT, test_mode TEXT, "
             "supported INTEGER, time_us REAL);'\n"
             "say() { echo \"INSERT INTO test_backend_ops VALUES ('$1', "
             "'name=a,type=f32,ne=[$2],op_params=[],sources=$3', 'perf', "
             "'1', '$4');\"; }\n"
             "while read -r op type rows heads three layers rest; do case $op in\n"
             "29) us=$(awk \"BEGIN { print 0.1 + $rows * ($rows > 1024 ? 0.001 : 0.0005) }\")\n"
             "  say MUL_MAT \"$rows,1,1,1\" \"q4_K[512,$rows,1,1],f32[512,1,1,1]\" $us;;\n"
             "74) case \"$rest\" in *' 256 8 '*) exit 9;; esac\n"
             "  us=$layers; [ $layers -gt 1 ] && { echo >> \"$0.runs\"; us=$((layers * (1 + 2 * ($(wc -l < "
             "\"$0.runs\") % 2)))); }\n"
             "  say FLASH_ATTN_EXT 128,16,1,1 'f32[128,1,16,1],f16[128,17,8,1],f16[128,17,8,1],f16[17,1,1,1]' $us;;\n"
             "8) say ADD 4,1,1,1 'f32[4,1,1,1],f32[4,1,1,1]' 0.1;;\n"
             "esac; done < \"$in\"\n");
  const auto peer = FindPeer(fake.folder());
  ASSERT_TRUE(peer);
  int windows = 0;
  PartTiming timing{.depth = 0, .positions = 17, .cold_bytes = 1'000'000, .between = {}};
  timing.between = [&]() -> Result<void> {
    ++windows;
    return {};
  };
  const auto operations = PeerOperations(*peer, "m.gguf", timing);
  ASSERT_TRUE(operations) << operations.error().Message();
  ASSERT_EQ(operations->size(), 3U);
  EXPECT_EQ(windows, 9);  // one before each timing, attention in several processes
  EXPECT_FALSE(operations->at(0).hot_ns);
  EXPECT_NEAR(operations->at(1).ns, 1124, 0.1);  // the 100 are paid for every table, not once for all
  EXPECT_NEAR(operations->at(1).hot_ns.value_or(0), 612, 1e-6);
  EXPECT_EQ(operations->at(1).operation.result.shape[0], 1024U);
  EXPECT_NEAR(operations->at(2).ns, 2000, 1e-6);
  EXPECT_NEAR(operations->at(2).hot_ns.value_or(0), 1000, 1e-6);
}

// A fake that says which file it was given, and whose token takes 20 ms beside one operation of 2.5 us.
class BetweenTest : public testing::Test {
 protected:
  BetweenTest() : fake_(std::string("echo \"$2\" > \"$0.model\"\n[ -s \"$2\" ] || exit 4\n") + kBenchJson) {
    fake_.Write("test-export-graph-ops",
                "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\necho '2 0 8 1 sum' > \"$out\"\n");
    fake_.Write("test-backend-ops",
                "echo 'CREATE TABLE IF NOT EXISTS test_backend_ops (op_name TEXT, op_params TEXT, test_mode TEXT, "
                "supported INTEGER, time_us REAL);'\n"
                "echo \"INSERT INTO test_backend_ops VALUES ('DUP', "
                "'name=a,type=f32,ne=[8,1,1,1],op_params=[],sources=f32[8,1,1,1]', 'perf', '1', '2.5');\"\n");
  }

  Result<Between> Measure(const BetweenOptions& options = {}) {
    model::TestModel file("qwen3");
    const model::Model model = model::Model::Load(file.Write()).value();
    return MeasureBetween(FindPeer(fake_.folder()).value(), model, options);
  }
  /// The skeleton's path as the fake was given it.
  [[nodiscard]] std::string Given() const {
    std::string path = base::ReadWholeFile(fake_.folder() + "/llama-bench.model").value();
    path.pop_back();
    return path;
  }

  FakePeer fake_;
};

TEST_F(BetweenTest, IsTheSkeletonsTokenLessItsParts) {
  const auto between = Measure();
  ASSERT_TRUE(between) << between.error().Message();
  EXPECT_NEAR(between->Ns(), 2e7 - 2500, 1);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(Given()).parent_path()));
}

TEST_F(BetweenTest, LeavesNothingWhenAProgramFailsOrTheUserStops) {
  fake_.Write("test-backend-ops", "exit 3\n");
  EXPECT_EQ(Measure().error().code, Code::kPeerFailed);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(Given()).parent_path()));
  BetweenOptions options;
  bool stopped = false;
  options.cancelled = [&] { return stopped; };
  stopped = true;
  EXPECT_EQ(Measure(options).error().code, Code::kInterrupted);
}

TEST_F(BetweenTest, WithoutATemporaryFolderNothingIsWrittenElsewhere) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  model::TestModel file("qwen3");
  const model::Model model = model::Model::Load(file.Write()).value();
  const Peer peer = FindPeer(fake_.folder()).value();
  setenv("TMPDIR", "/nowhere", 1);
  const auto between = MeasureBetween(peer, model, {});
  const auto parts = PeerOperations(peer, "m.gguf", {});
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", kept.c_str(), 1);
  ASSERT_FALSE(between);
  EXPECT_EQ(between.error().code, Code::kFileWrite);
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, Code::kFileWrite);
  EXPECT_FALSE(std::filesystem::exists("skeleton.gguf"));
  EXPECT_FALSE(std::filesystem::exists("all.txt"));
}

TEST(Peer, LinesOfOneToken) {
  EXPECT_EQ(LinesOfOneToken("29 0 8 1\n29 0 8 13 1\n40 113 1\n", 13), "29 0 8 1\n40 113 1\n");
  EXPECT_EQ(LinesOfOneToken("", 13), "");
}

}  // namespace
}  // namespace boltbeam::audit
