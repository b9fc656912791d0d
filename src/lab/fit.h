// A ladder's rows to one line for each machine: which rows belong to it, which do not and why, and what is odd.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/line.h"
#include "lab/row.h"
#include "lab/sessions.h"

namespace boltbeam::lab {

/// Whether times are brought to one memory speed first: where the memory drifts, each window's time is corrected by the
/// bandwidth that was read beside it.
enum class Scale { kAuto, kNone, kStreamed };

struct FitOptions {
  double confidence = 0.95;
  /// nullopt: kRelative where times are brought to one memory speed, whose error is a part of each; else the lab's.
  std::optional<Noise> noise;
  Scale scale = Scale::kAuto;                           // kAuto: kStreamed where every row has readings
  std::optional<double> streamed_gb_s, published_gb_s;  // instead of those of the rows
  std::optional<double> reached_gb_s;                   // by another kernel on the same machine
  /// Standard deviation of two sessions' difference, as a part of a time: taken where fewer than three were measured.
  double between = kAssumedBetween;
};

/// All visits to one model, taken together.
struct ModelPoint {
  std::string model, architecture, quantization;
  std::uint64_t experts = 0;
  double bytes = 0;           // that a token reads, cache included
  double kv_bytes = 0;        // of them from the cache
  double seconds = 0;         // per token, in the mean session; at the machine's reference bandwidth when it is scaled
  double measured_tok_s = 0;  // median, as it was
  std::optional<double> streamed_gb_s;
  std::size_t visits = 0, windows = 0;

  double fitted_s = 0;              // by the line
  std::optional<LeftOut> left_out;  // the line without it
  double chance_off = 1;            // OffTheLine
  double leverage = 0;
};

struct ExcludedPoint {
  ModelPoint point;
  std::string reason;
  double above_line_s = 0;  // what a token takes more than the line says for its bytes
};

/// Measured, streamed and published bandwidth of one machine beside each other, and what lies between them.
struct Gap {
  double fitted_gb_s = 0;
  std::optional<double> streamed_gb_s, published_gb_s, reached_gb_s;
  /// Of the gap between published and fitted, the part between published and streamed: the memory system's.
  std::optional<double> memory_share;
  std::vector<std::string> sentences;
};
Gap ExplainGap(double fitted_gb_s, std::optional<double> streamed_gb_s, std::optional<double> published_gb_s,
               std::optional<double> reached_gb_s = {});

/// What a model of the line took more at another depth.
struct DepthCost {
  std::string model;
  std::uint64_t depth = 0;
  double added_bytes = 0, added_s = 0;  // against the line's depth
};

struct MachineFit {
  std::string alias, device, engine, engine_version, architecture, date;  // date of its last row
  std::string isa, cache, setup;                                          // "native", "f16": as rows have them
  std::uint64_t depth = 0, threads = 0;
  std::vector<ModelPoint> points;  // in the order of their bytes
  std::vector<ExcludedPoint> excluded;
  Line line;      // with errors as `noise` says
  Line ordinary;  // the lab's, by ordinary least squares
  Noise noise = Noise::kConstant;
  std::optional<RobustLine> robust;
  measure::Interval fixed_s, bandwidth_gb_s;  // of the sessions that were measured
  Sessions sessions;
  std::optional<measure::Interval> next_session_gb_s;  // of the bandwidth that another session would fit
  std::vector<DepthCost> depths;
  double worst_residual_s = 0;  // of `line`
  double confidence = 0.95;
  bool is_scaled = false;
  std::optional<double> reference_gb_s;  // that times were brought to
  double memory_factor = 1;              // how much of a stream's time per byte a token follows when it changes
  Gap gap;
  std::vector<std::string> warnings;  // of the line
  std::vector<std::string> findings;  // of models

  /// fixed + bytes / bandwidth, as "1.67 ms/token + bytes / 497 GB/s".
  [[nodiscard]] double SecondsAt(double bytes) const { return line.SecondsAt(bytes); }
};

/// The bandwidth that a further session would fit, with what sessions differ by in its interval; nullopt where the line
/// has no interval.
std::optional<measure::Interval> NextSession(const MachineFit& fit);

/// One fit for each machine, program, version, instruction set, form of the cache, depth and number of threads, in the
/// order in which they appear. Rows that give no line are a warning of the first that does, unless they say what a
/// depth costs; kLabLine names them when none does. kLabRow when there are no rows at all.
Result<std::vector<MachineFit>> FitMachines(std::span<const Row> rows, const FitOptions& options);

/// A rate beside what the memory can deliver.
struct RateCheck {
  double implied_gb_s = 0;
  bool is_above_streamed = false, is_above_published = false;
  std::string text;  // empty when there is nothing to say
};
RateCheck CheckRate(double bytes, double tok_s, std::optional<double> streamed_gb_s,
                    std::optional<double> published_gb_s);

}  // namespace boltbeam::lab
