#include "report/fit_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace boltbeam::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMs = 1e3;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json Optional(const std::optional<double>& value) { return value ? Number(*value) : Json(nullptr); }

Json PointJson(const lab::ModelPoint& point) {
  Json json = {{"model", point.model},
               {"architecture", point.architecture},
               {"quantization", point.quantization},
               {"experts", point.experts},
               {"bytes", point.bytes},
               {"measured_tok_s", Number(point.measured_tok_s)},
               {"token_ms", Number(kMs * point.seconds)},
               {"fit_ms", Number(kMs * point.fitted_s)},
               {"residual_ms", Number(kMs * (point.seconds - point.fitted_s))},
               {"leverage", point.leverage},
               {"chance_off_the_line", point.chance_off},
               {"streamed_gb_s", Optional(point.streamed_gb_s)},
               {"visits", point.visits},
               {"windows", point.windows}};
  json["left_out"] = nullptr;
  if (point.left_out) {
    const lab::LeftOut& left = *point.left_out;
    json["left_out"] = {
        {"token_ms", Number(kMs * left.seconds.estimate)},           {"token_ms_low", Number(kMs * left.seconds.low)},
        {"token_ms_high", Number(kMs * left.seconds.high)},          {"miss_ms", Number(kMs * left.miss_s)},
        {"miss_share", Number(left.miss_s / left.seconds.estimate)}, {"inside", left.is_inside},
        {"bandwidth_gb_s", Number(left.bandwidth_bytes_s / 1e9)}};
  }
  return json;
}

Json SessionsJson(const lab::MachineFit& fit) {
  const auto& next = fit.next_session_gb_s;
  Json json = {{"between_share", fit.sessions.between},
               {"assumed", fit.sessions.is_assumed},
               {"next_bandwidth_gb_s_low", next ? Number(next->low) : Json(nullptr)},
               {"next_bandwidth_gb_s_high", next ? Number(next->high) : Json(nullptr)}};
  json["list"] = Json::array();
  for (std::size_t i = 0; i < fit.sessions.factors.size(); ++i) {
    json["list"].push_back({{"begin", fit.sessions.begins[i]}, {"time_factor", fit.sessions.factors[i]}});
  }
  return json;
}

Json MachineJson(const lab::MachineFit& fit) {
  Json json = {{"alias", fit.alias},
               {"device", fit.device},
               {"engine", fit.engine},
               {"engine_version", fit.engine_version},
               {"date", fit.date},
               {"depth", fit.depth},
               {"threads", fit.threads},
               {"isa", fit.isa},
               {"cache", fit.cache},
               {"setup", fit.setup},
               {"confidence", fit.confidence},
               {"noise", fit.noise == lab::Noise::kRelative ? "relative" : "constant"},
               {"fixed_ms", Number(kMs * fit.fixed_s.estimate)},
               {"fixed_ms_low", Number(kMs * fit.fixed_s.low)},
               {"fixed_ms_high", Number(kMs * fit.fixed_s.high)},
               {"bandwidth_gb_s", Number(fit.bandwidth_gb_s.estimate)},
               {"bandwidth_gb_s_low", Number(fit.bandwidth_gb_s.low)},
               {"bandwidth_gb_s_high", Number(fit.bandwidth_gb_s.high)},
               {"worst_residual_ms", Number(kMs * fit.worst_residual_s)},
               {"published_gb_s", Optional(fit.gap.published_gb_s)},
               {"streamed_gb_s", Optional(fit.gap.streamed_gb_s)},
               {"reference_gb_s", Optional(fit.reference_gb_s)},
               {"memory_factor", fit.memory_factor},
               {"memory_share_of_gap", Optional(fit.gap.memory_share)}};
  const measure::Interval fixed = fit.ordinary.Fixed(fit.confidence),
                          bandwidth = fit.ordinary.Bandwidth(fit.confidence);
  json["ordinary"] = {{"fixed_ms", kMs * fixed.estimate},
                      {"fixed_ms_low", Number(kMs * fixed.low)},
                      {"fixed_ms_high", Number(kMs * fixed.high)},
                      {"bandwidth_gb_s", bandwidth.estimate / 1e9},
                      {"bandwidth_gb_s_low", Number(bandwidth.low / 1e9)},
                      {"bandwidth_gb_s_high", Number(bandwidth.high / 1e9)}};
  json["sessions"] = SessionsJson(fit);
  if (fit.robust) {
    json["robust"] = {{"fixed_ms", kMs * fit.robust->fixed_s}, {"bandwidth_gb_s", fit.robust->bandwidth_bytes_s / 1e9}};
  }
  json["models"] = Json::array();
  for (const lab::ModelPoint& point : fit.points) json["models"].push_back(PointJson(point));
  json["excluded"] = Json::array();
  for (const lab::ExcludedPoint& excluded : fit.excluded) {
    json["excluded"].push_back({{"model", excluded.point.model},
                                {"experts", excluded.point.experts},
                                {"bytes", excluded.point.bytes},
                                {"measured_tok_s", Number(excluded.point.measured_tok_s)},
                                {"above_line_ms", Number(kMs * excluded.above_line_s)},
                                {"reason", excluded.reason}});
  }
  json["gaps"] = fit.gap.sentences;
  json["warnings"] = fit.warnings;
  json["findings"] = fit.findings;
  return json;
}

}  // namespace

std::string FitJson(std::span<const lab::MachineFit> fits) {
  Json json = {{"schema", "boltbeam.fit.v1"}};
  // Of the first machine, where scripts look for them.
  json["fixed_ms"] = Number(kMs * fits.front().fixed_s.estimate);
  json["bandwidth_gb_s"] = Number(fits.front().bandwidth_gb_s.estimate);
  json["worst_residual_ms"] = Number(kMs * fits.front().worst_residual_s);
  json["machines"] = Json::array();
  for (const lab::MachineFit& fit : fits) json["machines"].push_back(MachineJson(fit));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace boltbeam::report
