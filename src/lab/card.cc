#include "lab/card.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "lab/fit_notes.h"
#include "roofline/formulas.h"

namespace boltbeam::lab {
namespace {

std::optional<double> Finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

// What makes a number known that stands as unknown.
constexpr std::string_view kByMeasuring = "`boltbeam chip measure` on that machine",
                           kByStream = "rows with bandwidths read beside them, or --streamed",
                           kByDataSheet = "--published";

class Lines {
 public:
  /// known_by: what a note asks for while there is no value; empty when it follows from other lines.
  void Add(std::string label, std::string key, std::optional<double> value, const std::string& shown,
           std::string_view known_by = {}) {
    if (!value && !known_by.empty()) {
      std::string& labels = unknown_[known_by];
      labels += (labels.empty() ? "" : ", ") + label;
    }
    lines_.push_back({std::move(label), std::move(key), value ? shown : "unknown", value});
  }
  void AddInterval(double confidence, const std::string& of, const std::string& key, const measure::Interval& interval,
                   double scale, const char* unit) {
    const std::optional<double> low = Finite(interval.low * scale), high = Finite(interval.high * scale);
    const std::string shown = low && high ? fmt::format("{:.2f} to {:.2f} {}", *low, *high, unit) : "none";
    lines_.push_back({of.empty() ? fmt::format("  {:.0f} % interval", 100 * confidence) : "  " + of,
                      key,
                      shown,
                      {},
                      low,
                      high,
                      true});
  }
  std::vector<CardLine> Take() { return std::move(lines_); }
  [[nodiscard]] std::vector<std::string> Notes() const {
    std::vector<std::string> notes;
    for (const auto& [known_by, labels] : unknown_) {
      notes.push_back(fmt::format("{}: unknown without {}", labels, known_by));
    }
    return notes;
  }

 private:
  std::vector<CardLine> lines_;
  std::map<std::string_view, std::string> unknown_;  // labels, by what makes them known
};

std::optional<double> Ratio(std::optional<double> part, std::optional<double> whole) {
  return part && whole ? std::optional(*part / *whole) : std::nullopt;
}

std::string Share(std::optional<double> share) { return share ? fmt::format("{:.0f} %", 100 * *share) : ""; }

std::optional<double> FactOf(const chip::Chip* machine, const char* name) {
  return machine != nullptr ? machine->Get(name) : std::nullopt;
}

/// Tokens together at which sums begin to bind, for tables of 4.5 bits a weight.
std::optional<double> Crossover(const chip::Chip* machine, std::optional<double> streamed) {
  constexpr double kBits = 4.5;
  if (machine == nullptr || machine->Peak() == nullptr || !streamed) return std::nullopt;
  return roofline::CrossoverBatch(kBits, roofline::Ridge(machine->Peak()->value, *streamed));
}

}  // namespace

Card MakeCard(const MachineFit& fit, const chip::Chip* machine) {
  Card card{fit.alias,
            fit.device,
            fit.engine + (fit.engine_version.empty() ? "" : " " + fit.engine_version),
            fit.date,
            {},
            {},
            {},
            fit.line.fixed_s(),
            fit.line.bandwidth_bytes_s()};
  for (const ModelPoint& point : fit.points) card.points.push_back({point.bytes, point.seconds});
  const double fitted = fit.bandwidth_gb_s.estimate;
  const std::optional<double> streamed = fit.gap.streamed_gb_s, published = fit.gap.published_gb_s;
  const std::optional<double> dispatch = FactOf(machine, "dispatch_ns"), barrier = FactOf(machine, "barrier_ns");
  const std::optional<double> crossover = Crossover(machine, streamed);
  Lines lines;
  lines.Add("fixed cost per token", "fixed_ms", 1e3 * fit.fixed_s.estimate,
            fmt::format("{:.2f} ms", 1e3 * fit.fixed_s.estimate));
  lines.AddInterval(fit.confidence, "", "fixed_ms", fit.fixed_s, 1e3, "ms");
  lines.Add("fitted bandwidth", "bandwidth_gb_s", fitted, fmt::format("{:.1f} GB/s", fitted));
  lines.AddInterval(fit.confidence, "", "bandwidth_gb_s", fit.bandwidth_gb_s, 1, "GB/s");
  const double infinity = std::numeric_limits<double>::infinity();
  lines.AddInterval(fit.confidence, "another session", "next_session_bandwidth_gb_s",
                    fit.next_session_gb_s.value_or(measure::Interval{fitted, -infinity, infinity}), 1, "GB/s");
  lines.Add("streamed bandwidth", "streamed_gb_s", streamed, fmt::format("{:.1f} GB/s", streamed.value_or(0)),
            kByStream);
  lines.Add("published bandwidth", "published_gb_s", published, fmt::format("{:.0f} GB/s", published.value_or(0)),
            kByDataSheet);
  lines.Add("fitted of streamed", "fitted_of_streamed", Ratio(fitted, streamed), Share(Ratio(fitted, streamed)));
  lines.Add("fitted of published", "fitted_of_published", Ratio(fitted, published), Share(Ratio(fitted, published)));
  lines.Add("streamed of published", "streamed_of_published", Ratio(streamed, published),
            Share(Ratio(streamed, published)));
  lines.Add("worst residual", "worst_residual_ms", 1e3 * fit.worst_residual_s,
            fmt::format("{:.2f} ms", 1e3 * fit.worst_residual_s));
  lines.Add("dense models", "models", static_cast<double>(fit.points.size()), std::to_string(fit.points.size()));
  lines.Add("dispatch", "dispatch_ns", dispatch, fmt::format("{:.0f} ns", dispatch.value_or(0)), kByMeasuring);
  lines.Add("barrier", "barrier_ns", barrier, fmt::format("{:.0f} ns", barrier.value_or(0)), kByMeasuring);
  lines.Add("M* at 4.5 bits", "crossover_batch", crossover, fmt::format("{:.1f} tokens", crossover.value_or(0)),
            streamed ? kByMeasuring : kByStream);
  card.lines = lines.Take();
  card.notes = lines.Notes();
  if (std::string below = NegativeFixedCost(fit); !below.empty()) card.notes.push_back(std::move(below));
  return card;
}

}  // namespace boltbeam::lab
