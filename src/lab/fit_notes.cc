// What is odd about a line: warnings of the line itself, findings about its models.
#include "lab/fit_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace boltbeam::lab {
namespace {

constexpr std::size_t kModelsAskedFor = 4;
constexpr double kCarries = 0.8;         // leverage above which a point makes the line by itself
constexpr double kMovesBandwidth = 0.1;  // so does one without which the bandwidth is another by this part
constexpr double kOffChance = 0.05;
// A reading of the memory beside a window is itself noisy: a rate within this of it is not called out.
constexpr double kReadingNoise = 1.05;

std::string MostCommon(const std::vector<ModelPoint>& points, std::string ModelPoint::* field) {
  std::map<std::string, std::size_t> counts;
  for (const ModelPoint& point : points) ++counts[point.*field];
  return counts.empty() ? ""
                        : std::ranges::max_element(counts, {}, [](const auto& pair) { return pair.second; })->first;
}

void WarnOfLine(MachineFit& fit) {
  const std::size_t n = fit.points.size();
  if (n < kModelsAskedFor) {
    fit.warnings.push_back(fmt::format("{} models; the lab asks for at least {} of one family and one quantization{}",
                                       n, kModelsAskedFor, n < 3 ? ": through two points there is always a line" : ""));
  }
  if (std::string below = NegativeFixedCost(fit); !below.empty()) fit.warnings.push_back(std::move(below));
  for (const ModelPoint& point : fit.points) {
    const double moved = point.left_out ? point.left_out->bandwidth_bytes_s / fit.line.bandwidth_bytes_s() - 1 : 0;
    if (n < 3 || (point.leverage <= kCarries && std::abs(moved) <= kMovesBandwidth)) continue;
    fit.warnings.push_back(fmt::format("{} carries the line: leverage {:.2f} of 1{}", point.model, point.leverage,
                                       point.left_out
                                           ? fmt::format("; without it the bandwidth is {:.1f} GB/s ({:+.0f} %)",
                                                         point.left_out->bandwidth_bytes_s / 1e9, 100 * moved)
                                           : std::string()));
  }
  const std::string usual = MostCommon(fit.points, &ModelPoint::quantization);
  const auto differs = [&](const ModelPoint& point) { return point.quantization != usual; };
  if (std::ranges::any_of(fit.points, differs)) {
    fit.warnings.push_back("models of several quantizations: their kernels differ, and so may their bandwidth");
  }
}

/// A family whose models lie off the line of the ladder's main one.
void FindFamilies(MachineFit& fit) {
  fit.architecture = MostCommon(fit.points, &ModelPoint::architecture);
  std::vector<Point> family;
  for (const ModelPoint& point : fit.points) {
    if (point.architecture == fit.architecture) family.push_back({point.bytes, point.seconds});
  }
  const Result<Line> line = Line::Fit(family, fit.noise);
  for (const ModelPoint& point : fit.points) {
    if (point.architecture == fit.architecture || !line || !line->HasIntervals()) continue;
    const measure::Interval expected = line->Predict(point.bytes, fit.confidence);
    const bool is_off = point.seconds < expected.low || point.seconds > expected.high;
    fit.findings.push_back(fmt::format(
        "{} is of architecture {}, the line's others are {}: {:+.2f} ms a token against their line{}", point.model,
        point.architecture, fit.architecture, 1e3 * (point.seconds - expected.estimate),
        is_off ? ", outside its interval: another fixed cost, a finding about the model" : ", inside its interval"));
  }
}

void FindModels(MachineFit& fit) {
  for (const ModelPoint& point : fit.points) {
    if (point.chance_off < kOffChance) {
      fit.findings.push_back(
          fmt::format("{} is off the line of all others by {:+.2f} ms (chance {:.2g}): another "
                      "architecture, a disturbed run, or more than one token per pass",
                      point.model, 1e3 * point.left_out->miss_s, point.chance_off));
    }
    const std::optional<double> streamed =
        fit.is_scaled ? std::optional(*fit.reference_gb_s * kReadingNoise) : fit.gap.streamed_gb_s;
    const RateCheck check = CheckRate(point.bytes, 1 / point.seconds, streamed, {});
    if (check.is_above_streamed) fit.findings.push_back(point.model + ": " + check.text);
  }
}

void WarnOfSessions(MachineFit& fit) {
  if (!fit.sessions.is_connected) {
    fit.warnings.push_back("its sessions have no model in common, so that they can't be told apart from the models");
  }
}

}  // namespace

std::string NegativeFixedCost(const MachineFit& fit) {
  if (fit.fixed_s.estimate >= 0) return "";
  const bool may_be_zero = std::isfinite(fit.fixed_s.high) && fit.fixed_s.high >= 0;
  return std::string("a fixed cost below zero is no cost: ") +
         (may_be_zero ? "zero lies in its interval"
                      : "a cache keeps a part of each model from token to token, or bytes were counted that are not "
                        "read");
}

void AddNotes(MachineFit& fit) {
  WarnOfLine(fit);
  WarnOfSessions(fit);
  FindFamilies(fit);
  FindModels(fit);
}

}  // namespace boltbeam::lab
