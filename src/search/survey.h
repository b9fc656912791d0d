// A model's parts on a chip, up to the point where something would have to be timed: what is proposed, what is turned
// away and why, and what the rest is foretold to take. It needs no chip at hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "chip/facts.h"
#include "model/model.h"
#include "search/flash_tile.h"
#include "search/fusion.h"
#include "search/predict.h"
#include "search/propose.h"
#include "search/recorded.h"

namespace boltbeam::search {

struct SurveyOptions {
  bool predict = true;
  std::uint32_t threads = 1;     // of a CPU
  std::uint64_t depth = 512;     // positions cached, for attention
  double smallest_claim = 0.01;  // of the token: what promises less is closed
  Coefficients coefficients;
  IsRefuted is_refuted;
};

struct Foretold {
  std::string knobs;
  double ns = 0, low_ns = 0, high_ns = 0;  // of one call
};

/// One family's candidates for one part.
struct FamilySurvey {
  std::string role, format, shape, family;
  std::string table;        // of a product: what geometry choices call it
  std::uint32_t calls = 0;  // a token's
  std::uint64_t free_product = 0, legal = 0, refuted = 0, predicted = 0;
  std::vector<Rejected> rejected;       // by the chip's facts
  std::vector<Rejected> closed;         // by what was foretold
  std::optional<Foretold> best, usual;  // usual: what runs when nobody has searched
  double floor_ns = 0;                  // of one call; 0: nothing was foretold
  std::vector<std::string> unknown;     // facts without which a term is left out
  std::optional<double> gain;           // of the token, foretold: 0.02 is 2 % less time
  std::optional<double> gain_bound;     // at most: the default at its slowest, the best at the floor
  std::string verdict;                  // why it is closed, or empty

  [[nodiscard]] std::uint64_t RejectedPoints() const;
};

struct Survey {
  std::string chip;
  bool is_cpu = false;
  std::vector<Proposal> proposals;    // of a CPU's products, in the order of `families`
  std::vector<Foresight> foresights;  // of them; empty without prediction
  std::vector<FamilySurvey> families;
  std::vector<FusionIdea> fusions;
  std::vector<RecordedNote> recorded;
  double token_ns = 0;     // foretold with what runs when nobody has searched: products and attention
  double token_log10 = 0;  // of the token's space: the product of its kernels'
  double beam_log10 = 0;   // of the sequences that a fixed list of 334 changes makes at the depth of six knobs
};

/// kBoundNoBandwidth when a prediction is asked for and no rate of the memory is known.
Result<Survey> SurveyModel(const model::Model& model, const chip::Chip& chip, const SurveyOptions& options);

}  // namespace boltbeam::search
