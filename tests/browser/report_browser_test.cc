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
#include "lab/prices.h"
#include "report/account_page.h"
#include "report/price_format.h"

namespace boltbeam::report {
namespace {

lab::Price PriceAt(double tok_s) {
  lab::PriceQuestion question;
  question.tok_s = tok_s;
  question.floor_tok_s = 1.5 * tok_s;
  return lab::ComputePrice(question, lab::LoadPrices("", "").value()).value();
}

void ExpectWhole(const std::string& page) {
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / ("report-" + std::to_string(::getpid()) + ".html")).string();
  ASSERT_TRUE(base::WriteFileAtomically(path, page));
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

TEST(ReportInABrowser, TheAccountIsWholeAtBothWidthsInLightAndDark) {
  const auto page = AuditPage(
      ExampleSubject(), ExampleAudit(),
      OtherProgram{"another program", {{"head", 2e6, 3e6}, {"layers", 4e6, 3e6}}, 1e4, "It wins."}, PriceAt(90));
  ASSERT_TRUE(page) << page.error().Message();
  ExpectWhole(*page);
}

TEST(ReportInABrowser, SoIsThePrice) {
  // Large figures, and lines that end at one place.
  lab::PriceList list = lab::LoadPrices("", "").value();
  list.Set("card_usd", 2.5e6);
  list.Set("rent_usd_per_hour", 95.2);
  lab::PriceQuestion question;
  question.tok_s = 0.02;
  question.floor_tok_s = 0.03;
  question.prompt_tok_s = 9;
  question.prompt_tokens = 1e5;
  ExpectWhole(PriceHtml(lab::ComputePrice(question, list).value()));
}

}  // namespace
}  // namespace boltbeam::report
