#include "kernel/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace boltbeam::kernel {
namespace {

/// get and set of a member that holds a number, a flag or an enumeration.
template <auto Member>
std::uint32_t Get(const GemvGeometry& geometry) {
  return static_cast<std::uint32_t>(geometry.*Member);
}
template <auto Member>
void Set(GemvGeometry& geometry, std::uint32_t value) {
  using Kind = std::remove_reference_t<decltype(geometry.*Member)>;
  geometry.*Member = static_cast<Kind>(value);
}

template <auto Member>
Knob Make(std::string_view name, std::string_view what, std::vector<std::uint32_t> values,
          std::vector<std::string_view> words = {}, bool changes_table = false) {
  return {name, what, std::move(values), std::move(words), Get<Member>, Set<Member>, changes_table};
}

/// The largest number that every numeric member holds.
constexpr std::uint32_t kMostValue = std::numeric_limits<std::uint16_t>::max();

bool ParseValue(const Knob& knob, std::string_view text, std::uint32_t& value) {
  if (!knob.words.empty()) {
    const auto word = std::ranges::find(knob.words, text);
    value = static_cast<std::uint32_t>(word - knob.words.begin());
    return word != knob.words.end();
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value <= kMostValue;
}

std::string Values(const Knob& knob) {
  std::string text;
  for (const std::uint32_t value : knob.values) text += (text.empty() ? "" : ", ") + knob.ValueText(value);
  return text;
}

}  // namespace

std::string Knob::ValueText(std::uint32_t value) const {
  return words.empty() ? fmt::format("{}", value) : std::string(words.at(value));
}

std::span<const Knob> GemvKnobs() {
  static const std::array kKnobs = {
      Make<&GemvGeometry::lanes>("lanes", "32-bit lanes of the vector registers used", {4, 8, 16}, {}, true),
      Make<&GemvGeometry::scales>("scales", "as packed as in the file, or written out at load", {0, 1, 2},
                                  {"packed", "bytes", "words"}, true),
      Make<&GemvGeometry::vectors>("vectors", "registers of rows side by side", {1, 2, 4}, {}, true),
      Make<&GemvGeometry::dot>("dot", "the instruction that multiplies, and so the activations' format",
                               {0, 1, 2, 3, 4}, {"dot4", "dot4signed", "maddbytes", "maddhalves", "fma"}),
      Make<&GemvGeometry::unroll>("unroll", "blocks (of float formats: elements) a turn", {1, 2, 4, 8}),
      Make<&GemvGeometry::chains>("chains", "accumulators of one dot product (of float formats: of one sum)",
                                  {1, 2, 4}),
      Make<&GemvGeometry::depth>("depth", "byte pairs added in 16 bits before they are widened", {1, 2, 4, 8}),
      Make<&GemvGeometry::ordered>("order", "weights loaded by address, or as the compiler likes", {0, 1},
                                   {"free", "ascending"}),
      Make<&GemvGeometry::prefetch_bytes>("prefetch", "bytes ahead that are fetched; 0: none",
                                          {0, 256, 512, 1024, 2048, 4096, 8192, 16384}),
      Make<&GemvGeometry::prefetch_once>("hint", "fetched into every cache, or for one use", {0, 1}, {"near", "once"}),
      Make<&GemvGeometry::prefetch_every>("every", "one line of so many is fetched ahead", {1, 2, 4}),
  };
  return kKnobs;
}

std::string GeometryText(const GemvGeometry& geometry) {
  std::string text;
  for (const Knob& knob : GemvKnobs()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", knob.name, knob.ValueText(knob.get(geometry)));
  }
  return text;
}

Result<GemvGeometry> ParseGeometry(std::string_view text, const GemvGeometry& base) {
  GemvGeometry geometry = base;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const auto knobs = GemvKnobs();
    const auto knob = std::ranges::find(knobs, pair.substr(0, equals), &Knob::name);
    if (knob == knobs.end()) {
      std::string names;
      for (const Knob& one : knobs) names += (names.empty() ? "" : ", ") + std::string(one.name);
      return Fail(Code::kUsage, "geometry", fmt::format("no knob '{}'", pair.substr(0, equals)),
                  "KNOB=VALUE of " + names);
    }
    std::uint32_t value = 0;
    if (equals == pair.size() || !ParseValue(*knob, pair.substr(equals + 1), value)) {
      return Fail(Code::kUsage, "geometry", std::string(pair),
                  fmt::format("{}=VALUE, such as {}", knob->name, Values(*knob)));
    }
    knob->set(geometry, value);
  }
  return geometry;
}

}  // namespace boltbeam::kernel
