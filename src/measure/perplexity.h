// How well a model predicts a text, and how far its predictions are from another program's.
//
// As llama-perplexity does it: the text is cut into chunks of `context` tokens, each computed from an empty context;
// the second half of a chunk is scored. docs/perplexity.md defines every figure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "measure/logits_file.h"

namespace boltbeam::measure {

/// A position at which our most probable token is not the base's.
struct Miss {
  std::uint64_t chunk = 0, position = 0;       // the predicted token is the chunk's token position + 1
  std::int32_t base_token = 0, our_token = 0;  // each one's most probable token
  std::uint64_t rank = 0;  // of base_token in our order: 1 + the tokens to which we give a larger logit
  double gap = 0;          // our log-probability of our_token less ours of base_token, >= 0
  double base_gap = 0;     // the base's log-probability of base_token less its own of our_token, >= 0
  double kl = 0;           // of this position
};

/// One scored position.
struct PositionScore {
  double negative_log = 0;  // -log p(next token)
  double base_negative_log = 0;
  double kl = 0;  // sum of p_base (log p_base - log p_ours) over tokens with log p_base > -16
  std::optional<Miss> miss;
};

/// kLogits when the logits are not finite numbers. `base` null: only negative_log is set.
Result<PositionScore> ScorePosition(std::span<const float> logits, std::int32_t next, const LogitsRow* base);

struct PerplexityRequest {
  std::vector<std::int32_t> tokens;  // of the whole text; with a base those of its file
  std::string text_name = "text";    // in errors
  std::uint32_t context = 512;       // tokens of a chunk; with a base that of its file
  std::uint64_t max_chunks = 0;      // 0: all
  std::uint32_t vocabulary = 0;      // logits of a token
  std::optional<std::int32_t> bos;   // takes the place of each chunk's first token
  bool token_by_token = false;       // through Session::Decode, the plan that is timed
  std::uint32_t batch = 64;          // otherwise tokens given to Session::Prompt at once
  LogitsReader* base = nullptr;
  std::string save_base;                                                  // writes our log-probabilities
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // tokens
  std::function<bool()> cancelled;
};

struct PerplexityResult {
  std::uint64_t chunks = 0, tokens = 0;  // tokens: scored positions
  double perplexity = 0, perplexity_error = 0;
  bool has_base = false;
  double base_perplexity = 0;
  double kl_mean = 0, kl_mean_error = 0, kl_median = 0, kl_p99 = 0, kl_max = 0;
  double top1_agreement = 0;  // share of positions, 0 to 1
  std::vector<Miss> misses;
};

/// The session is emptied before each chunk. kTextTooShort, kLogitsFile, kLogits, kInterrupted.
Result<PerplexityResult> MeasurePerplexity(engine::Session& session, const PerplexityRequest& request);

}  // namespace boltbeam::measure
