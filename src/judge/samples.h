// What a verdict is derived from, as the text of a blob, and the verdict derived from it again.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "judge/judge.h"

namespace boltbeam::judge {

inline constexpr std::string_view kSamplesFormat = "boltbeam.judge.samples.v2";
/// Of records from before timed_output was a condition; read, not written.
inline constexpr std::string_view kOlderSamplesFormat = "boltbeam.judge.samples.v1";

/// Times in nanoseconds as whole numbers where they are, causes by name, the rules and the thresholds of that day.
std::string SamplesText(const Run& run, const Thresholds& thresholds);

struct Rederived {
  Judgement judgement;
  std::vector<DepthFinding> depths;
  // Names of conditions: those that were found again from the windows, and those that say what was seen beside them.
  std::vector<std::string> derived, taken;
};
/// The same numbers from the text: every look is taken again. kJson names what is wrong with it.
Result<Rederived> Rederive(std::string_view text);

/// A threshold's text is kept with the samples, so that a later registry does not change an old verdict.
nlohmann::json ToJson(const Thresholds& thresholds);

}  // namespace boltbeam::judge
