// Models that are split over several files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "gguf/file.h"
#include "gguf/split_name.h"
#include "gguf/testing/builder.h"
#include "gguf/testing/split_refusals.h"

namespace boltbeam::gguf {
namespace {

namespace fs = std::filesystem;
using testing::Files;
using testing::SplitModel;
using testing::WholeModel;

class SplitTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  void Write(const Files& files) const {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (const auto& [name, bytes] : files) {
      std::ofstream(folder_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
  }
  [[nodiscard]] std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  const fs::path folder_ = fs::path(::testing::TempDir()) / fmt::format("boltbeam_split_{}", ::getpid());
};

std::string BytesOf(const File& file, const TensorInfo& tensor) {
  std::string bytes(tensor.bytes, '\0');
  EXPECT_TRUE(file.Read(tensor.file_offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

TEST_F(SplitTest, AnyPartGivesWhatTheWholeFileGives) {
  Files files = SplitModel();
  files["whole.gguf"] = WholeModel();
  Write(files);
  const File whole = File::Open(Path("whole.gguf")).value();
  for (int number = 1; number <= 3; ++number) {
    const auto file = File::Open(Path(fmt::format("m-{:05}-of-00003.gguf", number)));
    ASSERT_TRUE(file) << file.error().Message();
    EXPECT_EQ(file->path(), Path("m-00001-of-00003.gguf"));
    EXPECT_EQ(file->parts(), 3U);
    EXPECT_EQ(testing::Examine(*file), "");
    ASSERT_EQ(file->tensors().size(), whole.tensors().size());
    for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
      const TensorInfo &expected = whole.tensors()[i], &found = file->tensors()[i];
      EXPECT_EQ(found.name, expected.name);
      EXPECT_EQ(found.shape, expected.shape);
      EXPECT_EQ(file->FindTensor(expected.name), &found);
      EXPECT_EQ(BytesOf(*file, found), BytesOf(whole, expected)) << expected.name;
    }
    EXPECT_EQ(file->GetString("general.architecture").value(), "test");
    EXPECT_EQ(file->GetStrings("test.tokens").value(), whole.GetStrings("test.tokens").value());
  }
}

TEST_F(SplitTest, EveryClassIsRefusedByItsCodeAndNamesTheFile) {
  for (const testing::SplitRefusal& refusal : testing::SplitRefusals()) {
    Write(refusal.files);
    const auto file = File::Open(Path(refusal.opened));
    const std::string name = fmt::format("{} {}", CodeName(refusal.code), refusal.variant);
    ASSERT_FALSE(file) << name << " was opened";
    EXPECT_EQ(CodeName(file.error().code), CodeName(refusal.code)) << name << ": " << file.error().Message();
    EXPECT_TRUE(file.error().where.starts_with(Path(refusal.blamed))) << name << ": " << file.error().Message();
    EXPECT_FALSE(file.error().expected.empty()) << name;
  }
}

TEST_F(SplitTest, AReadNeverLeavesItsPart) {
  Write(SplitModel());
  const File file = File::Open(Path("m-00002-of-00003.gguf")).value();
  const TensorInfo& last = *file.FindTensor("b.weight");
  std::vector<std::byte> bytes(last.bytes + 1);
  EXPECT_EQ(file.Read(last.file_offset, bytes).error().code, Code::kFileRead) << "one byte of the next part";
  EXPECT_EQ(file.Read(file.file_bytes(), std::span(bytes).first(1)).error().code, Code::kFileRead);
  EXPECT_EQ(file.Read(~0ULL, bytes).error().code, Code::kFileRead);
}

TEST_F(SplitTest, APartThatChangesWhileItIsOpenIsAnError) {
  Write(SplitModel());
  const File file = File::Open(Path("m-00001-of-00003.gguf")).value();
  std::vector<std::byte> bytes(4);
  fs::resize_file(Path("m-00003-of-00003.gguf"), 100);
  EXPECT_TRUE(file.Read(file.FindTensor("c.weight")->file_offset, bytes));
  const auto read = file.Read(file.FindTensor("f.weight")->file_offset, bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kFileRead);
  EXPECT_TRUE(read.error().where.starts_with(Path("m-00003-of-00003.gguf"))) << read.error().Message();
}

TEST_F(SplitTest, MetadataOfAllPartsCountTogether) {
  Write(SplitModel());
  OpenOptions options;
  options.metadata_limit_bytes = 0;
  std::uint64_t needed = 0;
  while (!File::Open(Path("m-00001-of-00003.gguf"), options)) options.metadata_limit_bytes = ++needed;
  options.metadata_limit_bytes = needed - 1;
  const auto file = File::Open(Path("m-00001-of-00003.gguf"), options);
  EXPECT_EQ(file.error().code, Code::kGgufMetadataLimit);
  EXPECT_TRUE(file.error().where.starts_with(Path("m-00003-of-00003.gguf"))) << file.error().Message();
}

TEST(PartName, IsReadAndWritten) {
  const auto name = ParsePartName("folder/a-b-00002-of-00013.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "folder/a-b");
  EXPECT_EQ(name->number, 2U);
  EXPECT_EQ(name->count, 13U);
  EXPECT_EQ(name->Path(11), "folder/a-b-00011-of-00013.gguf");
  for (const char* other : {"", "a.gguf", "a-1-of-2.gguf", "a-00001-of-00002.gguf.part", "a-0000x-of-00002.gguf"}) {
    EXPECT_FALSE(ParsePartName(other)) << other;
  }
}

TEST_F(SplitTest, OnePartAlone) {
  Write({{"m-00001-of-00003.gguf", SplitModel().at("m-00001-of-00003.gguf")}});
  const std::string first = Path("m-00001-of-00003.gguf");
  EXPECT_EQ(File::Open(first).error().code, Code::kGgufSplitMissing);
  const auto alone = File::Open(first, {.one_part = true});
  ASSERT_TRUE(alone) << alone.error().Message();
  EXPECT_EQ(alone->parts(), 1U);
  EXPECT_EQ(alone->GetUnsigned("split.tensors.count"), 6U);
}

TEST_F(SplitTest, AHeaderAloneHasShapesAndNoData) {
  Write({{"whole.gguf", WholeModel()}});
  const File whole = File::Open(Path("whole.gguf")).value();
  for (const std::uint64_t bytes : {whole.data_offset() + 1, whole.data_offset(), whole.data_offset() - 1}) {
    fs::resize_file(Path("whole.gguf"), bytes);
    EXPECT_FALSE(File::Open(Path("whole.gguf")));
    const auto cut = File::Open(Path("whole.gguf"), {.header_only = true});
    ASSERT_TRUE(cut) << bytes << ": " << cut.error().Message();
    ASSERT_EQ(cut->tensors().size(), whole.tensors().size());
    EXPECT_EQ(cut->tensors().back().bytes, whole.tensors().back().bytes);
    std::array<std::byte, 4> data{};
    EXPECT_EQ(cut->Read(cut->tensors().back().file_offset, data).error().code, Code::kFileRead);
  }
}

}  // namespace
}  // namespace boltbeam::gguf
