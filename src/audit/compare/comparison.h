// Two accounts of a token side by side: region by region, the terms between and around the regions, and the residual
// that neither explains. Differences are ours - theirs: negative where ours is faster.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/statistics.h"

namespace boltbeam::audit {

struct Region {
  std::string region;  // "ffn_down Q4_K"
  double ours_ns = 0, theirs_ns = 0;
  std::optional<double> ours_bytes, theirs_bytes;      // moved by the region's tables in a token
  std::optional<double> ours_gain_ns, theirs_gain_ns;  // what each would save at the other's share of its own floor
  bool in_ours = true, in_theirs = true;

  [[nodiscard]] double DifferenceNs() const { return ours_ns - theirs_ns; }
};

/// What is no region: gaps, host time, unaccounted; threads and repacking.
struct Term {
  std::string name;
  std::optional<double> ours_ns, theirs_ns;
  std::string note;
  std::optional<double> budget_ns = {};  // of a check: what it may be at most, either way

  [[nodiscard]] bool IsWithinBudget() const { return !budget_ns || std::abs(DifferenceNs()) <= *budget_ns; }
  [[nodiscard]] double DifferenceNs() const { return ours_ns.value_or(0) - theirs_ns.value_or(0); }
};

/// Whole tokens of both, measured in turns.
struct PairedTokens {
  std::string basis;  // "one thread each, its weights not repacked"
  std::size_t pairs = 0, ours_faster = 0;
  // Pairs in which one of the programs was kept from computing: left out, or among `pairs` where too few others are
  // left.
  std::size_t left_out = 0, disturbed = 0;
  measure::Interval ratio;  // B's time over A's
};

struct Comparison {
  std::string ours, theirs;  // what they are
  std::string basis;         // how both tokens ran: "one thread, no repacking"
  std::uint64_t depth = 0;
  double ours_token_ns = 0, theirs_token_ns = 0;  // whole tokens on that basis
  std::vector<PairedTokens> paired;               // of each basis on which they were interleaved
  std::vector<Region> regions;
  std::vector<Term> terms;   // on that basis: with the regions they make the difference of the tokens
  std::vector<Term> beside;  // other bases: threads, repacking, the fastest of each
  // Of their token, where it was timed part by part: 1 is all of it.
  std::optional<double> parts_alone, parts_and_between;
  std::vector<std::string> notes;

  [[nodiscard]] double DifferenceNs() const { return ours_token_ns - theirs_token_ns; }
  /// Difference of the tokens less that of all regions and terms.
  [[nodiscard]] double ResidualNs() const;
  /// In plain words: which program is faster, where each of them wins, and what is left.
  [[nodiscard]] std::string Sentence() const;
};

}  // namespace boltbeam::audit
