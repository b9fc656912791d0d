// A comparison's verdict as JSON, Markdown and text.
#pragma once

#include <string>

#include "judge/judge.h"

namespace boltbeam::report {

struct JudgeSubject {
  std::string model;  // as it was named; empty for two commands
  std::string a, b;   // as the sides describe themselves
  std::string machine;
  std::string ledger;  // hash of the record; empty: not recorded
  std::uint64_t seed = 0;
};

std::string JudgeJson(const JudgeSubject& subject, const judge::Run& run, const judge::Judgement& judgement);
std::string JudgeText(const JudgeSubject& subject, const judge::Run& run, const judge::Judgement& judgement);
std::string JudgeMarkdown(const JudgeSubject& subject, const judge::Run& run, const judge::Judgement& judgement);

}  // namespace boltbeam::report
