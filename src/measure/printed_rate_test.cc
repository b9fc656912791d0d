#include "measure/printed_rate.h"

#include <gtest/gtest.h>

namespace boltbeam::measure {
namespace {

TEST(TokensPerSecondTest, WhatProgramsPrint) {
  EXPECT_EQ(TokensPerSecond("12.5\n").value(), 12.5);
  EXPECT_EQ(TokensPerSecond("loading\ntg: 7 tokens, 31.25 tok/s\n\n").value(), 31.25);
  EXPECT_EQ(TokensPerSecond("a b2b 3\nno number here\n").value(), 3);
  EXPECT_EQ(TokensPerSecond(R"([{"avg_ts": 1}, {"avg_ts": 44.5, "n_gen": 32}])").value(), 44.5);
  for (const char* nothing : {"", "\n\n", "none", "{}", "[]"}) {
    EXPECT_EQ(TokensPerSecond(nothing).error().code, Code::kUsage) << nothing;
  }
  for (const char* impossible : {"inf", "0", "-3", R"({"avg_ts": 0})"}) {
    EXPECT_EQ(TokensPerSecond(impossible).error().code, Code::kMeasurementImpossible) << impossible;
  }
}

}  // namespace
}  // namespace boltbeam::measure
