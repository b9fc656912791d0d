#include <gtest/gtest.h>

#include <sstream>

#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

Table Sample() {
  Table table({{"part", "role", Align::kLeft}, {"floor", "floor_ns"}, {"note", "", Align::kLeft}});
  table.Add({"lm_head", {"300.297 µs", "300297"}, "a|b"});
  table.AddRule();
  table.Add({"a, \"quoted\" name", {"2.750 ms", "2750766"}});
  return table;
}

TEST(Table, TextAlignsNumbersToTheRight) {
  EXPECT_EQ(Sample().Text(),
            "part                   floor  note\n"
            "──────────────────────────────────\n"
            "lm_head           300.297 µs  a|b\n"
            "──────────────────────────────────\n"
            "a, \"quoted\" name    2.750 ms\n");
}

TEST(Table, NamesGiveWayNumbersDoNot) {
  Table table({{"name", "name", Align::kLeft}, {"bytes", "bytes"}});
  table.Add({std::string(200, 'x'), "4,670,533,632"});
  std::istringstream lines(table.Text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), 80u) << line;
  EXPECT_NE(table.Text().find("…  4,670,533,632"), std::string::npos);
}

TEST(Table, MarkdownEscapesPipes) {
  EXPECT_EQ(Sample().Markdown(),
            "| part | floor | note |\n| --- | ---: | --- |\n| lm_head | 300.297 µs | a\\|b |\n"
            "| a, \"quoted\" name | 2.750 ms |  |\n");
}

TEST(Table, CsvHasRawNumbersAndQuotes) {
  EXPECT_EQ(Sample().Csv(), "role,floor_ns\r\nlm_head,300297\r\n\"a, \"\"quoted\"\" name\",2750766\r\n");
}

TEST(Wrap, KeepsToTheWidth) {
  EXPECT_EQ(Wrap("one two three four", 2, 9), "one two\n  three\n  four");
  EXPECT_EQ(Wrap("", 2, 9), "");
  EXPECT_EQ(Wrap("unbreakable", 0, 4), "unbreakable");
}

TEST(Units, AsPeopleReadThem) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(4670533632), "4,670,533,632");
  EXPECT_EQ(Decimal(-1234.567, 2), "-1,234.57");
  EXPECT_EQ(Decimal(999.5, 0), "1,000");
  EXPECT_EQ(Bytes(4670533632), "4.671 GB");
  EXPECT_EQ(Bytes(12), "12 B");
  EXPECT_EQ(Duration(300297.03), "300.297 µs");
  EXPECT_EQ(Duration(0.5), "0.500 ns");
  EXPECT_EQ(Scaled(255.4e12) + "FLOP/s", "255.4 TFLOP/s");
  EXPECT_EQ(Percent(0.1234), "12.3 %");
}

}  // namespace
}  // namespace boltbeam::report
