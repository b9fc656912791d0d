// A small file cut at every byte, with every bit flipped, and with every count replaced: an error or a file that holds
// what it says, never a crash, and never more memory than the file could need.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gguf/file.h"
#include "gguf/testing/builder.h"
#include "gguf/testing/refusals.h"

namespace boltbeam::gguf {
namespace {

using testing::Examine;
using testing::MemoryFile;

std::int64_t PeakBytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// Opens and, when that succeeds, reads everything.
void Try(const std::string& bytes, const std::string& what) {
  const MemoryFile memory(bytes);
  for (const bool strict : {false, true}) {
    OpenOptions options;
    options.strict = strict;
    const auto file = File::Open(memory.path(), options);
    if (file) {
      ASSERT_EQ(Examine(*file), "") << what;
    } else {
      ASSERT_NE(file.error().code, Code::kInternal) << what;
      ASSERT_NE(file.error().code, Code::kOutOfMemory) << what;
    }
  }
}

TEST(HostileTest, CutAtEveryByteIsRefused) {
  const std::string whole = testing::SmallModel().Build().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const MemoryFile memory(whole.substr(0, size));
    const auto file = File::Open(memory.path());
    ASSERT_FALSE(file) << size;
    ASSERT_NE(file.error().code, Code::kFileRead) << file.error().Message();
  }
}

TEST(HostileTest, EveryFlippedBit) {
  const std::string whole = testing::SmallModel().Build().bytes();
  const std::int64_t before = PeakBytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned mask : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 255U}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ mask);
      Try(bytes, fmt::format("byte {} xor {}", at, mask));
    }
  }
  EXPECT_LT(PeakBytes() - before, std::int64_t{64} << 20);
}

TEST(HostileTest, EveryCountReplaced) {
  const testing::Bytes whole = testing::SmallModel().Build();
  EXPECT_GT(whole.counts().size(), 20U);
  const std::int64_t before = PeakBytes();
  for (const std::size_t at : whole.counts()) {
    for (const std::uint64_t value : {0ULL, 1ULL, 1ULL << 31, (1ULL << 32) - 1, (1ULL << 63) - 1, 1ULL << 63, ~0ULL}) {
      std::string bytes = whole.bytes();
      std::memcpy(bytes.data() + at, &value, sizeof value);
      Try(bytes, fmt::format("count at {} = {}", at, value));
    }
  }
  EXPECT_LT(PeakBytes() - before, std::int64_t{64} << 20);
}

TEST(HostileTest, ManyKeysTakeTimeThatGrowsWithTheirNumber) {
  testing::Builder builder;
  for (int i = 0; i < 100'000; ++i) builder.U32(fmt::format("a.k{}", i), 1);
  const MemoryFile memory(builder.Build().bytes());
  const auto file = File::Open(memory.path());
  ASSERT_TRUE(file) << file.error().Message();
  EXPECT_EQ(file->GetUnsigned("a.k99999").value(), 1U);
}

TEST(HostileTest, TooLittleMemoryIsAnError) {
#ifdef BOLTBEAM_SANITIZED
  GTEST_SKIP() << "a sanitizer's allocator ends the program when memory runs out";
#else
  const testing::Bytes head = testing::Bytes().Raw("GGUF").Number(3U).Number<std::uint64_t>(0).Number<std::uint64_t>(1);
  const testing::Bytes value = testing::Bytes().Append(head).Text("a").Number(8U).Number<std::uint64_t>(60 << 20);
  const MemoryFile memory(value.bytes());
  ASSERT_EQ(::ftruncate(memory.fd(), 61 << 20), 0);
  ASSERT_TRUE(File::Open(memory.path()));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t limit = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (16 << 20);
    const rlimit small{limit, limit};
    if (::setrlimit(RLIMIT_AS, &small) != 0) ::_exit(3);
    const auto file = File::Open(memory.path());
    ::_exit(!file && file.error().code == Code::kOutOfMemory ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
#endif
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The corpus holds what testing/refusals.cc builds, so that it also feeds fuzzing and other readers.
TEST(CorpusTest, EveryFileGivesWhatItsNameSays) {
  const std::filesystem::path folder = std::filesystem::path(BOLTBEAM_SOURCE_DIR) / "tests/corpus/gguf";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "good")) {
    const auto file = File::Open(entry.path().string());
    EXPECT_TRUE(file) << file.error().Message();
    ++files;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder / "bad")) {
    std::string name = entry.path().stem().string();
    OpenOptions options;
    options.strict = name.starts_with("strict-");
    if (options.strict) name.erase(0, 7);
    const auto file = File::Open(entry.path().string(), options);
    ASSERT_FALSE(file) << entry.path();
    EXPECT_EQ(CodeName(file.error().code), name.substr(0, name.find('-'))) << file.error().Message();
    Try(ReadFile(entry.path()), name);
    ++files;
  }
  EXPECT_EQ(files, testing::Refusals().size() + testing::GoodFiles().size());
}

}  // namespace
}  // namespace boltbeam::gguf
