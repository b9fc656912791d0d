#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/html.h"
#include "report/lab_format.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using Json = nlohmann::ordered_json;

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string Rate(double tok_s) { return std::isfinite(tok_s) && tok_s > 0 ? Decimal(tok_s, 2) : "-"; }

Table ForecastTable(std::span<const ForecastRow> rows) {
  Table table({{"depth", "depth"},
               {"GB", "bytes"},
               {"ms", "token_ms"},
               {"tok/s", "tok_s"},
               {"low", "tok_s_low"},
               {"high", "tok_s_high"},
               {"±%", "half_width_pct"},
               {"session", "same_session_half_width_pct"},
               {"cache", "depth_half_width_pct"},
               {"", "extrapolation", Align::kLeft}});
  for (const ForecastRow& row : rows) {
    const lab::Forecast& forecast = row.forecast;
    const bool has = forecast.HasInterval();
    const auto percent = [&](double seconds) {
      return has ? Decimal(100 * seconds / forecast.seconds.estimate, 1) : std::string("-");
    };
    table.Add({std::to_string(forecast.depth),
               {Decimal(forecast.bytes / 1e9, 3), fmt::format("{:.0f}", forecast.bytes)},
               Decimal(1e3 * forecast.seconds.estimate, 2),
               Rate(forecast.tok_s()),
               has ? Rate(forecast.tok_s_low()) : "-",
               has ? Rate(forecast.tok_s_high()) : "-",
               percent(forecast.seconds.high - forecast.seconds.estimate),
               percent(forecast.in_session.high - forecast.in_session.estimate),
               percent(forecast.depth_half_s),
               forecast.extrapolations.empty() ? "within" : "beyond"});
  }
  return table;
}

bool WasChecked(std::span<const ForecastRow> rows) {
  return std::ranges::any_of(rows, [](const ForecastRow& row) { return row.miss.has_value(); });
}

/// What was measured afterwards: as it was, and at the memory speed that the forecast is for.
Table MissTable(std::span<const ForecastRow> rows) {
  Table table({{"depth", "depth"},
               {"foretold", "token_ms"},
               {"as run", "measured_raw_ms"},
               {"miss %", "raw_miss_pct"},
               {"GB/s", "beside_gb_s"},
               {"adjusted", "measured_ms"},
               {"miss ms", "miss_ms"},
               {"miss %", "miss_pct"},
               {"in", "inside", Align::kLeft}});
  for (const ForecastRow& row : rows) {
    if (!row.miss) continue;
    const lab::Miss& miss = *row.miss;
    table.Add({std::to_string(row.forecast.depth), Decimal(1e3 * row.forecast.seconds.estimate, 2),
               Decimal(1e3 * miss.raw_s, 2), fmt::format("{:+.1f}", 100 * miss.raw_miss_share),
               miss.beside_gb_s ? Decimal(*miss.beside_gb_s, 1) : "-", Decimal(1e3 * miss.measured_s, 2),
               fmt::format("{:+.2f}{}", 1e3 * miss.miss_s, miss.is_large ? "!" : ""),
               fmt::format("{:+.1f}", 100 * miss.miss_share), miss.is_inside ? "yes" : "NO"});
  }
  return table;
}

std::vector<std::string> Sentences(const ForecastSubject& subject, std::span<const ForecastRow> rows) {
  std::vector<std::string> texts;
  const auto add = [&](const std::string& text) {
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  };
  for (const ForecastRow& row : rows) {
    for (const std::string& beyond : row.forecast.extrapolations) {
      add(fmt::format("depth {} is extrapolated: {}", row.forecast.depth, beyond));
    }
    for (const std::string& note : row.forecast.notes) add(note);
    if (row.miss && row.miss->is_inside != row.miss->is_inside_session) {
      add(fmt::format("depth {}: inside the interval of another session, outside the one of the ladder's own",
                      row.forecast.depth));
    }
    if (row.miss) {
      for (const std::string& note : row.miss->notes) add(fmt::format("depth {}: {}", row.forecast.depth, note));
    }
  }
  if (subject.fit != nullptr && subject.fit->reference_gb_s) {
    add(fmt::format("for {:.1f} GB/s streamed{}", subject.at_gb_s.value_or(*subject.fit->reference_gb_s),
                    subject.at_gb_s ? "" : ", as beside the ladder (--at says another rate)"));
  }
  if (subject.fit != nullptr && subject.fit->line.HasIntervals()) {
    const lab::Sessions& sessions = subject.fit->sessions;
    add(fmt::format(
        "low, high and ±% are of another session: two differ by {:.1f} % (standard deviation, {}); session: "
        "±% of the ladder's own; cache: of both, what the depth adds",
        100 * sessions.between,
        sessions.is_assumed ? "assumed; --between says another"
                            : fmt::format("of the ladder's {}", sessions.factors.size())));
  }
  if (WasChecked(rows)) {
    add("checked: ms as run, and adjusted to the forecast's memory speed by the GB/s that were read beside it; in: "
        "whether that lies within another session's interval");
  }
  if (subject.fit == nullptr) add("no interval: the line was stated, not fitted");
  if (subject.rate)
    add(subject.rate->text.empty() ? "the stated rate is one that the memory can deliver" : subject.rate->text);
  for (const ForecastRow& row : rows) {
    if (!row.record.empty())
      add(fmt::format("in the ledger: depth {} {}", row.forecast.depth, row.record.substr(0, 12)));
  }
  return texts;
}

std::string ForecastJson(const ForecastSubject& subject, std::span<const ForecastRow> rows) {
  Json json = {{"schema", "boltbeam.predict.v1"},
               {"model", subject.model->name},
               {"architecture", subject.model->architecture},
               {"weight_bytes", subject.model->weight_bytes},
               {"bytes_from", subject.model->bytes_from},
               {"fixed_ms", subject.fixed_ms},
               {"bandwidth_gb_s", subject.bandwidth_gb_s},
               {"worst_residual_ms", subject.worst_residual_ms},
               {"confidence", subject.confidence}};
  if (subject.fit != nullptr) {
    json["between_sessions_share"] = subject.fit->sessions.between;
    json["between_sessions_assumed"] = subject.fit->sessions.is_assumed;
  }
  const auto rate = [](const lab::Forecast& forecast, Json& to) {
    const bool has = forecast.HasInterval();
    to["tok_s"] = Number(forecast.tok_s());
    to["tok_s_low"] = has ? Number(forecast.tok_s_low()) : Json(nullptr);
    to["tok_s_high"] = has ? Number(forecast.tok_s_high()) : Json(nullptr);
    const measure::Interval& own = forecast.in_session;
    to["same_session_tok_s_low"] = has ? Number(1 / own.high) : Json(nullptr);
    to["same_session_tok_s_high"] = has && own.low > 0 ? Number(1 / own.low) : Json(nullptr);
  };
  if (!rows.empty()) rate(rows.front().forecast, json);  // of the first depth, where scripts look for them
  json["depths"] = Json::array();
  for (const ForecastRow& row : rows) {
    Json depth = {{"depth", row.forecast.depth}, {"bytes", row.forecast.bytes}, {"kv_bytes", row.forecast.kv_bytes}};
    depth["token_ms"] = Number(1e3 * row.forecast.seconds.estimate);
    depth["token_ms_low"] = Number(1e3 * row.forecast.seconds.low);
    depth["token_ms_high"] = Number(1e3 * row.forecast.seconds.high);
    depth["depth_half_width_ms"] = Number(1e3 * row.forecast.depth_half_s);
    rate(row.forecast, depth);
    depth["extrapolated"] = !row.forecast.extrapolations.empty();
    depth["extrapolations"] = row.forecast.extrapolations;
    depth["record"] = row.record.empty() ? Json(nullptr) : Json(row.record);
    if (row.miss) {
      depth["measured_ms"] = Number(1e3 * row.miss->measured_s);
      depth["measured_raw_ms"] = Number(1e3 * row.miss->raw_s);
      depth["miss_ms"] = Number(1e3 * row.miss->miss_s);
      depth["miss_share"] = Number(row.miss->miss_share);
      depth["raw_miss_ms"] = Number(1e3 * row.miss->raw_miss_s);
      depth["raw_miss_share"] = Number(row.miss->raw_miss_share);
      depth["beside_gb_s"] = row.miss->beside_gb_s ? Number(*row.miss->beside_gb_s) : Json(nullptr);
      depth["at_gb_s"] = row.miss->at_gb_s ? Number(*row.miss->at_gb_s) : Json(nullptr);
      depth["inside"] = row.miss->is_inside;
      depth["inside_same_session"] = row.miss->is_inside_session;
      depth["notes"] = row.miss->notes;
    }
    json["depths"].push_back(std::move(depth));
  }
  if (subject.rate) {
    json["rate"] = {{"implied_gb_s", subject.rate->implied_gb_s},
                    {"above_streamed", subject.rate->is_above_streamed},
                    {"text", subject.rate->text}};
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string ForecastReport(const ForecastSubject& subject, std::span<const ForecastRow> rows, Form form) {
  if (form == Form::kJson) return ForecastJson(subject, rows);
  const Table table = ForecastTable(rows), misses = MissTable(rows);
  if (form == Form::kCsv) return WasChecked(rows) ? misses.Csv() : table.Csv();
  const std::string title =
      Inert(fmt::format("{}: {:.3f} GB a token by {}; {:.2f} ms/token + bytes / {:.1f} GB/s, {:.0f} % intervals",
                        subject.model->name, subject.model->weight_bytes / 1e9, subject.model->bytes_from,
                        subject.fixed_ms, subject.bandwidth_gb_s, 100 * subject.confidence));
  const std::vector<std::string> sentences = Sentences(subject, rows);
  std::string text;
  if (form == Form::kMarkdown) {
    text = title + "\n\n" + table.Markdown() + "\n" + (WasChecked(rows) ? misses.Markdown() + "\n" : "");
    for (const std::string& sentence : sentences) text += "- " + Inert(sentence) + "\n";
    return text;
  }
  text = Wrap(title, 2) + "\n\n" + table.Text() + "\n" + (WasChecked(rows) ? misses.Text() + "\n" : "");
  for (const std::string& sentence : sentences) text += Wrap(Inert(sentence), 2) + "\n";
  return text;
}

}  // namespace boltbeam::report
