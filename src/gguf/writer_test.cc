// Writing, and reading back what was written.
#include "gguf/writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "gguf/file.h"

namespace boltbeam::gguf {
namespace {

namespace fs = std::filesystem;

class WriterTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / ("boltbeam_writer_" + std::to_string(::getpid())) / info->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_.parent_path()); }

  [[nodiscard]] std::string Path() const { return (folder_ / "model.gguf").string(); }
  [[nodiscard]] std::ptrdiff_t FilesLeft() const { return std::distance(fs::directory_iterator(folder_), {}); }

  fs::path folder_;
};

std::vector<std::byte> Bytes(std::size_t count, int first) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(first + static_cast<int>(i % 7));
  return bytes;
}

TEST_F(WriterTest, EveryKindOfValueComesBack) {
  auto writer = Writer::Create(Path());
  ASSERT_TRUE(writer) << writer.error().Message();
  writer->Add("general.architecture", std::string_view("none"));
  writer->Add("a.u32", std::uint32_t{4'000'000'000});
  writer->Add("a.u64", std::uint64_t{1} << 63);
  writer->Add("a.f32", 0.5F);
  writer->Add("a.bool", true);
  writer->Add("a.strings", std::vector<std::string>{"one", "", "three"});
  writer->Add("a.i32", std::vector<std::int32_t>{-1, 2});
  writer->Add("a.floats", std::vector<float>{1.5F, -2});
  const std::vector<Writer::Tensor> tensors = {{"first", 0, {3}}, {"second", 8, {32, 2}}};
  EXPECT_EQ(writer->Begin(tensors).value(), 12U + 68U);
  ASSERT_TRUE(writer->Write(Bytes(12, 1)));
  ASSERT_TRUE(writer->Write(Bytes(40, 2)));  // in pieces
  ASSERT_TRUE(writer->Write(Bytes(28, 3)));
  ASSERT_TRUE(writer->Finish());

  OpenOptions strict;
  strict.strict = true;
  const auto file = File::Open(Path(), strict);
  ASSERT_TRUE(file) << file.error().Message();
  EXPECT_EQ(file->version(), 3U);
  EXPECT_EQ(file->GetString("general.architecture").value(), "none");
  EXPECT_EQ(file->GetUnsigned("a.u32").value(), 4'000'000'000U);
  EXPECT_EQ(file->GetUnsigned("a.u64").value(), std::uint64_t{1} << 63);
  EXPECT_EQ(file->GetFloat("a.f32").value(), 0.5);
  EXPECT_TRUE(file->GetBool("a.bool").value());
  EXPECT_EQ(file->GetStrings("a.strings").value(), (std::vector<std::string>{"one", "", "three"}));
  EXPECT_EQ(file->GetIntegers("a.i32").value(), (std::vector<std::int64_t>{-1, 2}));
  EXPECT_EQ(file->GetFloats("a.floats").value(), (std::vector<float>{1.5F, -2}));
  ASSERT_EQ(file->tensors().size(), 2U);
  const TensorInfo* second = file->FindTensor("second");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->bytes, 68U);
  EXPECT_EQ(second->file_offset, file->data_offset() + 32);
  EXPECT_FALSE(file->sparse());
  std::vector<std::byte> read(40);
  ASSERT_TRUE(file->Read(second->file_offset, read));
  EXPECT_EQ(read, Bytes(40, 2));
}

TEST_F(WriterTest, SkippedTensorsMakeASparseFile) {
  auto writer = Writer::Create(Path()).value();
  const std::vector<Writer::Tensor> tensors = {{"a", 0, {1 << 20}}, {"b", 0, {1 << 20}}};
  ASSERT_EQ(writer.Begin(tensors).value(), std::uint64_t{8} << 20);
  ASSERT_TRUE(writer.SkipTensor());
  ASSERT_TRUE(writer.SkipTensor());
  ASSERT_TRUE(writer.Finish());
  const auto file = File::Open(Path());
  ASSERT_TRUE(file) << file.error().Message();
  EXPECT_EQ(file->file_bytes() - file->data_offset(), std::uint64_t{8} << 20);
  struct stat status{};
  ASSERT_EQ(::stat(Path().c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 64 * 1024);
  EXPECT_TRUE(file->sparse());
}

TEST_F(WriterTest, AnUnfinishedFileLeavesNothing) {
  {
    auto writer = Writer::Create(Path()).value();
    const std::vector<Writer::Tensor> tensors = {{"a", 0, {8}}};
    ASSERT_TRUE(writer.Begin(tensors));
    ASSERT_TRUE(writer.Write(Bytes(8, 0)));
    EXPECT_EQ(writer.Finish().error().code, Code::kGgufWriteOrder);
  }
  EXPECT_EQ(FilesLeft(), 0);
}

TEST_F(WriterTest, AFullDiskIsAnErrorAndLeavesNothing) {
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{64 * 1024, limit.rlim_max};
  Result<void> result;
  {
    auto writer = Writer::Create(Path()).value();
    const std::vector<Writer::Tensor> tensors = {{"a", 0, {1 << 20}}};
    ASSERT_TRUE(writer.Begin(tensors));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    result = writer.Write(Bytes(4 << 20, 0));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  std::signal(SIGXFSZ, previous);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kFileWrite);
  EXPECT_EQ(FilesLeft(), 0);
}

TEST_F(WriterTest, WrongUseIsAnError) {
  EXPECT_EQ(Writer::Create(Path(), 12).error().code, Code::kGgufAlignment);
  EXPECT_EQ(Writer::Create("/proc/none/model.gguf").error().code, Code::kFileWrite);
  EXPECT_EQ(Writer::Create(testing::TempDir()).error().code, Code::kFileWrite);
  EXPECT_EQ(Writer::Create("/dev/null").error().code, Code::kFileWrite);
  auto writer = Writer::Create(Path()).value();
  EXPECT_EQ(writer.Write(Bytes(1, 0)).error().code, Code::kGgufWriteOrder);
  EXPECT_EQ(writer.Finish().error().code, Code::kGgufWriteOrder);
  EXPECT_EQ(writer.SkipTensor().error().code, Code::kGgufWriteOrder);
  const auto begin = [&](Writer::Tensor tensor) { return writer.Begin(std::span(&tensor, 1)).error().code; };
  EXPECT_EQ(begin({"a", 4, {32}}), Code::kGgufTensorType);
  EXPECT_EQ(begin({"", 0, {32}}), Code::kGgufStringLimit);
  EXPECT_EQ(begin({"a", 0, {}}), Code::kGgufDimensions);
  EXPECT_EQ(begin({"a", 0, {0}}), Code::kGgufEmptyTensor);
  EXPECT_EQ(begin({"a", 8, {33}}), Code::kGgufBlockMultiple);
  EXPECT_EQ(begin({"a", 0, {1ULL << 40, 1ULL << 40}}), Code::kGgufElementOverflow);
  EXPECT_EQ(begin({"a", 0, {1ULL << 62}}), Code::kGgufByteOverflow);
  ASSERT_TRUE(writer.Begin({}));
  EXPECT_EQ(writer.Begin({}).error().code, Code::kGgufWriteOrder);
  EXPECT_EQ(writer.Write(Bytes(1, 0)).error().code, Code::kGgufWriteOrder);
}

TEST_F(WriterTest, AlignmentIsKept) {
  auto writer = Writer::Create(Path(), 64).value();
  const std::vector<Writer::Tensor> tensors = {{"a", 0, {1}}, {"b", 0, {1}}};
  ASSERT_TRUE(writer.Begin(tensors));
  ASSERT_TRUE(writer.Write(Bytes(8, 1)));
  ASSERT_TRUE(writer.Finish());
  const auto file = File::Open(Path());
  ASSERT_TRUE(file) << file.error().Message();
  EXPECT_EQ(file->data_offset() % 64, 0U);
  EXPECT_EQ(file->tensors()[1].file_offset, file->data_offset() + 64);
}

}  // namespace
}  // namespace boltbeam::gguf
