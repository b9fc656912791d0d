// The report in a real browser: click_report.py says what is looked for.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/paths.h"
#include "example_audit.h"
#include "report/account_page.h"

namespace boltbeam::report {
namespace {

TEST(ReportInABrowser, IsWholeAtBothWidthsInLightAndDark) {
  const auto page =
      AuditPage(ExampleSubject(), ExampleAudit(),
                OtherProgram{"another program", {{"head", 2e6, 3e6}, {"layers", 4e6, 3e6}}, 1e4, "It wins."});
  ASSERT_TRUE(page) << page.error().Message();
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / ("report-" + std::to_string(::getpid()) + ".html")).string();
  ASSERT_TRUE(base::WriteFileAtomically(path, *page));
  const std::string command =
      "/usr/bin/python3 " BOLTBEAM_SOURCE_DIR "/tests/browser/click_report.py " + path + " 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string said;
  std::array<char, 4096> piece{};
  while (std::fgets(piece.data(), piece.size(), pipe) != nullptr) said += piece.data();
  const int status = WEXITSTATUS(pclose(pipe));
  std::filesystem::remove(path);
  constexpr int kNoBrowser = 77;
  if (status == kNoBrowser) GTEST_SKIP() << said;
  EXPECT_EQ(status, 0) << said;
}

}  // namespace
}  // namespace boltbeam::report
