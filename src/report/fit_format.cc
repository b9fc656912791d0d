#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "report/html.h"
#include "report/lab_format.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMs = 1e3;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json Optional(const std::optional<double>& value) { return value ? Number(*value) : Json(nullptr); }

std::string Fixed(double value, int places) { return std::isfinite(value) ? Decimal(value, places) : "-"; }

std::string Range(const measure::Interval& interval, double scale, int places) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return "no interval";
  return fmt::format("{} to {}", Decimal(interval.low * scale, places), Decimal(interval.high * scale, places));
}

std::string ShareOf(double part, const std::optional<double>& whole) { return whole ? Percent(part / *whole, 0) : "-"; }

/// The lab's own line, by ordinary least squares whatever the tables below it weigh by.
std::string LabLine(const lab::MachineFit& fit) {
  const double fitted = fit.ordinary.bandwidth_bytes_s() / 1e9;
  double worst_s = 0;
  for (const lab::ModelPoint& point : fit.points) {
    worst_s = std::max(worst_s, std::abs(point.seconds - fit.ordinary.SecondsAt(point.bytes)));
  }
  std::string line = fmt::format("{:8} {:16} {} dense models: fixed {:.2f} ms/token + bytes / {:.0f} GB/s", fit.alias,
                                 fit.device, fit.points.size(), kMs * fit.ordinary.fixed_s(), fitted);
  if (fit.gap.published_gb_s) {
    line += fmt::format(" ({:.0f}% of spec {:.0f})", 100 * fitted / *fit.gap.published_gb_s, *fit.gap.published_gb_s);
  }
  return line + fmt::format(" worst residual {:.2f} ms", kMs * worst_s);
}

std::string NameOf(const lab::ModelPoint& point) {
  const std::string name = Inert(point.model);
  return name.ends_with(".gguf") ? name.substr(0, name.size() - std::string_view(".gguf").size()) : name;
}

/// Its lines of the models: what was measured, at the memory speed of the line, and what the line says.
std::string LabModels(const lab::MachineFit& fit) {
  std::string lines;
  for (const lab::ModelPoint& point : fit.points) {
    lines += fmt::format(" {:30} {:6.2f} GB measured {:7.1f} tok/s fit {:7.1f}\n", NameOf(point), point.bytes / 1e9,
                         1 / point.seconds, 1 / fit.ordinary.SecondsAt(point.bytes));
  }
  return lines;
}

Table ModelTable(const lab::MachineFit& fit) {
  Table table({{"model", "model", Align::kLeft},
               {"ms", "token_ms"},
               {"residual", "residual_ms"},
               {"left out", "left_out_ms"},
               {"±%", "left_out_half_width_pct"},
               {"miss %", "left_out_miss_pct"},
               {"in", "left_out_inside", Align::kLeft}});
  for (const lab::ModelPoint& point : fit.points) {
    std::vector<Cell> cells{NameOf(point), Fixed(kMs * point.seconds, 2),
                            fmt::format("{:+.2f}", kMs * (point.seconds - point.fitted_s))};
    if (point.left_out) {
      const lab::LeftOut& left = *point.left_out;
      cells.emplace_back(Fixed(kMs * left.seconds.estimate, 2));
      cells.emplace_back(Fixed(100 * (left.seconds.high / left.seconds.estimate - 1), 1));
      cells.emplace_back(fmt::format("{:+.1f}", 100 * left.miss_s / left.seconds.estimate));
      cells.emplace_back(left.is_inside ? "yes" : "NO");
    }
    table.Add(std::move(cells));
  }
  return table;
}

Table MachineTable(std::span<const lab::MachineFit> fits) {
  Table table({{"machine", "alias", Align::kLeft},
               {"chip", "device", Align::kLeft},
               {"program", "engine", Align::kLeft},
               {"fixed ms", "fixed_ms"},
               {"fitted GB/s", "bandwidth_gb_s"},
               {"÷spec", "fitted_of_published"},
               {"÷stream", "fitted_of_streamed"},
               {"worst ms", "worst_residual_ms"},
               {"models", "models"}});
  for (const lab::MachineFit& fit : fits) {
    const double fitted = fit.bandwidth_gb_s.estimate;
    table.Add({Inert(fit.alias),
               Inert(fit.device),
               Inert(fit.engine),
               {Fixed(kMs * fit.line.fixed_s(), 2), fmt::format("{}", kMs * fit.line.fixed_s())},
               {Fixed(fitted, 1), fmt::format("{}", fitted)},
               ShareOf(fitted, fit.gap.published_gb_s),
               ShareOf(fitted, fit.gap.streamed_gb_s),
               {Fixed(kMs * fit.worst_residual_s, 2), fmt::format("{}", kMs * fit.worst_residual_s)},
               std::to_string(fit.points.size())});
  }
  return table;
}

/// Both numbers by the line that the other tables are of and, when errors are weighed, by the lab's beside it.
Table NumbersTable(const lab::MachineFit& fit) {
  const std::string interval = fmt::format("{:.0f} % interval", 100 * fit.confidence);
  const bool is_weighted = fit.noise == lab::Noise::kRelative;
  std::vector<Column> columns{
      {"", "quantity", Align::kLeft}, {is_weighted ? "weighted" : "least squares", "estimate"}, {interval, "interval"}};
  if (is_weighted) {
    columns.push_back({"ordinary", "ordinary"});
    columns.push_back({interval, "ordinary_interval"});
  }
  columns.push_back({"robust", "robust"});
  Table table(std::move(columns));
  std::vector<Cell> fixed{"fixed cost, ms", Fixed(kMs * fit.fixed_s.estimate, 3), Range(fit.fixed_s, kMs, 3)};
  std::vector<Cell> bandwidth{"bandwidth, GB/s", Fixed(fit.bandwidth_gb_s.estimate, 2),
                              Range(fit.bandwidth_gb_s, 1, 2)};
  if (is_weighted) {
    fixed.emplace_back(Fixed(kMs * fit.ordinary.fixed_s(), 3));
    fixed.emplace_back(Range(fit.ordinary.Fixed(fit.confidence), kMs, 3));
    bandwidth.emplace_back(Fixed(fit.ordinary.bandwidth_bytes_s() / 1e9, 2));
    bandwidth.emplace_back(Range(fit.ordinary.Bandwidth(fit.confidence), 1e-9, 2));
  }
  fixed.emplace_back(fit.robust ? Fixed(kMs * fit.robust->fixed_s, 3) : "-");
  bandwidth.emplace_back(fit.robust ? Fixed(fit.robust->bandwidth_bytes_s / 1e9, 2) : "-");
  table.Add(std::move(fixed));
  table.Add(std::move(bandwidth));
  return table;
}

/// Sentences below the tables: what was left out, what the gaps mean, what is odd.
std::vector<std::string> Sentences(const lab::MachineFit& fit) {
  std::vector<std::string> texts;
  for (const lab::ExcludedPoint& excluded : fit.excluded) {
    texts.push_back(fmt::format("not on the line: {} ({:.2f} GB, {:.1f} tok/s), {:+.2f} ms from it: {}",
                                excluded.point.model, excluded.point.bytes / 1e9, excluded.point.measured_tok_s,
                                kMs * excluded.above_line_s, excluded.reason));
  }
  if (fit.noise == lab::Noise::kRelative) {
    texts.push_back(
        "errors are weighed in proportion to the models' times; the first lines, and `ordinary`, take them as "
        "all alike, as the lab does");
  }
  if (fit.is_scaled) {
    texts.push_back(fmt::format(
        "times are at {:.1f} GB/s: each window's time was corrected by the bandwidth read beside it, {:.2f} times "
        "what a stream takes more",
        *fit.reference_gb_s, fit.memory_factor));
  }
  for (const std::string& sentence : fit.gap.sentences) texts.push_back("bandwidth: " + sentence);
  for (const std::string& warning : fit.warnings) texts.push_back("warning: " + warning);
  for (const std::string& finding : fit.findings) texts.push_back("finding: " + finding);
  for (std::string& text : texts) text = Inert(text);
  return texts;
}

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

Json FitJson(const lab::MachineFit& fit) {
  Json json = {{"alias", fit.alias},
               {"device", fit.device},
               {"engine", fit.engine},
               {"engine_version", fit.engine_version},
               {"date", fit.date},
               {"depth", fit.depth},
               {"threads", fit.threads},
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
  json["ordinary"] = {{"fixed_ms", kMs * fit.ordinary.fixed_s()},
                      {"bandwidth_gb_s", fit.ordinary.bandwidth_bytes_s() / 1e9}};
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

std::string FitsJson(std::span<const lab::MachineFit> fits) {
  Json json = {{"schema", "boltbeam.fit.v1"}};
  // Of the first machine, where scripts look for them.
  json["fixed_ms"] = Number(kMs * fits.front().fixed_s.estimate);
  json["bandwidth_gb_s"] = Number(fits.front().bandwidth_gb_s.estimate);
  json["worst_residual_ms"] = Number(kMs * fits.front().worst_residual_s);
  json["machines"] = Json::array();
  for (const lab::MachineFit& fit : fits) json["machines"].push_back(FitJson(fit));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string FitReport(std::span<const lab::MachineFit> fits, Form form) {
  if (form == Form::kJson) return FitsJson(fits);
  if (form == Form::kCsv) return MachineTable(fits).Csv();
  const bool is_text = form == Form::kText;
  std::string text;
  if (fits.size() > 1) {
    text += is_text ? MachineTable(fits).Text() : MachineTable(fits).Markdown();
    text += "\n";
  }
  for (const lab::MachineFit& fit : fits) {
    const std::string program = fit.engine.empty() ? "" : fmt::format(" [{}]", Inert(fit.engine));
    if (is_text) {
      text += Wrap(Inert(LabLine(fit)) + program, 9) + "\n" + LabModels(fit) + "\n" + NumbersTable(fit).Text() + "\n" +
              ModelTable(fit).Text();
      if (!Sentences(fit).empty()) text += "\n";
      for (const std::string& sentence : Sentences(fit)) text += Wrap(sentence, 2) + "\n";
      text += "\n";
    } else {
      text += fmt::format("```\n{}{}\n{}```\n\n{}\n{}\n", Inert(LabLine(fit)), program, LabModels(fit),
                          NumbersTable(fit).Markdown(), ModelTable(fit).Markdown());
      for (const std::string& sentence : Sentences(fit)) text += "- " + sentence + "\n";
      text += "\n";
    }
  }
  while (text.ends_with("\n\n")) text.pop_back();
  return text;
}

}  // namespace boltbeam::report
