#include <fmt/format.h>

#include <cmath>

#include "report/fit_json.h"
#include "report/html.h"
#include "report/lab_format.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

constexpr double kMs = 1e3;

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

std::string NoiseName(const lab::MachineFit& fit) {
  return fit.noise == lab::Noise::kRelative ? "relative" : "constant";
}

std::string NameOf(const lab::ModelPoint& point) {
  const std::string name = Inert(point.model);
  return name.ends_with(".gguf") ? name.substr(0, name.size() - std::string_view(".gguf").size()) : name;
}

/// Its lines of the models. "measured" is what a program printed; a time that was brought to one memory speed or to the
/// mean of several sessions is "adjusted".
std::string LabModels(const lab::MachineFit& fit) {
  const bool is_adjusted = fit.is_scaled || fit.sessions.factors.size() > 1;
  std::string lines;
  for (const lab::ModelPoint& point : fit.points) {
    lines +=
        fmt::format(" {:30} {:6.2f} GB {} {:7.1f} tok/s fit {:7.1f}\n", NameOf(point), point.bytes / 1e9,
                    is_adjusted ? "adjusted" : "measured", 1 / point.seconds, 1 / fit.ordinary.SecondsAt(point.bytes));
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

/// The program, and what tells its line from the others of the same machine and program.
std::string ProgramIn(const lab::MachineFit& fit, std::span<const lab::MachineFit> fits) {
  std::string text = fit.engine;
  const auto add = [&](auto lab::MachineFit::* field, const std::string& shown) {
    const bool differs = std::ranges::any_of(fits, [&](const lab::MachineFit& other) {
      return other.alias == fit.alias && other.engine == fit.engine && other.*field != fit.*field;
    });
    if (differs && !shown.empty()) text += (text.empty() ? "" : " ") + shown;
  };
  add(&lab::MachineFit::engine_version, fit.engine_version);
  add(&lab::MachineFit::threads, fmt::format("-t {}", fit.threads));
  add(&lab::MachineFit::depth, fmt::format("-d {}", fit.depth));
  add(&lab::MachineFit::isa, fit.isa);
  add(&lab::MachineFit::cache, fit.cache);
  add(&lab::MachineFit::setup, fit.setup);
  return text;
}

Table MachineTable(std::span<const lab::MachineFit> fits) {
  Table table({{"machine", "alias", Align::kLeft},
               {"chip", "device", Align::kLeft},
               {"program", "engine", Align::kLeft},
               {"fixed ms", "fixed_ms"},
               {"GB/s", "bandwidth_gb_s"},
               {"÷spec", "fitted_of_published"},
               {"÷stream", "fitted_of_streamed"},
               {"worst ms", "worst_residual_ms"},
               {"models", "models"}});
  for (const lab::MachineFit& fit : fits) {
    const double fitted = fit.bandwidth_gb_s.estimate;
    table.Add({Inert(fit.alias),
               Inert(fit.device),
               Inert(ProgramIn(fit, fits)),
               {Fixed(kMs * fit.line.fixed_s(), 2), fmt::format("{}", kMs * fit.line.fixed_s())},
               {Fixed(fitted, 1), fmt::format("{}", fitted)},
               ShareOf(fitted, fit.gap.published_gb_s),
               ShareOf(fitted, fit.gap.streamed_gb_s),
               {Fixed(kMs * fit.worst_residual_s, 2), fmt::format("{}", kMs * fit.worst_residual_s)},
               std::to_string(fit.points.size())});
  }
  return table;
}

std::string Exact(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string Exact(const std::optional<double>& value) { return value ? Exact(*value) : ""; }

/// A row for each machine, with every interval.
std::string MachineCsv(std::span<const lab::MachineFit> fits) {
  std::vector<Column> columns;
  for (const char* key : {"alias",
                          "device",
                          "engine",
                          "engine_version",
                          "date",
                          "depth",
                          "threads",
                          "isa",
                          "cache",
                          "models",
                          "sessions",
                          "confidence",
                          "noise",
                          "fixed_ms",
                          "fixed_ms_low",
                          "fixed_ms_high",
                          "bandwidth_gb_s",
                          "bandwidth_gb_s_low",
                          "bandwidth_gb_s_high",
                          "next_session_bandwidth_gb_s_low",
                          "next_session_bandwidth_gb_s_high",
                          "between_share",
                          "ordinary_fixed_ms",
                          "ordinary_fixed_ms_low",
                          "ordinary_fixed_ms_high",
                          "ordinary_bandwidth_gb_s",
                          "ordinary_bandwidth_gb_s_low",
                          "ordinary_bandwidth_gb_s_high",
                          "robust_fixed_ms",
                          "robust_bandwidth_gb_s",
                          "worst_residual_ms",
                          "streamed_gb_s",
                          "published_gb_s",
                          "reference_gb_s"}) {
    columns.push_back({key, key});
  }
  Table table(std::move(columns));
  for (const lab::MachineFit& fit : fits) {
    const measure::Interval fixed = fit.ordinary.Fixed(fit.confidence);
    const measure::Interval bandwidth = fit.ordinary.Bandwidth(fit.confidence);
    const auto& next = fit.next_session_gb_s;
    table.Add({fit.alias,
               fit.device,
               fit.engine,
               fit.engine_version,
               fit.date,
               std::to_string(fit.depth),
               std::to_string(fit.threads),
               fit.isa,
               fit.cache,
               std::to_string(fit.points.size()),
               std::to_string(fit.sessions.factors.size()),
               Exact(fit.confidence),
               NoiseName(fit),
               Exact(kMs * fit.fixed_s.estimate),
               Exact(kMs * fit.fixed_s.low),
               Exact(kMs * fit.fixed_s.high),
               Exact(fit.bandwidth_gb_s.estimate),
               Exact(fit.bandwidth_gb_s.low),
               Exact(fit.bandwidth_gb_s.high),
               next ? Exact(next->low) : "",
               next ? Exact(next->high) : "",
               Exact(fit.sessions.between),
               Exact(kMs * fixed.estimate),
               Exact(kMs * fixed.low),
               Exact(kMs * fixed.high),
               Exact(bandwidth.estimate / 1e9),
               Exact(bandwidth.low / 1e9),
               Exact(bandwidth.high / 1e9),
               fit.robust ? Exact(kMs * fit.robust->fixed_s) : "",
               fit.robust ? Exact(fit.robust->bandwidth_bytes_s / 1e9) : "",
               Exact(kMs * fit.worst_residual_s),
               Exact(fit.gap.streamed_gb_s),
               Exact(fit.gap.published_gb_s),
               Exact(fit.reference_gb_s)});
  }
  return table.Csv();
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

/// What the intervals are of, and what another session adds.
std::string SessionSentence(const lab::MachineFit& fit) {
  const lab::Sessions& sessions = fit.sessions;
  const std::string by = fmt::format("{:.1f} %", 100 * sessions.between);
  std::string text;
  if (sessions.is_assumed) {
    text = fmt::format(
        "sessions: the intervals above are of {}; another is taken to differ by {} (standard deviation, assumed; rows "
        "of three sessions say it themselves)",
        sessions.factors.size() == 1 ? "the one session of these rows" : "the two sessions of these rows", by);
  } else {
    text = fmt::format("sessions: {} that differ by {} from one another (standard deviation)", sessions.factors.size(),
                       by);
  }
  if (fit.next_session_gb_s && std::isfinite(fit.next_session_gb_s->high)) {
    text += fmt::format(", so that its bandwidth lies between {} and {} GB/s", Decimal(fit.next_session_gb_s->low, 1),
                        Decimal(fit.next_session_gb_s->high, 1));
  }
  return text + "; what its fixed cost would be, these rows do not say";
}

std::string FactorSentence(const lab::Sessions& sessions) {
  std::string text = "times of the sessions, of their mean:";
  for (std::size_t i = 0; i < sessions.factors.size(); ++i) {
    const std::string& begin = sessions.begins[i];
    constexpr std::size_t kDay = 10, kMinute = 16;
    const std::string when = begin.size() < kMinute ? begin : begin.substr(0, kDay) + " " + begin.substr(kDay + 1, 5);
    text += fmt::format("{} {} {:.1f} %", i == 0 ? "" : ",", when, 100 * sessions.factors[i]);
  }
  return text;
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
        "adjusted: times at {:.1f} GB/s, each window's corrected by the bandwidth read beside it, {:.2f} times what a "
        "stream takes more",
        *fit.reference_gb_s, fit.memory_factor));
  }
  if (std::ranges::any_of(fit.points, [](const lab::ModelPoint& point) { return point.left_out.has_value(); })) {
    texts.push_back(
        fmt::format("left out: each model foretold by the line of the others; all of these intervals together hold "
                    "with {:.0f} % or more",
                    100 * fit.confidence));
  }
  if (fit.line.HasIntervals()) texts.push_back(SessionSentence(fit));
  if (fit.sessions.factors.size() > 1) texts.push_back(FactorSentence(fit.sessions));
  for (const std::string& sentence : fit.gap.sentences) texts.push_back("bandwidth: " + sentence);
  for (const std::string& warning : fit.warnings) texts.push_back("warning: " + warning);
  for (const std::string& finding : fit.findings) texts.push_back("finding: " + finding);
  for (std::string& text : texts) text = Inert(text);
  return texts;
}

}  // namespace

std::string FitReport(std::span<const lab::MachineFit> fits, Form form) {
  if (form == Form::kJson) return FitJson(fits);
  if (form == Form::kCsv) return MachineCsv(fits);
  const bool is_text = form == Form::kText;
  std::string text;
  if (fits.size() > 1) {
    text += is_text ? MachineTable(fits).WrappedText() : MachineTable(fits).Markdown();
    text += "\n";
  }
  for (const lab::MachineFit& fit : fits) {
    const std::string name = Inert(ProgramIn(fit, fits));
    const std::string program = name.empty() ? "" : " [" + name + "]";
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
