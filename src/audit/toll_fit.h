// How kernels lose time against their floors: a toll for every launch, or a share of every byte.
//
//   excess of a launch = toll + rate * floor of a launch
//
// A toll is the start and the end of a kernel, when too few reads are under way: it does not grow with the table, so
// fewer and larger kernels lower it. A rate is a kernel that keeps too little in flight all the way through: more
// independent reads lower it (docs/formulas.md, "Toll or rate").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace boltbeam::audit {

/// All launches of one table's kernel in a token.
struct Launches {
  std::string name;
  double count = 0;   // launches in a token
  double bytes = 0;   // that one launch must read
  double now_ns = 0;  // of one launch
};

struct LaunchLoss {
  std::string name;
  double count = 0, bytes = 0;
  double floor_ns = 0, now_ns = 0, excess_ns = 0;  // of one launch
  double share_of_rate = 0;                        // of the memory's: floor / now
  bool cached = false;  // faster than the memory: stays in a cache, and is no part of the fit
};

enum class Loss : std::uint8_t {
  kNone,  // within the band of the floor, all together
  kToll,  // at least two thirds of the excess is paid per launch
  kRate,  // at least two thirds grows with the bytes
  kMixed,
  kUnknown,  // tables of one size only: the two can't be told apart
};
std::string_view LossName(Loss loss);

struct TollFit {
  Loss loss = Loss::kUnknown;
  double toll_ns = 0;     // of a launch
  double rate = 0;        // of the floor: 0.05 is 5 % of the bytes
  double excess_ns = 0;   // of a token, cached tables left out
  double toll_share = 0;  // of what the fit explains, paid per launch
  double misfit = 0;      // mean distance of an excess from the fit, as a share of the mean excess
  std::vector<LaunchLoss> launches;
};

/// Weighted least squares of relative excess, each table weighing as much as its floor, neither term below 0.
/// gb_s: what the memory delivers. band: relative, what can't be told apart. cache_bytes: of the last-level cache;
/// 0: unknown, then any table that is faster than the memory counts as cached.
TollFit FitToll(std::span<const Launches> launches, double gb_s, double band = 0.02, double cache_bytes = 0);

/// "toll per launch: 2.03 µs of 2.16 µs; ..." in one sentence.
std::string DescribeToll(const TollFit& fit);

}  // namespace boltbeam::audit
