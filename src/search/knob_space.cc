#include "search/knob_space.h"

#include <fmt/format.h>

#include <algorithm>

namespace boltbeam::search {
namespace {

using Facts = std::map<std::string, double, std::less<>>;

Facts FactsOf(const std::vector<SpaceRule>& rules, const chip::Chip& chip) {
  Facts facts;
  for (const SpaceRule& rule : rules) {
    for (const std::string& name : rule.facts) {
      if (const auto value = chip.Get(name)) facts[name] = *value;
    }
  }
  return facts;
}

/// What a rule has against a setting: a fact that is missing, or its evidence. Points 0: nothing.
Rejected Ask(const SpaceRule& rule, const Setting& setting, const Facts& facts) {
  if (rule.applies && !rule.applies(setting)) return {};
  for (const std::string& name : rule.facts) {
    if (!facts.contains(name)) {
      return {"missing-fact:" + name, fmt::format("{} asks for it", rule.reason), 1};
    }
  }
  std::string evidence = rule.evidence(setting);
  if (evidence.empty()) return {};
  return {rule.reason, std::move(evidence), 1};
}

class Builder {
 public:
  Builder(KnobSpace& space, const std::vector<SpaceRule>& rules, const Facts& facts)
      : space_(space), rules_(rules), facts_(facts) {
    for (const SpaceRule& rule : rules) last_.push_back(LastKnob(rule));
  }

  void Run() {
    space_.free_product = 1;
    for (const SpaceKnob& knob : space_.knobs) space_.free_product *= knob.values.size();
    std::vector<std::int64_t> values(space_.knobs.size());
    Turn(values, 0, space_.free_product);
    std::ranges::stable_sort(space_.rejected, std::ranges::greater{}, &Rejected::points);
  }

 private:
  /// The number of knobs that must be turned before the rule can be asked.
  [[nodiscard]] std::size_t LastKnob(const SpaceRule& rule) const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < space_.knobs.size(); ++i) {
      if (Contains(rule.knobs, space_.knobs[i].name)) last = i;
    }
    return last;
  }

  void Turn(std::vector<std::int64_t>& values, std::size_t index, std::uint64_t branch) {
    if (index == space_.knobs.size()) {
      space_.points.push_back({values});
      return;
    }
    branch /= space_.knobs[index].values.size();
    for (const std::int64_t value : space_.knobs[index].values) {
      values[index] = value;
      const Rejected against = First(values, index);
      if (against.points == 0) {
        Turn(values, index + 1, branch);
      } else {
        Reject(space_.rejected, against.reason, against.evidence, branch);
      }
    }
  }

  [[nodiscard]] Rejected First(const std::vector<std::int64_t>& values, std::size_t index) const {
    const Setting setting(space_.knobs, values, facts_);
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (last_[i] != index) continue;
      Rejected against = Ask(rules_[i], setting, facts_);
      if (against.points != 0) return against;
    }
    return {};
  }

  KnobSpace& space_;
  const std::vector<SpaceRule>& rules_;
  const Facts& facts_;
  std::vector<std::size_t> last_;  // [rule]
};

std::size_t IndexOf(const std::vector<SpaceKnob>& knobs, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(knobs, name, &SpaceKnob::name) - knobs.begin());
}

}  // namespace

std::string SpaceKnob::ValueText(std::int64_t value) const {
  const auto index = static_cast<std::size_t>(value);
  return index < words.size() ? words[index] : fmt::format("{}", value);
}

std::int64_t Setting::operator[](std::string_view knob) const {
  const std::size_t index = IndexOf(*knobs_, knob);
  return index < values_->size() ? (*values_)[index] : 0;
}

double Setting::Fact(std::string_view name) const {
  const auto found = facts_->find(name);
  return found == facts_->end() ? 0 : found->second;
}

std::int64_t KnobSpace::ValueOf(const KnobPoint& point, std::string_view knob) const {
  const std::size_t index = IndexOf(knobs, knob);
  return index < point.values.size() ? point.values[index] : 0;
}

std::string KnobSpace::Text(const KnobPoint& point) const {
  std::string text;
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? "" : ",", knobs[i].name, knobs[i].ValueText(point.values[i]));
  }
  return text;
}

KnobSpace BuildSpace(std::vector<SpaceKnob> knobs, const std::vector<SpaceRule>& rules, const chip::Chip& chip) {
  KnobSpace space;
  space.knobs = std::move(knobs);
  const Facts facts = FactsOf(rules, chip);
  Builder(space, rules, facts).Run();
  return space;
}

std::vector<Rejected> ReasonsAgainst(const std::vector<SpaceKnob>& knobs, const std::vector<std::int64_t>& values,
                                     const std::vector<SpaceRule>& rules, const chip::Chip& chip) {
  const Facts facts = FactsOf(rules, chip);
  const Setting setting(knobs, values, facts);
  std::vector<Rejected> reasons;
  for (const SpaceRule& rule : rules) {
    Rejected against = Ask(rule, setting, facts);
    if (against.points != 0) reasons.push_back(std::move(against));
  }
  return reasons;
}

}  // namespace boltbeam::search
