#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <set>

#include "base/checked.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json_members.h"
#include "base/paths.h"
#include "base/pending_file.h"
#include "base/printable.h"
#include "base/shell.h"
#include "base/ticks.h"
#include "base/version.h"

namespace boltbeam {
namespace {

TEST(ErrorTest, EveryCodeHasItsOwnNameAndAMeaning) {
  std::set<std::string_view> names;
  for (int code = 0; code < static_cast<int>(Code::kCount); ++code) {
    EXPECT_TRUE(names.insert(CodeName(static_cast<Code>(code))).second) << CodeName(static_cast<Code>(code));
    EXPECT_FALSE(CodeMeaning(static_cast<Code>(code)).empty());
  }
}

TEST(ErrorTest, MessageSaysWhereWhatAndWhatWasExpected) {
  const Error error{Code::kUsage, "--threads", "-1", "a number from 1 to 1024"};
  EXPECT_EQ(error.Message(), "--threads: -1; expected a number from 1 to 1024");
}

TEST(CheckedTest, OverflowIsFound) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(CheckedAdd<std::uint64_t>(kMax, 1));
  EXPECT_FALSE(CheckedMul<std::uint64_t>(kMax / 2 + 1, 2));
  EXPECT_FALSE(CheckedAlignUp<std::uint64_t>(kMax, 32));
  EXPECT_EQ(CheckedAlignUp<std::uint64_t>(33, 32), 64U);
}

TEST(HashTest, Sha256OfTheStandardsExample) {  // FIPS 180-2, appendix B.1
  EXPECT_EQ(base::Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(EmbeddedTest, RegistriesAreThereAndOthersAreNot) {
  EXPECT_TRUE(base::Embedded("formats/rows.json"));
  EXPECT_EQ(base::Embedded("nothing.json").error().code, Code::kInternal);
}

TEST(PrintableTest, TextOfStrangersIsFitForATerminal) {
  EXPECT_EQ(base::Printable("plain é 漢"), "plain é 漢");
  EXPECT_EQ(base::Printable("a\x1b[2J\n"), "a\\x1b[2J\\x0a");
  EXPECT_EQ(base::Printable("\xc2\x9b"), "\\xc2\\x9b");  // the one-character form of ESC [
  EXPECT_EQ(base::Printable("\xff\xe6\xbc"), "\\xff\\xe6\\xbc");
  EXPECT_EQ(base::Printable("abcdef", 3), "abc...");
  EXPECT_EQ(base::Printable("ab漢", 4), "ab...");  // never half a character
}

TEST(PrintableTest, Utf8IsThatOfTheStandard) {
  for (const std::string_view good :
       {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(base::IsUtf8(good)) << base::Printable(good);
  }
  for (const std::string_view bad : {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                                     "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xc3("}) {
    EXPECT_FALSE(base::IsUtf8(bad)) << base::Printable(bad);
  }
}

/// Of this process alone.
std::filesystem::path OwnPath(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / ("boltbeam_" + name + "_" + std::to_string(::getpid()));
}

TEST(PathsTest, AtomicWriteLeavesNothingHalfWritten) {
  const auto folder = OwnPath("paths");
  ASSERT_TRUE(base::WriteFileAtomically(folder / "file", "text"));
  EXPECT_EQ(base::ReadWholeFile(folder / "file").value(), "text");
  EXPECT_EQ(base::WriteFileAtomically("/proc/none/file", "text").error().code, Code::kFileWrite);
  EXPECT_EQ(base::ReadWholeFile(folder / "absent").error().code, Code::kFileNotFound);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(PendingFileTest, AppearsWholeOrNotAtAll) {
  const auto folder = OwnPath("pending");
  std::filesystem::remove_all(folder);
  const std::string name = (folder / "file").string();
  EXPECT_EQ(base::PendingFile::Create(name).error().code, Code::kFileWrite) << "no folder is made";
  std::filesystem::create_directories(folder);
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  {
    base::PendingFile dropped = base::PendingFile::Create(name).value();
    ASSERT_TRUE(dropped.Write("text"));
    EXPECT_EQ(files(), 1);
  }
  EXPECT_EQ(files(), 0);
  {
    base::PendingFile first = base::PendingFile::Create(name).value();
    base::PendingFile kept = std::move(first);
    ASSERT_TRUE(kept.Write("text"));
    ASSERT_TRUE(kept.Commit());
    base::PendingFile::RemoveAll();
  }
  EXPECT_EQ(base::ReadWholeFile(name).value(), "text");
  const base::PendingFile interrupted = base::PendingFile::Create(name).value();
  EXPECT_EQ(files(), 2);
  base::PendingFile::RemoveAll();
  EXPECT_EQ(files(), 1) << "what a signal handler calls";
  std::filesystem::remove_all(folder);
}

TEST(PathsTest, DeviceIsWrittenToAndNeverReplaced) {
  const auto link = OwnPath("null");
  std::filesystem::remove(link);
  std::filesystem::create_symlink("/dev/null", link);  // the link too: replacing it is harmless, /dev/null is not
  ASSERT_TRUE(base::IsSpecialFile(link));
  EXPECT_TRUE(base::WriteFileAtomically(link, "text"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  std::filesystem::remove(link);
  EXPECT_FALSE(base::IsSpecialFile(testing::TempDir()));
}

TEST(VersionTest, IsTheProjects) {
  const std::string build = base::ReadWholeFile(BOLTBEAM_SOURCE_DIR "/CMakeLists.txt").value();
  EXPECT_NE(build.find(std::string("project(boltbeam VERSION ") + base::kVersion + " "), std::string::npos);
}

TEST(TicksTest, CounterNeverGoesBack) {
  std::uint64_t last = base::Ticks();
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t now = base::Ticks();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(HashTest, AFilesIsThatOfItsBytes) {
  const std::string path = testing::TempDir() + "boltbeam_hash." + std::to_string(::getpid());
  for (const std::string& bytes : {std::string(), std::string("abc"), std::string((std::size_t{3} << 20) + 5, 'x')}) {
    ASSERT_TRUE(base::WriteFileAtomically(path, bytes));
    EXPECT_EQ(base::Sha256OfFile(path).value(), base::Sha256Hex(bytes)) << bytes.size();
  }
  std::remove(path.c_str());
  EXPECT_EQ(base::Sha256OfFile(path).error().code, Code::kFileNotFound);
  EXPECT_EQ(base::Sha256OfFile(testing::TempDir()).error().code, Code::kFileNotFound);
}

TEST(RunProgramTest, QuietlyTellsOnlyWhyItFailed) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(base::RunQuietly("echo note >&2; echo 5").value(), "5\n");
  const auto failed = base::RunQuietly("echo first >&2; echo the reason >&2; exit 3");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().found, "exit status 3: the reason");
  EXPECT_EQ(failed.error().where.find("exec"), std::string::npos) << "the command as it was given";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(RunProgramTest, OutputAndFailure) {
  EXPECT_EQ(base::RunProgram("echo 5; echo 6 >&2 2>/dev/null").value(), "5\n");
  const auto failed = base::RunProgram("exit 7");
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().found.find('7'), std::string::npos);
  EXPECT_EQ(base::RunProgram("echo " + base::ShellQuoted("it's $HOME")).value(), "it's $HOME\n");
}

TEST(JsonMembersTest, OfTheTypeAskedForOrNotThere) {
  const nlohmann::json object = {{"number", 2.5}, {"text", "x"}, {"list", {1}}};
  EXPECT_EQ(base::NumberAt(object, "number"), 2.5);
  EXPECT_EQ(base::TextAt(object, "text"), "x");
  EXPECT_EQ(base::TextOf(object, "number"), "");
  EXPECT_EQ(base::ObjectAt(object, "list"), &object["list"]);
  for (const nlohmann::json& other : {nlohmann::json(), nlohmann::json(3), nlohmann::json::array({1})}) {
    EXPECT_FALSE(base::NumberAt(other, "number") || base::TextAt(other, "text") ||
                 base::ObjectAt(other, "list") != nullptr);
  }
  EXPECT_FALSE(base::NumberAt(object, "text") || base::TextAt(object, "list") ||
               base::ObjectAt(object, "text") != nullptr);
}

}  // namespace
}  // namespace boltbeam
