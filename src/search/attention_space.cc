#include "search/attention_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chip/rates.h"
#include "kernel/attention_space.h"
#include "roofline/formulas.h"

namespace boltbeam::search {
namespace {

constexpr double kSpread = 0.3;            // of an interval that nothing was fitted to
constexpr double kOperationsPerValue = 3;  // of a key or value: widen, multiply-add, and its part of the softmax
constexpr double kCallNs = 60;             // of a chunk: its loops' beginnings and ends

/// A rule for each knob and each refusal that the kernel's legality may have against it: every branch is turned away
/// under the refusal's name.
std::vector<SpaceRule> LegalityRules(const AttentionPart& part, const kernel::SpaceFacts& facts) {
  using kernel::Refusal;
  kernel::AttentionShape shape;
  shape.head_dim = part.head_dim;
  const kernel::CacheElement codes{kernel::Memory::kU8, part.head_dim};
  if (part.has_key_codes) shape.key = codes;
  if (part.has_value_codes) shape.value = codes;
  std::vector<SpaceRule> rules;
  for (const std::string_view knob : {"lanes", "chunk", "dot"}) {
    for (const Refusal refusal : {Refusal::kMissingFact, Refusal::kInstruction, Refusal::kDivisibility,
                                  Refusal::kOverflow, Refusal::kNoMeaning}) {
      const auto evidence = [=](const Setting& setting) -> std::string {
        kernel::AttentionShape turned = shape;
        if (knob == "lanes") turned.lanes = static_cast<std::uint16_t>(setting["lanes"]);
        if (knob == "chunk") turned.chunk = static_cast<std::uint32_t>(setting["chunk"]);
        if (knob == "dot") turned.dot = setting["dot"] == 1 ? kernel::Dot::kDot4 : kernel::Dot::kMaddHalves;
        for (const kernel::AttentionReason& reason : kernel::AttentionRefusals(turned, facts)) {
          if (reason.knob == knob && reason.refusal == refusal) return reason.evidence;
        }
        return {};
      };
      rules.push_back({std::string(kernel::RefusalName(refusal)), {std::string(knob)}, {}, evidence, {}});
    }
  }
  return rules;
}

}  // namespace

AttentionPart AttentionPartOf(const model::Model& model, const model::CacheFormats& cache, std::uint64_t depth) {
  const model::HyperParameters& hyper = model.hyper();
  const auto bytes = [&](const formats::Format& format) { return format.BitsPerWeight() / 8 * hyper.head_dim; };
  AttentionPart part;
  part.heads = hyper.heads;
  part.kv_heads = hyper.kv_heads;
  part.head_dim = hyper.head_dim;
  part.layers = hyper.layers;
  part.depth = depth;
  part.key_bytes = bytes(*cache.keys);
  part.value_bytes = bytes(*cache.values);
  part.has_key_codes = !(cache.keys->layout && cache.keys->layout->encoding);
  part.has_value_codes = !(cache.values->layout && cache.values->layout->encoding);
  return part;
}

KnobSpace AttentionSpace(const AttentionPart& part, const chip::Chip& chip) {
  const std::vector<SpaceKnob> knobs = {
      {"lanes", "32-bit lanes of the vector registers used", {4, 8, 16}, {}},
      {"chunk", "positions that are scored together", {16, 32, 64, 128, 256, 512, 1024}, {}},
      {"dot", "the instruction that scores keys in codes", {0, 1}, {"maddhalves", "dot4"}},
  };
  std::vector<SpaceRule> rules = LegalityRules(part, kernel::SpaceFactsOf(chip));
  const auto group = static_cast<std::int64_t>(part.heads / part.kv_heads);
  rules.push_back({"over-cache",
                   {"chunk"},
                   {"l1d_bytes"},
                   [group](const Setting& s) {
                     const std::int64_t bytes = group * s["chunk"] * 4;
                     const double half = s.Fact("l1d_bytes") / 2;
                     return static_cast<double>(bytes) <= half
                                ? ""
                                : fmt::format("{} bytes of scores, half of the cache is {:.0f}", bytes, half);
                   },
                   {}});
  return BuildSpace(knobs, rules, chip);
}

Result<AttentionForesight> PredictAttention(const AttentionPart& part, const KnobSpace& space, const chip::Chip& chip,
                                            std::uint32_t threads) {
  const chip::Fact* bandwidth = chip.Bandwidth();
  if (bandwidth == nullptr) {
    return Fail(Code::kBoundNoBandwidth, chip.name, "no memory bandwidth is known", "a measurement (`chip measure`)");
  }
  AttentionForesight foresight;
  foresight.floor_ns = roofline::MemoryFloorNs(part.bytes(), bandwidth->value);
  const double issue = chip::RateOn(chip, "vector_instructions_s", threads).value_or(0) / threads;  // of a thread
  for (std::size_t i = 0; i < space.points.size(); ++i) {
    const auto chunk = static_cast<double>(space.ValueOf(space.points[i], "chunk"));
    const auto lanes = static_cast<double>(space.ValueOf(space.points[i], "lanes"));
    const double chunks = std::ceil(static_cast<double>(part.depth) / chunk);
    const double items = chunks * part.kv_heads;
    // The thread with most chunks sets the time: with few chunks others wait for it.
    const double busiest = std::ceil(items / threads) / items;
    const double least_busy = std::min<double>(threads, items);
    const double memory = foresight.floor_ns * threads / least_busy * (busiest * least_busy);
    const double values = static_cast<double>(part.heads) * static_cast<double>(part.depth) * 2 * part.head_dim;
    const double compute = issue > 0 ? values * kOperationsPerValue / lanes / issue * 1e9 * busiest : 0;
    const double combine = chunks * part.heads * part.head_dim / lanes * 2 / std::max(issue, 1e9) * 1e9 / threads;
    AttentionPrediction prediction;
    prediction.point = i;
    prediction.ns = std::max(memory, compute) + items * busiest * kCallNs + combine;
    prediction.low_ns = prediction.ns / (1 + kSpread);
    prediction.high_ns = prediction.ns * (1 + kSpread);
    foresight.survivors.push_back(prediction);
  }
  std::ranges::stable_sort(foresight.survivors, {}, &AttentionPrediction::ns);
  return foresight;
}

}  // namespace boltbeam::search
