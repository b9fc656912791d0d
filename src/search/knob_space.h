// A space of knobs with rules: for families whose code runs on another chip than this one.
//
// Points are built knob by knob. A rule is asked as soon as the knobs that it needs are turned, and where it says no
// the whole branch is turned away. A rule that needs a fact which the chip does not declare turns its branch away by
// that fact's name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "chip/facts.h"
#include "search/candidate.h"

namespace boltbeam::search {

struct SpaceKnob {
  std::string name;
  std::string what;  // for a person, one line
  std::vector<std::int64_t> values;
  std::vector<std::string> words;  // what values are called that are no numbers: words[value]

  [[nodiscard]] std::string ValueText(std::int64_t value) const;
};

/// Values by knob, of which a rule sees those turned so far, and the facts that it asked for.
class Setting {
 public:
  Setting(const std::vector<SpaceKnob>& knobs, const std::vector<std::int64_t>& values,
          const std::map<std::string, double, std::less<>>& facts)
      : knobs_(&knobs), values_(&values), facts_(&facts) {}

  /// Of a knob of this space; 0 for any other name.
  [[nodiscard]] std::int64_t operator[](std::string_view knob) const;
  [[nodiscard]] double Fact(std::string_view name) const;

 private:
  const std::vector<SpaceKnob>* knobs_;
  const std::vector<std::int64_t>* values_;
  const std::map<std::string, double, std::less<>>* facts_;
};

struct SpaceRule {
  std::string reason;              // "over-threads"
  std::vector<std::string> knobs;  // that it looks at
  std::vector<std::string> facts;  // of the chip, that it looks at
  /// In numbers, why not; empty: the rule has nothing against it.
  std::function<std::string(const Setting&)> evidence;
  /// Whether it looks at the facts at all, from the knobs alone; empty: always.
  std::function<bool(const Setting&)> applies;
};

struct KnobPoint {
  std::vector<std::int64_t> values;  // [knob]
};

struct KnobSpace {
  std::vector<SpaceKnob> knobs;
  std::uint64_t free_product = 0;
  std::vector<KnobPoint> points;
  std::vector<Rejected> rejected;  // most points first; with the points they are the free product

  [[nodiscard]] std::int64_t ValueOf(const KnobPoint& point, std::string_view knob) const;
  /// "split_count=48,lane_width=32"
  [[nodiscard]] std::string Text(const KnobPoint& point) const;
};

KnobSpace BuildSpace(std::vector<SpaceKnob> knobs, const std::vector<SpaceRule>& rules, const chip::Chip& chip);

/// Why a single point, which need not be of the space, is not legal: the rules in their order, the first wins.
std::vector<Rejected> ReasonsAgainst(const std::vector<SpaceKnob>& knobs, const std::vector<std::int64_t>& values,
                                     const std::vector<SpaceRule>& rules, const chip::Chip& chip);

}  // namespace boltbeam::search
