#include "chip/facts.h"

#include <algorithm>

namespace boltbeam::chip {

std::string_view ProvenanceName(Provenance provenance) {
  switch (provenance) {
    case Provenance::kMeasured:
      return "measured";
    case Provenance::kVendor:
      return "vendor";
    case Provenance::kDerived:
      return "derived";
    case Provenance::kDetected:
      return "detected";
    case Provenance::kUnknown:
      break;
  }
  return "unknown";
}

const Fact* Chip::Find(std::string_view fact) const {
  const auto found = std::ranges::find(facts, fact, &Fact::name);
  return found == facts.end() ? nullptr : &*found;
}

std::optional<double> Chip::Get(std::string_view fact) const {
  const Fact* found = Find(fact);
  if (found == nullptr || found->provenance == Provenance::kUnknown) return std::nullopt;
  return found->value;
}

bool Chip::Has(std::string_view feature) const { return std::ranges::find(features, feature) != features.end(); }

namespace {

bool IsOwnReading(const Fact& fact) {
  return fact.provenance == Provenance::kMeasured || fact.provenance == Provenance::kDerived;
}

const Fact* MarkedAs(const Chip& chip, Use use) {
  const auto found = std::ranges::find(chip.facts, use, &Fact::use);
  return found == chip.facts.end() ? nullptr : &*found;
}

}  // namespace

const Fact* Chip::Bandwidth() const {
  if (const Fact* marked = MarkedAs(*this, Use::kBandwidth)) return marked;
  const Fact* read = Find("read_bandwidth_gb_s");
  return read != nullptr && IsOwnReading(*read) ? read : nullptr;
}

const Fact* Chip::Peak() const {
  if (const Fact* marked = MarkedAs(*this, Use::kPeak)) return marked;
  const Fact* fastest = nullptr;
  for (const std::string_view path : {"peak_flop_s", "dot_i8_flop_s", "fma_f32_flop_s"}) {
    const Fact* fact = Find(path);
    if (fact == nullptr || !IsOwnReading(*fact)) continue;
    if (fastest == nullptr || fact->value > fastest->value) fastest = fact;
  }
  return fastest;
}

}  // namespace boltbeam::chip
