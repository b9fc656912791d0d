#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/paths.h"
#include "codegen/test_targets.h"
#include "kernel/builder.h"
#include "runtime/code.h"
#include "runtime/placement.h"

namespace boltbeam::runtime {
namespace {

using kernel::Builder;
using kernel::Program;
using kernel::Value;

/// y[i] = x[i] + addend
Program AddProgram(int addend) {
  Builder b(fmt::format("add.{}", addend), "adds a constant");
  const std::uint32_t x = b.AddBuffer("x");
  const std::uint32_t y = b.AddBuffer("y", true);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
    b.Store(y, i * 4, b.LoadI32(x, 1, i * 4) + b.I32(addend));
    return {};
  });
  return std::move(b).Finish();
}

int Call(KernelFunction function) {
  int x = 100;
  int y = 0;
  void* buffers[] = {&x, &y};
  function(buffers, 0, 1);
  return y;
}

class KernelCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) /
        fmt::format("boltbeam_cache_{}_{}", getpid(), testing::UnitTest::GetInstance()->current_test_info()->name());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<std::filesystem::path> Files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "kernels")) files.push_back(entry.path());
    return files;
  }

  std::filesystem::path folder_;
  codegen::Target target_ = codegen::RunnableTargets().front().target;
};

TEST_F(KernelCacheTest, CompilesOnce) {
  KernelCache cache(target_, "");
  for (int i = 0; i < 3; ++i) {
    const Result<KernelFunction> function = cache.Get(AddProgram(5));
    ASSERT_TRUE(function) << function.error().Message();
    EXPECT_EQ(Call(*function), 105);
  }
  EXPECT_EQ(cache.compiled(), 1U);
}

TEST_F(KernelCacheTest, AnotherPlacementLaysTheCodeElsewhereAndItComputesTheSame) {
  const std::string hash = KernelCache(target_, "").CodeHash(AddProgram(1)).value();
  const auto places = [&](std::uint32_t placement) {
    SetCodePlacement(placement);
    KernelCache cache(target_, folder_.string());
    EXPECT_EQ(cache.CodeHash(AddProgram(1)).value(), hash) << "the same code, wherever it lies";
    std::vector<std::uintptr_t> within_page;
    for (int addend = 1; addend <= 8; ++addend) {
      const Result<KernelFunction> function = cache.Get(AddProgram(addend));
      EXPECT_TRUE(function && Call(*function) == 100 + addend);
      within_page.push_back(reinterpret_cast<std::uintptr_t>(*function) % 4096);
    }
    return within_page;
  };
  const auto usual = places(0), one = places(1), two = places(2), again = places(1), at_last = places(0);
  EXPECT_EQ(usual, at_last);
  EXPECT_EQ(one, again);
  EXPECT_NE(one, usual);
  EXPECT_NE(two, one);
  EXPECT_NE(one.front() - usual.front(), one.back() - usual.back()) << "kernels move against each other";
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ((one[i] - usual[i]) % kCodeShift, 0U);
}

TEST_F(KernelCacheTest, ASecondInstanceCompilesNothing) {
  KernelCache first(target_, folder_.string());
  ASSERT_TRUE(first.Get(AddProgram(5)));
  EXPECT_EQ(first.compiled(), 1U);
  KernelCache second(target_, folder_.string());
  const Result<KernelFunction> function = second.Get(AddProgram(5));
  ASSERT_TRUE(function);
  EXPECT_EQ(Call(*function), 105);
  EXPECT_EQ(second.compiled(), 0U);
}

TEST_F(KernelCacheTest, OtherFeaturesAreAnotherKey) {
  KernelCache first(target_, folder_.string());
  ASSERT_TRUE(first.Get(AddProgram(5)));
  KernelCache plain(codegen::RunnableTargets().back().target, folder_.string());
  ASSERT_TRUE(plain.Get(AddProgram(5)));
  EXPECT_EQ(plain.compiled(), 1U);
  EXPECT_EQ(Files().size(), 2U);
}

TEST_F(KernelCacheTest, DamagedAndForeignFilesAreCompiledAgain) {
  {
    KernelCache cache(target_, folder_.string());
    ASSERT_TRUE(cache.Get(AddProgram(5)));
    ASSERT_TRUE(cache.Get(AddProgram(6)));
  }
  const std::vector<std::filesystem::path> files = Files();
  ASSERT_EQ(files.size(), 2U);
  const Result<std::string> whole = base::ReadWholeFile(files[0]);
  const Result<std::string> other = base::ReadWholeFile(files[1]);
  ASSERT_TRUE(whole && other);
  std::string flipped = *whole;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
  for (const std::string& damaged :
       {std::string(), whole->substr(0, 40), whole->substr(0, whole->size() - 1), flipped, *whole + "x", *other}) {
    std::ofstream(files[0], std::ios::binary | std::ios::trunc) << damaged;
    KernelCache cache(target_, folder_.string());
    for (const int addend : {5, 6}) {
      const Result<KernelFunction> function = cache.Get(AddProgram(addend));
      ASSERT_TRUE(function) << function.error().Message();
      EXPECT_EQ(Call(*function), 100 + addend);
    }
    EXPECT_EQ(cache.compiled(), 1U) << damaged.size();
    EXPECT_EQ(base::ReadWholeFile(files[0]).value_or(""), *whole);  // mended
  }
}

TEST_F(KernelCacheTest, AFolderThatCantBeWrittenIsNoError) {
  std::ofstream(folder_) << "a file where the folder should be";
  KernelCache cache(target_, folder_.string());
  const Result<KernelFunction> function = cache.Get(AddProgram(5));
  ASSERT_TRUE(function) << function.error().Message();
  EXPECT_EQ(Call(*function), 105);
}

TEST_F(KernelCacheTest, PreparesInParallel) {
  std::vector<Program> programs;
  for (int i = 0; i < 24; ++i) programs.push_back(AddProgram(i % 20));
  std::vector<const Program*> pointers;
  for (const Program& program : programs) pointers.push_back(&program);
  KernelCache cache(target_, folder_.string());
  const Result<KernelFunctions> prepared = cache.Prepare(pointers, 4);
  ASSERT_TRUE(prepared) << prepared.error().Message();
  EXPECT_EQ(cache.compiled(), 20U);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(Call(prepared->at(pointers[static_cast<std::size_t>(i)])), 100 + i % 20);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Call(*cache.Get(programs[static_cast<std::size_t>(i)])), 100 + i);
  EXPECT_EQ(cache.compiled(), 20U);
}

TEST_F(KernelCacheTest, PrepareTellsOfAProgramThatIsIllegal) {
  Program bad = AddProgram(1);
  bad.buffers.clear();
  const Program good = AddProgram(2);
  KernelCache cache(target_, "");
  const Result<KernelFunctions> prepared = cache.Prepare({&good, &bad}, 2);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, boltbeam::Code::kKernelIllegal);
  EXPECT_TRUE(cache.Get(good));
}

TEST_F(KernelCacheTest, ManyThreadsAskForTheSame) {
  KernelCache cache(target_, "");
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&] {
        const Result<KernelFunction> function = cache.Get(AddProgram(9));
        EXPECT_TRUE(function && Call(*function) == 109);
      });
    }
  }
  EXPECT_GE(cache.compiled(), 1U);
}

/// Run by the test below in a process of its own, which finds everything in the cache.
TEST(KernelCacheChild, NeedsNoLlvm) {
  const char* folder = std::getenv("BOLTBEAM_TEST_CACHE");
  if (folder == nullptr) GTEST_SKIP() << "run by KernelCacheTest.AWarmCacheNeedsNoLlvm";
  KernelCache cache(codegen::RunnableTargets().front().target, folder);
  const Result<KernelFunction> function = cache.Get(AddProgram(5));
  ASSERT_TRUE(function) << function.error().Message();
  EXPECT_EQ(Call(*function), 105);
  EXPECT_EQ(cache.compiled(), 0U);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    EXPECT_EQ(line.find("libLLVM"), std::string::npos) << line;
    EXPECT_EQ(line.find("rwx"), std::string::npos) << line;
  }
}

TEST_F(KernelCacheTest, AWarmCacheNeedsNoLlvm) {
  KernelCache cache(target_, folder_.string());
  ASSERT_TRUE(cache.Get(AddProgram(5)));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  EXPECT_EQ(std::system(("BOLTBEAM_TEST_CACHE='" + folder_.string() + "' '" + program +
                         "' --gtest_filter=KernelCacheChild.NeedsNoLlvm")
                            .c_str()),
            0);
}

}  // namespace
}  // namespace boltbeam::runtime
