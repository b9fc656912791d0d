#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace boltbeam::engine {

Result<Sampler> Sampler::Make(const SamplerOptions& options) {
  const auto refuse = [](const char* name, double value, const char* range) {
    return Fail(Code::kUsage, name, fmt::format("{}", value), range);
  };
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    return refuse("temperature", options.temperature, "0 (greedy) or more");
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) return refuse("top-p", options.top_p, "above 0, up to 1 (no limit)");
  if (!(options.min_p >= 0 && options.min_p <= 1)) return refuse("min-p", options.min_p, "0 (no limit) to 1");
  return Sampler(options);
}

Result<std::int32_t> Sampler::Sample(std::span<const float> logits) {
  if (logits.empty()) return Fail(Code::kLogits, "logits", "none", "one for every token of the vocabulary");
  std::size_t best = 0;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (std::isnan(logits[id])) {
      return Fail(Code::kLogits, fmt::format("logit of token {}", id), "not a number",
                  "finite weights; the model file may be damaged");
    }
    if (logits[id] > logits[best]) best = id;
  }
  if (!std::isfinite(logits[best])) {
    return Fail(Code::kLogits, fmt::format("logit of token {}", best), fmt::format("{}", logits[best]),
                "finite weights; the model file may be damaged");
  }
  if (options_.temperature == 0) return static_cast<std::int32_t>(best);
  TakeTopK(logits);
  TakeTopP();
  TakeMinP();
  return Draw();
}

// The most probable first, and only as many of them in order as are asked for.
void Sampler::TakeTopK(std::span<const float> logits) {
  candidates_.resize(logits.size());
  for (std::size_t id = 0; id < logits.size(); ++id) candidates_[id] = {logits[id], static_cast<std::int32_t>(id)};
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  const std::size_t keep = options_.top_k == 0 ? logits.size() : std::min<std::size_t>(options_.top_k, logits.size());
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(keep), candidates_.end(),
                    before);
  candidates_.resize(keep);
}

// Both limits judge the model's own probabilities, before the temperature changes them.
void Sampler::TakeTopP() {
  const double largest = candidates_.front().logit;
  double total = 0;
  for (Candidate& candidate : candidates_) total += candidate.weight = std::exp(candidate.logit - largest);
  if (options_.top_p >= 1) return;
  double sum = 0;
  std::size_t keep = 0;
  while (keep < candidates_.size() && sum < options_.top_p * total) sum += candidates_[keep++].weight;
  candidates_.resize(keep);
}

void Sampler::TakeMinP() {
  if (options_.min_p <= 0) return;
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < options_.min_p; });
}

std::int32_t Sampler::Draw() {
  const double largest = candidates_.front().logit;
  double total = 0;
  for (Candidate& candidate : candidates_) {
    total += candidate.weight = std::exp((candidate.logit - largest) / options_.temperature);
  }
  // The library's distributions differ between implementations; 53 bits of the generator are the same everywhere.
  double left = std::ldexp(static_cast<double>(random_() >> 11U), -53) * total;
  for (const Candidate& candidate : candidates_) {
    left -= candidate.weight;
    if (left < 0) return candidate.id;
  }
  return candidates_.back().id;
}

}  // namespace boltbeam::engine
