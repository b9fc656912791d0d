// Ways to choose which candidates are worth a place among the few that are timed: the search's own, and those that it
// is compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "search/predict.h"

namespace boltbeam::search {

/// Times of points in one session, comparable with each other: the smaller the better. NaN: it could not be timed.
using TimePoints = std::function<Result<std::vector<double>>(const std::vector<kernel::GemvGeometry>&)>;

/// The fastest by prediction of each width of registers (lanes); then those that
/// differ in more than where their loads and prefetches stand, as far as they are foretold to be within `within` of the
/// fastest; then the rest by prediction.
std::vector<kernel::GemvGeometry> PredictedFirst(const Foresight& foresight, std::size_t count, double within = 1.3);

/// Legal points one knob away from a point, those knobs first of which no instruction count tells anything.
std::vector<kernel::GemvGeometry> Neighbours(const kernel::GemvGeometry& point,
                                             std::span<const kernel::GemvGeometry> legal, std::size_t count);

/// `count` points by lot.
std::vector<kernel::GemvGeometry> AtRandom(std::span<const kernel::GemvGeometry> legal, std::size_t count,
                                           std::uint64_t seed);
/// The first `count` in the order of the hash of their names.
std::vector<kernel::GemvGeometry> ByHash(std::span<const kernel::GemvGeometry> legal, std::size_t count);

/// A walk with a beam of `width` points from `start`: all are timed that are one knob away from a point of the beam,
/// until `count` were timed or nothing gets better. Gives every point that was timed, in the order of their times.
Result<std::vector<kernel::GemvGeometry>> BeamWalk(std::span<const kernel::GemvGeometry> legal,
                                                   const kernel::GemvGeometry& start, std::size_t width,
                                                   std::size_t count, const TimePoints& time);

}  // namespace boltbeam::search
