// Every code of the container is provoked: by bytes (testing/refusals.cc), by the file system, by a getter or a writer.
#include "gguf/testing/refusals.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "gguf/file.h"
#include "gguf/testing/builder.h"
#include "gguf/testing/split_refusals.h"
#include "gguf/writer.h"

namespace boltbeam::gguf {
namespace {

namespace fs = std::filesystem;
using testing::MemoryFile;
using testing::SmallModel;

class RefusalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(::testing::TempDir()) / fmt::format("boltbeam_refusal_{}_{}", ::getpid(),
                                                     ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A file of that many bytes that begins with head and is a hole for the rest.
  [[nodiscard]] std::string SparseFile(const std::string& head, std::uint64_t bytes) const {
    const std::string path = (folder_ / "sparse.gguf").string();
    const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    EXPECT_EQ(::write(fd, head.data(), head.size()), static_cast<ssize_t>(head.size()));
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(bytes)), 0);
    ::close(fd);
    return path;
  }

  fs::path folder_;
};

template <typename T>
Error ErrorOf(const Result<T>& result) {
  return result ? Error{Code::kCount, "no error", "", ""} : result.error();
}

Error Open(const std::string& path, const OpenOptions& options = {}) { return ErrorOf(File::Open(path, options)); }

template <typename Get>
Error OfGetter(Get get) {
  const MemoryFile bytes(
      SmallModel().Key("test.negative", ValueType::kI32, testing::Bytes().Number(-1)).Build().bytes());
  const auto file = File::Open(bytes.path());
  if (!file) return file.error();
  return ErrorOf(get(*file));
}

TEST_F(RefusalTest, BytesOfEveryClass) {
  for (const testing::Refusal& refusal : testing::Refusals()) {
    const MemoryFile bytes(refusal.bytes);
    const std::string name = fmt::format("{} {}", CodeName(refusal.code), refusal.variant);
    if (refusal.strict) {
      const auto lenient = File::Open(bytes.path());
      ASSERT_TRUE(lenient) << name << ": " << lenient.error().Message();
      EXPECT_EQ(lenient->warnings().empty(), refusal.code == Code::kGgufPaddingBytes) << name;
    }
    OpenOptions options;
    options.strict = refusal.strict;
    const auto file = File::Open(bytes.path(), options);
    ASSERT_FALSE(file) << name << " was opened";
    EXPECT_EQ(CodeName(file.error().code), CodeName(refusal.code)) << name << ": " << file.error().Message();
    EXPECT_TRUE(file.error().where.starts_with(bytes.path())) << file.error().Message();
    EXPECT_FALSE(file.error().expected.empty()) << file.error().Message();
    EXPECT_EQ(file.error().Message().find_first_of("\n\x1b"), std::string::npos) << name;
  }
}

TEST_F(RefusalTest, GoodFilesOpen) {
  for (const testing::GoodFile& good : testing::GoodFiles()) {
    const MemoryFile bytes(good.bytes);
    const auto file = File::Open(bytes.path());
    ASSERT_TRUE(file) << good.name << ": " << file.error().Message();
    EXPECT_EQ(testing::Examine(*file), "") << good.name;
  }
}

TEST_F(RefusalTest, MessageSaysWhereWhatAndTheRule) {
  const MemoryFile bytes(
      SmallModel().Key("test.x", ValueType::kBool, testing::Bytes().Number<std::uint8_t>(7)).Build().bytes());
  const Error error = Open(bytes.path());
  EXPECT_EQ(error.Message(), fmt::format("{}: kv 8 'test.x' @ byte {}: a bool of 7; expected 0 or 1", bytes.path(),
                                         error.where.substr(error.where.rfind(' ') + 1)));
}

/// What bytes alone can't provoke. Filled with the codes of testing/refusals.cc and testing/split_refusals.cc, which
/// other tests provoke, it must hold every code of the module.
TEST_F(RefusalTest, EveryCodeHasABuilder) {
  std::multimap<Code, std::function<Error()>> builders;
  const std::string small = SmallModel().Build().bytes();
  builders.emplace(Code::kGgufNotAFile, [&] { return Open(folder_.string()); });
  builders.emplace(Code::kGgufNotAFile, [&] { return Open("/dev/null"); });
  builders.emplace(Code::kGgufNotAFile, [&] {
    const std::string fifo = (folder_ / "fifo").string();
    EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    return Open(fifo);
  });
  builders.emplace(Code::kFileNotFound, [&] { return Open((folder_ / "absent.gguf").string()); });
  builders.emplace(Code::kGgufEmpty, [&] { return Open(SparseFile("", 0)); });
  builders.emplace(Code::kGgufSparse, [&] {
    const std::string path = (folder_ / "holes.gguf").string();
    auto writer = Writer::Create(path).value();
    const std::vector<Writer::Tensor> tensors = {{"a", 0, {1 << 20}}};
    EXPECT_TRUE(writer.Begin(tensors) && writer.SkipTensor() && writer.Finish());
    OpenOptions options;
    options.allow_sparse = false;
    return Open(path, options);
  });
  const auto counts = [](std::uint64_t tensors, std::uint64_t keys) {
    return testing::Bytes().Raw("GGUF").Number(3U).Number(tensors).Number(keys).bytes();
  };
  builders.emplace(Code::kGgufCountLimit, [&] { return Open(SparseFile(counts(0, 1'000'001), 40 << 20)); });
  builders.emplace(Code::kGgufCountLimit, [&] { return Open(SparseFile(counts(1'000'001, 0), 40 << 20)); });
  builders.emplace(Code::kGgufStringLimit, [&] {
    const auto key = testing::Bytes().Raw(counts(0, 1)).Number<std::uint64_t>(65536);
    return Open(SparseFile(key.bytes(), 1 << 20));
  });
  builders.emplace(Code::kGgufStringLimit, [&] {
    auto value = testing::Bytes().Raw(counts(0, 1)).Text("a").Number(8U).Number<std::uint64_t>((64 << 20) + 1);
    return Open(SparseFile(value.bytes(), 80 << 20));
  });
  builders.emplace(Code::kGgufMetadataLimit, [&] {
    OpenOptions options;
    options.metadata_limit_bytes = 30;
    return Open(MemoryFile(small).path(), options);
  });
  builders.emplace(Code::kGgufMissingKey,
                   [] { return OfGetter([](const File& f) { return f.GetString("test.none"); }); });
  builders.emplace(Code::kGgufValueRange,
                   [] { return OfGetter([](const File& f) { return f.GetUnsigned("test.negative"); }); });
  builders.emplace(Code::kGgufWriteOrder, [&] {
    auto writer = Writer::Create((folder_ / "w.gguf").string()).value();
    return ErrorOf(writer.Finish());
  });
  std::set<Code> covered;
  for (const auto& [code, provoke] : builders) {
    covered.insert(code);
    const Error error = provoke();
    EXPECT_EQ(CodeName(error.code), CodeName(code)) << error.Message();
  }
  for (const testing::Refusal& refusal : testing::Refusals()) covered.insert(refusal.code);
  for (const testing::SplitRefusal& refusal : testing::SplitRefusals()) covered.insert(refusal.code);
  for (int code = 0; code < static_cast<int>(Code::kCount); ++code) {
    const std::string_view name = CodeName(static_cast<Code>(code));
    if (!name.starts_with("Gguf")) continue;
    EXPECT_TRUE(covered.contains(static_cast<Code>(code))) << name << " has no builder";
  }
}

TEST_F(RefusalTest, GettersNameTheKeyWhatItHoldsAndWhatIsNeeded) {
  const auto code = [](auto get) { return OfGetter(get).code; };
  EXPECT_EQ(code([](const File& f) { return f.GetUnsigned("test.epsilon"); }), Code::kGgufWrongType);
  EXPECT_EQ(code([](const File& f) { return f.GetUnsigned("test.tokens"); }), Code::kGgufWrongType);
  EXPECT_EQ(code([](const File& f) { return f.GetFloat("test.block_count"); }), Code::kGgufWrongType);
  EXPECT_EQ(code([](const File& f) { return f.GetBool("test.block_count"); }), Code::kGgufWrongType);
  EXPECT_EQ(code([](const File& f) { return f.GetString("test.flag"); }), Code::kGgufWrongType);
  EXPECT_EQ(code([](const File& f) { return f.GetStrings("test.scores"); }), Code::kGgufWrongType);
  EXPECT_EQ(code([](const File& f) { return f.GetIntegers("test.scores"); }), Code::kGgufWrongType);
  EXPECT_EQ(code([](const File& f) { return f.GetFloats("test.tokens"); }), Code::kGgufWrongType);
  EXPECT_EQ(code([](const File& f) { return f.GetFloats("test.epsilon"); }), Code::kGgufWrongType);
  const Error error = OfGetter([](const File& f) { return f.GetFloats("test.tokens"); });
  EXPECT_NE(error.Message().find("kv 5 'test.tokens' @ byte"), std::string::npos) << error.Message();
  EXPECT_NE(error.Message().find("an array of 3 string; expected an array of f32 or f64"), std::string::npos)
      << error.Message();
}

TEST_F(RefusalTest, AFileThatChangesWhileItIsOpenIsAnError) {
  const std::string small = SmallModel().Build().bytes();
  const std::string path = SparseFile(small, small.size());
  const auto file = File::Open(path);
  ASSERT_TRUE(file) << file.error().Message();
  std::vector<std::byte> bytes(4);
  EXPECT_TRUE(file->Read(0, bytes));
  EXPECT_EQ(ErrorOf(file->Read(small.size() - 3, bytes)).code, Code::kFileRead);
  EXPECT_EQ(ErrorOf(file->Read(~0ULL, bytes)).code, Code::kFileRead);
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(2));
  EXPECT_EQ(ErrorOf(file->Read(0, bytes)).code, Code::kFileRead);
  EXPECT_EQ(ErrorOf(file->GetStrings("test.tokens")).code, Code::kFileRead);
  const auto again = File::Open(path);
  ASSERT_TRUE(again);
  fs::resize_file(path, 100);
  EXPECT_EQ(ErrorOf(again->Read(0, bytes)).code, Code::kFileRead);
  EXPECT_EQ(ErrorOf(again->Read(small.size() - 4, bytes)).code, Code::kFileRead);
  EXPECT_EQ(ErrorOf(again->GetFloats("test.scores")).code, Code::kFileRead);
}

}  // namespace
}  // namespace boltbeam::gguf
