#include "lab/line.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace boltbeam::lab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Weights of kRelative follow from fitted times, which follow from weights: this settles within a few rounds.
constexpr int kReweightings = 8;
// Sizes closer than this to one another, as a part of themselves, are one size.
constexpr double kOneSize = 1e-6;

std::unexpected<Error> NoLine(std::string found, std::string expected) {
  return Fail(Code::kLabLine, "the line", std::move(found), std::move(expected));
}

Result<void> CheckPoints(std::span<const Point> points) {
  if (points.size() < 2) {
    return NoLine(fmt::format("{} dense model{}", points.size(), points.size() == 1 ? "" : "s"),
                  "at least two, better four, of different sizes");
  }
  for (const Point& point : points) {
    const bool is_fine = std::isfinite(point.bytes) && std::isfinite(point.seconds) && point.bytes > 0;
    if (!is_fine || point.seconds <= 0) {
      return NoLine(fmt::format("{} bytes in {} s", point.bytes, point.seconds), "bytes and times above 0");
    }
  }
  const auto [least, most] = std::ranges::minmax(points, {}, &Point::bytes);
  if (most.bytes - least.bytes > kOneSize * most.bytes) return {};
  return NoLine(fmt::format("{} models of one size", points.size()),
                "models of different sizes: a fixed cost and a bandwidth can't be told apart otherwise");
}

Result<void> CheckSlope(double slope) {
  if (slope > 0) return {};
  return NoLine(fmt::format("larger models that are not slower ({:.3g} s per GB)", slope * 1e9),
                "a ladder whose times grow with its bytes; was another program busy, or a row mixed up?");
}

}  // namespace

Result<Line> Line::Fit(std::span<const Point> points, Noise noise) {
  BOLTBEAM_TRY(CheckPoints(points));
  const auto n = static_cast<Eigen::Index>(points.size());
  // In units of the largest size and time, so that the sums are well scaled.
  const double bytes = std::ranges::max(points, {}, &Point::bytes).bytes;
  const double seconds = std::ranges::max(points, {}, &Point::seconds).seconds;
  Eigen::MatrixX2d design(n, 2);
  Eigen::VectorXd time(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    design(i, 0) = 1;
    design(i, 1) = points[static_cast<std::size_t>(i)].bytes / bytes;
    time(i) = points[static_cast<std::size_t>(i)].seconds / seconds;
  }
  Eigen::VectorXd weight = Eigen::VectorXd::Ones(n);  // 1 / standard deviation, up to a factor
  Eigen::Vector2d solution;
  const int rounds = noise == Noise::kRelative ? kReweightings : 1;
  for (int round = 0; round < rounds; ++round) {
    if (noise == Noise::kRelative) {
      const Eigen::VectorXd expected = round == 0 ? time : Eigen::VectorXd(design * solution);
      // A fitted time near zero or below must not get all the weight.
      weight = expected.cwiseMax(0.1 * time).cwiseInverse();
    }
    solution = (weight.asDiagonal() * design).colPivHouseholderQr().solve(weight.cwiseProduct(time));
  }
  BOLTBEAM_TRY(CheckSlope(solution(1)));
  const Eigen::MatrixX2d weighted = weight.asDiagonal() * design;
  const Eigen::Matrix2d inverse = (weighted.transpose() * weighted).inverse();
  const Eigen::VectorXd residual = weight.cwiseProduct(time - design * solution);

  Line line;
  line.noise_ = noise;
  line.points_ = points.size();
  line.fixed_s_ = solution(0) * seconds;
  line.slope_ = solution(1) * seconds / bytes;
  if (n > 2) line.sigma_ = std::sqrt(residual.squaredNorm() / static_cast<double>(n - 2));
  // A residual of kRelative is a part of its time; one of kConstant is in units of `seconds`.
  const double unit = noise == Noise::kRelative ? 1 : seconds;
  line.sigma_ *= unit;
  const double per_sigma = seconds / unit;
  line.variance_[0] = inverse(0, 0) * per_sigma * per_sigma;
  line.variance_[1] = inverse(1, 1) * per_sigma * per_sigma / (bytes * bytes);
  line.variance_[2] = inverse(0, 1) * per_sigma * per_sigma / bytes;
  for (Eigen::Index i = 0; i < n; ++i) {
    line.leverage_.push_back((weighted.row(i) * inverse * weighted.row(i).transpose()).value());
  }
  return line;
}

double Line::Quantile(double confidence) const {
  if (!HasIntervals()) return kInfinity;
  const boost::math::students_t law(static_cast<double>(points_ - 2));
  return boost::math::quantile(law, (1 + confidence) / 2);
}

measure::Interval Line::Fixed(double confidence) const {
  if (!HasIntervals()) return {fixed_s_, -kInfinity, kInfinity};
  const double half = Quantile(confidence) * sigma_ * std::sqrt(variance_[0]);
  return {fixed_s_, fixed_s_ - half, fixed_s_ + half};
}

measure::Interval Line::Bandwidth(double confidence) const {
  if (!HasIntervals()) return {1 / slope_, 0, kInfinity};
  const double half = Quantile(confidence) * sigma_ * std::sqrt(variance_[1]);
  return {1 / slope_, 1 / (slope_ + half), half < slope_ ? 1 / (slope_ - half) : kInfinity};
}

measure::Interval Line::Predict(double bytes, double confidence) const {
  const double expected = SecondsAt(bytes);
  if (!HasIntervals()) return {expected, 0, kInfinity};
  const double half = Quantile(confidence) * std::sqrt(PredictVariance(bytes).value);
  return {expected, expected - half, expected + half};
}

Variance Line::PredictVariance(double bytes) const {
  const double expected = SecondsAt(bytes);
  const double of_line = variance_[0] + 2 * bytes * variance_[2] + bytes * bytes * variance_[1];
  const double of_model = noise_ == Noise::kRelative ? expected * expected : 1;
  return {sigma_ * sigma_ * (of_line + of_model), static_cast<double>(points_) - 2};
}

Variance Line::SlopeVariance() const {
  return {sigma_ * sigma_ * variance_[1] / (slope_ * slope_), static_cast<double>(points_) - 2};
}

Result<RobustLine> FitRobust(std::span<const Point> points) {
  BOLTBEAM_TRY(CheckPoints(points));
  std::vector<double> slopes, rest;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double bytes = points[i].bytes - points[j].bytes;
      if (std::abs(bytes) <= kOneSize * points[i].bytes) continue;
      slopes.push_back((points[i].seconds - points[j].seconds) / bytes);
    }
  }
  const double slope = measure::Median(slopes);
  BOLTBEAM_TRY(CheckSlope(slope));
  for (const Point& point : points) rest.push_back(point.seconds - slope * point.bytes);
  return RobustLine{measure::Median(rest), 1 / slope};
}

std::vector<std::optional<LeftOut>> LeaveOneOut(std::span<const Point> points, double confidence, Noise noise) {
  std::vector<std::optional<LeftOut>> all(points.size());
  const double each = 1 - (1 - confidence) / static_cast<double>(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<Point> others(points.begin(), points.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const Result<Line> line = Line::Fit(others, noise);
    if (!line || !line->HasIntervals()) continue;
    LeftOut left;
    left.seconds = line->Predict(points[i].bytes, each);
    left.error_s = std::sqrt(line->PredictVariance(points[i].bytes).value);
    left.miss_s = points[i].seconds - left.seconds.estimate;
    left.bandwidth_bytes_s = line->bandwidth_bytes_s();
    left.is_inside = left.seconds.low <= points[i].seconds && points[i].seconds <= left.seconds.high;
    all[i] = left;
  }
  return all;
}

std::vector<double> OffTheLine(std::span<const Point> points, Noise noise) {
  std::vector<double> chances(points.size(), 1);
  if (points.size() < 4) return chances;
  const boost::math::students_t law(static_cast<double>(points.size() - 3));
  const std::vector<std::optional<LeftOut>> left = LeaveOneOut(points, 0, noise);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!left[i]) continue;
    const double error = left[i]->error_s, miss = std::abs(left[i]->miss_s);
    const double t = error > 0 ? miss / error : (miss > 0 ? kInfinity : 0);
    const double chance = std::isinf(t) ? 0 : 2 * boost::math::cdf(boost::math::complement(law, t));
    chances[i] = std::min(1.0, chance * static_cast<double>(points.size()));
  }
  return chances;
}

}  // namespace boltbeam::lab
