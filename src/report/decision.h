// What a search found, as `boltbeam search` shows it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/form.h"
#include "search/decide.h"

namespace boltbeam::report {

/// What followed from the parts: whole tokens judged, and what was installed.
/// A fusion switched the other way, or a geometry of attention, on the whole token.
struct IdeaRow {
  std::string name;
  std::optional<double> foretold_ns;  // of a token: what the switch is worth at most, what the geometry saves
  std::string closed;                 // why no token was timed; empty: it was judged by time
  std::string verdict, outcome;
  double ratio = 0, low = 0, high = 0;  // token time with it over that without
};

struct SearchOutcome {
  std::string model, chip, start;               // names; "default", "worst", ...
  std::string verdict, reason;                  // empty: no token was judged
  std::string record;                           // hash of the verdict
  double ratio = 0, low = 0, high = 0;          // token time of the found plan over that of the start
  std::string against_default;                  // the judge's outcome, where the start was another; empty: not asked
  double default_ratio = 0;                     // over that of the default plan
  std::map<std::string, std::string> restored;  // by table: why its best is not legal with the start's instruction set
  std::string plan;                             // name of the installed plan; empty: none
  std::vector<IdeaRow> ideas;
  double judge_seconds = 0;
  std::uint32_t threads = 0;

  /// Worth installing: compared with the default plan, where the start was another, and not slower.
  [[nodiscard]] bool IsGoodAgainstDefault() const;
};

std::string SearchReport(const search::Decision& decision, const SearchOutcome& outcome, Form form);

}  // namespace boltbeam::report
