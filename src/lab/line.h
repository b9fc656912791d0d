// The lab's line: seconds per token = fixed + bytes / bandwidth, by least squares, and what follows from it.
//
// docs/lab.md says what each number means. Everything here is a pure function of points.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "lab/variance.h"
#include "measure/statistics.h"

namespace boltbeam::lab {

struct Point {
  double bytes = 0;    // that a token reads
  double seconds = 0;  // that it takes
};

/// How the errors of the points are taken to be: all alike, as in the lab, or each in proportion to its time.
enum class Noise { kConstant, kRelative };

class Line {
 public:
  /// Ordinary least squares for kConstant; weighted by the fitted times for kRelative. kLabLine when there are fewer
  /// than two points, all of one size, or when larger models are not slower.
  static Result<Line> Fit(std::span<const Point> points, Noise noise = Noise::kConstant);

  [[nodiscard]] double fixed_s() const { return fixed_s_; }
  [[nodiscard]] double bandwidth_bytes_s() const { return 1 / slope_; }
  [[nodiscard]] std::size_t points() const { return points_; }
  /// Standard deviation of a point about the line: in seconds, or of kRelative as a part of its time. 0 without a
  /// degree of freedom.
  [[nodiscard]] double sigma() const { return sigma_; }
  [[nodiscard]] double SecondsAt(double bytes) const { return fixed_s_ + bytes * slope_; }

  /// Whether intervals can be given at all: at least three points.
  [[nodiscard]] bool HasIntervals() const { return points_ > 2; }
  /// Of the fixed cost, in seconds; without intervals its ends are infinite.
  [[nodiscard]] measure::Interval Fixed(double confidence) const;
  /// In bytes per second; its upper end is infinite when the slope may be zero.
  [[nodiscard]] measure::Interval Bandwidth(double confidence) const;
  /// Of one further model's time, its own scatter included, in seconds.
  [[nodiscard]] measure::Interval Predict(double bytes, double confidence) const;
  /// Of that model's error, in seconds squared; and of the slope's, as a part of the slope.
  [[nodiscard]] Variance PredictVariance(double bytes) const;
  [[nodiscard]] Variance SlopeVariance() const;
  /// How much point i pulls the line to itself: 0 to 1, their sum is 2.
  [[nodiscard]] const std::vector<double>& leverage() const { return leverage_; }

 private:
  [[nodiscard]] double Quantile(double confidence) const;

  double fixed_s_ = 0, slope_ = 0, sigma_ = 0;
  double variance_[3] = {};  // of fixed, of slope, of both together; per unit of sigma squared
  std::size_t points_ = 0;
  Noise noise_ = Noise::kConstant;
  std::vector<double> leverage_;
};

/// A line that outliers do not move (Theil, 1950; Sen, 1968): the median of the slopes of all pairs, then the median of
/// what is left. kLabLine as above.
struct RobustLine {
  double fixed_s = 0;
  double bandwidth_bytes_s = 0;
};
Result<RobustLine> FitRobust(std::span<const Point> points);

/// One point foretold by the line through all others.
struct LeftOut {
  measure::Interval seconds;     // foretold
  double error_s = 0;            // standard error of the forecast
  double miss_s = 0;             // measured less foretold
  double bandwidth_bytes_s = 0;  // of the line without it
  bool is_inside = false;
};
/// Together the intervals hold all points with that confidence or more (Bonferroni): they are looked at together, and
/// of seven with 95 % each one would miss in three ladders of ten. nullopt where the others give no line or no
/// interval.
std::vector<std::optional<LeftOut>> LeaveOneOut(std::span<const Point> points, double confidence,
                                                Noise noise = Noise::kConstant);

/// The chance that a point of the line would lie as far off it as each does: a two-sided t-test of the residual by the
/// line through all others, times the number of points. 1 with fewer than four points.
std::vector<double> OffTheLine(std::span<const Point> points, Noise noise = Noise::kConstant);

}  // namespace boltbeam::lab
