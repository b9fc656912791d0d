// The next token out of the logits: greedy, or drawn at random from those that the limits leave, the same for a seed.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "base/error.h"

namespace boltbeam::engine {

struct SamplerOptions {
  double temperature = 0;   // 0: the most probable token
  std::uint32_t top_k = 0;  // 0: no limit
  double top_p = 1;         // the smallest set of tokens with this probability together; 1: no limit
  double min_p = 0;         // at least this share of the most probable token's probability; 0: no limit
  std::uint64_t seed = 0;
};

class Sampler {
 public:
  /// kUsage when an option is outside its range.
  static Result<Sampler> Make(const SamplerOptions& options);

  /// Of equal logits the lowest id comes first. kLogits when one is not a number.
  Result<std::int32_t> Sample(std::span<const float> logits);

 private:
  struct Candidate {
    float logit = 0;
    std::int32_t id = 0;
    double weight = 0;  // exp((logit - largest) / temperature)
  };

  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}
  void TakeTopK(std::span<const float> logits);
  void TakeTopP();
  void TakeMinP();
  std::int32_t Draw();

  SamplerOptions options_;
  std::mt19937_64 random_;  // its sequence is fixed by the standard
  std::vector<Candidate> candidates_;
};

}  // namespace boltbeam::engine
