#include "search/attention_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chip/rates.h"
#include "kernel/families/attention.h"
#include "kernel/space.h"
#include "roofline/formulas.h"

namespace boltbeam::search {
namespace {

constexpr double kSpread = 0.3;            // of an interval that nothing was fitted to
constexpr double kOperationsPerValue = 3;  // of a key or value: widen, multiply-add, and its part of the softmax
constexpr double kCallNs = 60;             // of a chunk: its loops' beginnings and ends

std::string Missing(const char* what) { return fmt::format("{} is not declared", what); }

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
  const kernel::SpaceFacts facts = kernel::SpaceFactsOf(chip);
  const std::vector<SpaceKnob> knobs = {
      {"lanes", "32-bit lanes of the vector registers used", {4, 8, 16}, {}},
      {"chunk", "positions that are scored together", {16, 32, 64, 128, 256, 512, 1024}, {}},
      {"dot", "the instruction that scores keys in codes", {0, 1}, {"maddhalves", "dot4"}},
  };
  const auto group = static_cast<std::int64_t>(part.heads / part.kv_heads);
  const std::int64_t head_dim = part.head_dim;
  kernel::CacheElement value;
  if (part.has_value_codes) value = {kernel::Memory::kU8, part.head_dim};
  const bool has_codes = part.has_key_codes;
  const std::vector<SpaceRule> rules = {
      {"missing-fact:instruction-sets",
       {"lanes"},
       {},
       [facts](const Setting&) { return facts.lanes ? "" : Missing("the width of vector registers"); },
       {}},
      {"instruction",
       {"lanes"},
       {},
       [facts](const Setting& s) {
         return s["lanes"] <= facts.lanes.value_or(0)
                    ? ""
                    : fmt::format("registers of {} bits, {} there", 32 * s["lanes"], 32 * facts.lanes.value_or(0));
       },
       {}},
      {"divisibility",
       {"lanes"},
       {},
       [head_dim](const Setting& s) {
         return head_dim % s["lanes"] == 0 ? "" : fmt::format("heads of {} in vectors of {}", head_dim, s["lanes"]);
       },
       {}},
      {"over-cache",
       {"chunk"},
       {"l1d_bytes"},
       [group](const Setting& s) {
         const std::int64_t bytes = group * s["chunk"] * 4;
         return static_cast<double>(bytes) <= s.Fact("l1d_bytes") / 2
                    ? ""
                    : fmt::format("{} bytes of scores, half of the cache is {:.0f}", bytes, s.Fact("l1d_bytes") / 2);
       },
       {}},
      {"overflow",
       {"chunk"},
       {},
       [value](const Setting& s) {
         kernel::AttentionShape shape;
         shape.chunk = static_cast<std::uint32_t>(s["chunk"]);
         shape.value = value;
         return kernel::SumOverflow(shape);
       },
       {}},
      {"no-meaning",
       {"dot"},
       {},
       [has_codes](const Setting& s) { return s["dot"] == 1 && !has_codes ? "keys are no codes" : ""; },
       {}},
      {"instruction",
       {"dot"},
       {},
       [facts](const Setting& s) {
         return s["dot"] == 1 && !facts.has_dot4.value_or(false) ? "no four-way dot product of bytes there" : "";
       },
       {}},
  };
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
