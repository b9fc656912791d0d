#include "search/strategies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "base/hash.h"
#include "kernel/knobs.h"
#include "search/candidate.h"

namespace boltbeam::search {
namespace {

using kernel::GemvGeometry;

/// How many knobs two points differ in.
std::size_t Distance(const GemvGeometry& a, const GemvGeometry& b) {
  const auto knobs = kernel::GemvKnobs();
  return static_cast<std::size_t>(
      std::ranges::count_if(knobs, [&](const kernel::Knob& knob) { return knob.get(a) != knob.get(b); }));
}

}  // namespace

std::vector<GemvGeometry> PredictedFirst(const Foresight& foresight, std::size_t count, double within) {
  std::vector<GemvGeometry> chosen, coarse;
  // Nothing changes a kernel as much as the width of its registers, and about that a prediction may be wrong: the first
  // of each width has a place before the second of any.
  constexpr double kWithinOfWidths = 1.6;
  for (const Prediction& prediction : foresight.survivors) {
    if (2 * chosen.size() >= count || prediction.ns > kWithinOfWidths * foresight.survivors.front().ns) break;
    if (Contains(chosen, prediction.geometry.lanes, &GemvGeometry::lanes)) continue;
    coarse.push_back(prediction.geometry.Coarse());
    chosen.push_back(prediction.geometry);
  }
  for (const Prediction& prediction : foresight.survivors) {
    if (chosen.size() == count || prediction.ns > within * foresight.survivors.front().ns) break;
    const GemvGeometry code = prediction.geometry.Coarse();
    if (Contains(coarse, code)) continue;
    coarse.push_back(code);
    chosen.push_back(prediction.geometry);
  }
  for (const Prediction& prediction : foresight.survivors) {
    if (chosen.size() == count) break;
    if (!Contains(chosen, prediction.geometry)) chosen.push_back(prediction.geometry);
  }
  return chosen;
}

std::vector<GemvGeometry> Neighbours(const GemvGeometry& point, std::span<const GemvGeometry> legal,
                                     std::size_t count) {
  std::vector<std::pair<int, GemvGeometry>> ranked;
  for (const GemvGeometry& other : legal) {
    if (Distance(point, other) != 1) continue;
    const bool is_fine = point.Coarse() == other.Coarse();
    // A nearer prefetch than the farthest, and no hint, are tried before the others.
    const int rank = !is_fine                                       ? 3
                     : other.ordered != point.ordered               ? 0
                     : other.prefetch_bytes != point.prefetch_bytes ? 1
                                                                    : 2;
    ranked.emplace_back(rank, other);
  }
  // Of each kind one, then the second of each kind, and so on.
  std::map<int, int> taken;
  std::vector<std::pair<std::pair<int, int>, GemvGeometry>> turns;
  for (const auto& [rank, other] : ranked) turns.push_back({{taken[rank]++, rank}, other});
  std::ranges::stable_sort(turns, {}, [](const auto& turn) { return turn.first; });
  std::vector<GemvGeometry> chosen;
  for (const auto& [turn, other] : turns) {
    if (chosen.size() < count) chosen.push_back(other);
  }
  return chosen;
}

std::vector<GemvGeometry> AtRandom(std::span<const GemvGeometry> legal, std::size_t count, std::uint64_t seed) {
  std::vector<GemvGeometry> chosen;
  std::mt19937_64 random(seed);
  std::ranges::sample(legal, std::back_inserter(chosen), static_cast<std::ptrdiff_t>(count), random);
  return chosen;
}

std::vector<GemvGeometry> ByHash(std::span<const GemvGeometry> legal, std::size_t count) {
  std::vector<std::pair<std::string, GemvGeometry>> hashed;
  for (const GemvGeometry& point : legal) hashed.emplace_back(base::Sha256Hex(CandidateName(point)), point);
  std::ranges::sort(hashed, {}, [](const auto& one) { return one.first; });
  std::vector<GemvGeometry> chosen;
  for (const auto& [hash, point] : hashed) {
    if (chosen.size() < count) chosen.push_back(point);
  }
  return chosen;
}

Result<std::vector<GemvGeometry>> BeamWalk(std::span<const GemvGeometry> legal, const GemvGeometry& start,
                                           std::size_t width, std::size_t count, const TimePoints& time) {
  std::vector<std::pair<double, GemvGeometry>> timed;
  std::vector<GemvGeometry> seen, beam{start}, wanted{start};
  double best = std::numeric_limits<double>::infinity();
  while (!wanted.empty()) {
    BOLTBEAM_ASSIGN(const std::vector<double> times, time(wanted));
    seen.insert(seen.end(), wanted.begin(), wanted.end());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!std::isnan(times[i])) timed.emplace_back(times[i], wanted[i]);
    }
    std::ranges::stable_sort(timed, {}, [](const auto& one) { return one.first; });
    if (timed.empty() || timed.front().first >= best) break;
    best = timed.front().first;
    beam.clear();
    for (std::size_t i = 0; i < std::min(width, timed.size()); ++i) beam.push_back(timed[i].second);
    wanted.clear();
    for (const GemvGeometry& point : beam) {
      for (const GemvGeometry& other : legal) {
        const bool has_room = seen.size() + wanted.size() < count;
        if (has_room && Distance(point, other) == 1 && !Contains(seen, other) && !Contains(wanted, other)) {
          wanted.push_back(other);
        }
      }
    }
  }
  std::vector<GemvGeometry> order;
  for (const auto& [ns, point] : timed) order.push_back(point);
  return order;
}

}  // namespace boltbeam::search
