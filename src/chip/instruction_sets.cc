#include "chip/instruction_sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace boltbeam::chip {
namespace {

using Names = std::string_view;

constexpr Names kAvx2Needs[] = {"avx2", "fma", "f16c"};
constexpr Names kAvx2[] = {"pni", "ssse3", "sse4_1", "sse4_2", "popcnt", "avx", "f16c", "fma", "avx2", "bmi1", "bmi2"};
constexpr Names kAvx512Needs[] = {"avx512f", "avx512bw", "avx512vl", "avx512dq"};
constexpr Names kAvx512[] = {"avx512f", "avx512cd", "avx512dq", "avx512bw", "avx512vl", "avx512vbmi"};
constexpr Names kVnni[] = {"avx_vnni", "avx512_vnni"};
constexpr Names kNeon[] = {"asimd", "asimdhp"};
constexpr Names kNeonNeeds[] = {"asimd"};
constexpr Names kDotprod[] = {"asimddp"};
constexpr Names kI8mm[] = {"i8mm"};

constexpr InstructionSet kSets[] = {
    {"plain", {}, {}, {}},
    {"avx2", kAvx2Needs, {}, kAvx2},
    {"avx512", kAvx512Needs, {}, kAvx512},
    {"vnni", kAvx2Needs, kVnni, kVnni},
    {"neon", kNeonNeeds, {}, kNeon},
    {"dotprod", kDotprod, {}, kDotprod},
    {"i8mm", kI8mm, {}, kI8mm},
};

bool Has(const Chip& chip, const InstructionSet& set) {
  const auto has = [&chip](std::string_view feature) { return chip.Has(feature); };
  return std::ranges::all_of(set.needs, has) && (set.any.empty() || std::ranges::any_of(set.any, has));
}

}  // namespace

std::span<const InstructionSet> InstructionSets() { return kSets; }

std::vector<std::string_view> InstructionSetsOf(const Chip& chip) {
  std::vector<std::string_view> names;
  for (const InstructionSet& set : kSets) {
    if (Has(chip, set)) names.push_back(set.name);
  }
  return names;
}

Result<void> HoldTo(Chip& chip, std::string_view set) {
  const std::vector<std::string_view> names = InstructionSetsOf(chip);
  if (std::ranges::find(names, set) == names.end()) {
    return Fail(Code::kUsage, "instruction set", std::string(set),
                fmt::format("one that {} has: {}", chip.name, fmt::join(names, ", ")));
  }
  const auto* const held = std::ranges::find(kSets, set, &InstructionSet::name);
  for (const InstructionSet& above : std::span(held + 1, std::end(kSets))) {
    std::erase_if(chip.features, [&](const std::string& feature) {
      return std::ranges::find(above.adds, feature) != above.adds.end();
    });
  }
  return {};
}

}  // namespace boltbeam::chip
