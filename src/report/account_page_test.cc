#include "report/account_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "example_audit.h"

namespace boltbeam::report {
namespace {

std::string Page(const AuditSubject& subject, const std::optional<OtherProgram>& comparison = {}) {
  const Result<std::string> page = AuditPage(subject, ExampleAudit(), comparison);
  EXPECT_TRUE(page) << page.error().Message();
  return page.value_or("");
}

std::string EmbeddedJson(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"account\">";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(AccountPage, IsOneFileBelowAMegabyteThatLoadsNothing) {
  const std::string page = Page(ExampleSubject());
  EXPECT_LT(page.size(), 1'000'000U);
  for (const char* loader : {"src=\"", "@import", "href=\"http", "sourceMappingURL", "<link rel=\"stylesheet"}) {
    EXPECT_EQ(page.find(loader), std::string::npos) << loader;
  }
  EXPECT_EQ(page.substr(0, page.find("<script>")).find("url("), std::string::npos);
}

TEST(AccountPage, HasEverySectionAndEveryChart) {
  const std::string page = Page(ExampleSubject(), OtherProgram{"other 1.0", {{"head", 2e6, 3e6}}, 1e4, "It wins."});
  for (const char* chart : {"waterfall", "recoverable", "roofline", "layers", "timeline", "curve", "beside"}) {
    EXPECT_NE(page.find(std::string("data-chart=\"") + chart), std::string::npos) << chart;
  }
  for (const char* text : {"A token at depth 0", "A token at depth 4096", "Against the depth", "Beside other 1.0",
                           "measured and published", "What this can't tell you", "<dt>floor</dt>", "<dt>none</dt>",
                           "<dt>cached</dt>", "(a finding)", "lines are findings", "The account closes"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
}

TEST(AccountPage, HasTheTermsOfAComparison) {
  const OtherProgram comparison =
      ReadComparison(R"({"theirs": "other", "regions": [{"region": "head", "ours_ns": 2e6, "theirs_ns": 3e6}],
                         "terms": [{"term": "between operations", "ours_ns": null, "theirs_ns": 51200.0},
                                   {"term": "waiting", "ours_ns": 7300.0, "theirs_ns": null}]})",
                     "c.json")
          .value();
  ASSERT_EQ(comparison.terms.size(), 2U);
  EXPECT_FALSE(comparison.terms[0].ours_ns);
  const std::string page = Page(ExampleSubject(), comparison);
  for (const char* text : {"between operations", "51.2", "-51.2", "7.3"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
  EXPECT_FALSE(
      ReadComparison(R"({"regions": [{"region": "head", "ours_ns": 2, "theirs_ns": 3}], "terms": [{}]})", "c"));
}

TEST(AccountPage, HasThePriceWhenItIsAskedFor) {
  lab::PriceQuestion question;
  question.tok_s = 247.8;
  const lab::Price price = lab::ComputePrice(question, lab::LoadPrices("", "").value()).value();
  const std::string page = AuditPage(ExampleSubject(), ExampleAudit(), {}, price).value();
  EXPECT_NE(page.find("<h2>What a token costs</h2>"), std::string::npos);
  EXPECT_NE(page.find("<title>US dollars for a million tokens</title>"), std::string::npos);
  EXPECT_EQ(Page(ExampleSubject()).find("What a token costs"), std::string::npos);
}

TEST(AccountPage, CarriesItsNumbersAsJson) {
  const nlohmann::json document = nlohmann::json::parse(EmbeddedJson(Page(ExampleSubject())));
  EXPECT_EQ(document["schema"], "boltbeam.audit.v1");
  EXPECT_EQ(document["depths"].size(), 2U);
  const nlohmann::json& depth = document["depths"][0];
  EXPECT_EQ(depth["timeline"]["spans"].size(), 2U * 2 * 17);
  EXPECT_EQ(depth["steps"]["rows"].size(), 17U);
  const nlohmann::json& wall = depth["wall"];
  EXPECT_NEAR(wall["kernels_sum_ns"].get<double>() - wall["overlap_ns"].get<double>(),
              wall["kernels_union_ns"].get<double>(), 1);
  ASSERT_FALSE(depth["causes"].empty());
  EXPECT_TRUE(depth["causes"][0]["finding"].get<bool>());
  EXPECT_FALSE(depth["causes"].back()["finding"].get<bool>());
  EXPECT_EQ(depth["parts"][0]["alone_says"], "as alone");
}

TEST(AccountPage, NamesFromFilesStayText) {
  AuditSubject subject = ExampleSubject();
  subject.model_filename = "</script><script>alert(1)</script>\"'&\u202egguf.exe";
  subject.model_type = "<img onerror=alert(2)>";
  const std::string page = Page(subject, OtherProgram{"<b>", {{"<i>", 1, 2}}, 0, "<u>", {{"<s>", 1, 2}}});
  for (const char* live : {"<script>alert", "<img", "<b>&lt;", "<i>", "<s>", "<u>", "\u202e"}) {
    EXPECT_EQ(page.find(live), std::string::npos) << live;
  }
  EXPECT_TRUE(nlohmann::json::accept(EmbeddedJson(page)));
}

TEST(AccountText, FitsATerminalWithEverythingShown) {
  const std::string text = AuditText(ExampleSubject(), ExampleAudit(), {.why = true, .layers = true});
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), 80) << line;
    EXPECT_EQ(line.find("…"), std::string::npos) << line;
  }
  for (const char* word :
       {"union of kernels", "imbalance", "cold", "Lever:", "4096", "lines are findings", "(a finding)"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
  const std::string markdown = AuditMarkdown(ExampleSubject(), ExampleAudit(), {.why = true, .layers = true});
  for (const char* word : {"### Causes", "lines are findings", "| finding |", "### Wall", "### Threads", "### Layers",
                           "## What this can't tell"}) {
    EXPECT_NE(markdown.find(word), std::string::npos) << word;
  }
}

TEST(ReadComparisonTest, TakesWhatCompareWritesAndRefusesAllElse) {
  const auto comparison = ReadComparison(
      R"({"residual_ns":5,"theirs":"other 1","regions":[{"region":"head","ours_ns":1,"theirs_ns":2}]})", "a.json");
  ASSERT_TRUE(comparison) << comparison.error().Message();
  EXPECT_EQ(comparison->regions[0].name, "head");
  EXPECT_EQ(comparison->other, "other 1");
  for (const char* bad : {"", "{}", "[]", R"({"regions":[]})", R"({"regions":[{"region":1}]})"}) {
    EXPECT_EQ(ReadComparison(bad, "a.json").error().code, Code::kJson) << bad;
  }
}

}  // namespace
}  // namespace boltbeam::report
