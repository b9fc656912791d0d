#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
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

/// Of an interval, in percent of what is foretold.
std::string HalfWidth(const lab::Forecast& forecast, const measure::Interval& interval) {
  if (!forecast.HasInterval()) return "-";
  return Decimal(100 * (interval.high - interval.estimate) / forecast.seconds.estimate, 1);
}

std::string Inside(const lab::Miss& miss) { return miss.is_inside ? "yes" : "NO"; }

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
    table.Add({std::to_string(forecast.depth),
               {Decimal(forecast.bytes / 1e9, 3), fmt::format("{:.0f}", forecast.bytes)},
               Decimal(1e3 * forecast.seconds.estimate, 2),
               Rate(forecast.tok_s()),
               has ? Rate(forecast.tok_s_low()) : "-",
               has ? Rate(forecast.tok_s_high()) : "-",
               HalfWidth(forecast, forecast.seconds),
               HalfWidth(forecast, forecast.in_session),
               has ? Decimal(100 * forecast.depth_half_s / forecast.seconds.estimate, 1) : "-",
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
               fmt::format("{:+.1f}", 100 * miss.miss_share), Inside(miss)});
  }
  return table;
}

/// One row for each model and depth: what was foretold, and beside it what was measured.
Table TogetherTable(std::span<const ForecastSubject> subjects, bool was_checked) {
  std::vector<Column> columns{
      {"model", "model", Align::kLeft}, {"depth", "depth"}, {"foretold", "token_ms"}, {"±%", "half_width_pct"}};
  const std::vector<Column> rates{{"tok/s", "tok_s"}, {"low", "tok_s_low"}, {"high", "tok_s_high"}};
  const std::vector<Column> misses{{"as run", "measured_raw_ms"},
                                   {"adjusted", "measured_ms"},
                                   {"miss %", "miss_pct"},
                                   {"in", "inside", Align::kLeft}};
  std::ranges::copy(was_checked ? misses : rates, std::back_inserter(columns));
  Table table(std::move(columns));
  for (const ForecastSubject& subject : subjects) {
    for (const ForecastRow& row : subject.rows) {
      const lab::Forecast& forecast = row.forecast;
      std::vector<Cell> cells{Inert(subject.model.name), std::to_string(forecast.depth),
                              Decimal(1e3 * forecast.seconds.estimate, 2), HalfWidth(forecast, forecast.seconds)};
      if (!was_checked) {
        const bool has = forecast.HasInterval();
        cells.insert(cells.end(), {Rate(forecast.tok_s()), has ? Rate(forecast.tok_s_low()) : "-",
                                   has ? Rate(forecast.tok_s_high()) : "-"});
      } else if (row.miss) {
        cells.insert(cells.end(), {Decimal(1e3 * row.miss->raw_s, 2), Decimal(1e3 * row.miss->measured_s, 2),
                                   fmt::format("{:+.1f}", 100 * row.miss->miss_share), Inside(*row.miss)});
      } else {
        cells.insert(cells.end(), {"-", "-", "-", "-"});  // the visit was disturbed
      }
      table.Add(std::move(cells));
    }
  }
  return table;
}

/// Why a forecast of a fitted line can't be in the ledger; empty when it can.
std::string WhyNotRecorded(const lab::MachineFit& fit, const lab::Forecast& forecast) {
  if (forecast.HasInterval()) return "";
  const std::string why = fit.line.HasIntervals() ? fmt::format("the interval at depth {} reaches zero", forecast.depth)
                                                  : "no interval: through two models there is always a line";
  return why + ". The ledger keeps what has one, so that neither the forecast nor its miss is recorded";
}

/// What the line of a model is of, and what its intervals hold for.
void TellOfLine(const ForecastSubject& subject, std::vector<std::string>& texts) {
  if (!subject.fit) {
    texts.emplace_back("no interval: the line was stated, not fitted");
    return;
  }
  const lab::MachineFit& fit = *subject.fit;
  std::vector<std::string> facts;
  if (subject.own_rows_out) facts.push_back(fmt::format("unseen, its own rows left out: {}", *subject.own_rows_out));
  if (fit.reference_gb_s) {
    facts.push_back(fmt::format("for {:.1f} GB/s streamed{}", subject.at_gb_s.value_or(*fit.reference_gb_s),
                                subject.at_gb_s ? "" : ", as beside the ladder (--at says another)"));
  }
  if (fit.line.HasIntervals()) {
    facts.push_back(fmt::format("two sessions differ by {:.1f} % (standard deviation, {})", 100 * fit.sessions.between,
                                fit.sessions.is_assumed ? "assumed; --between says another"
                                                        : fmt::format("of its {}", fit.sessions.factors.size())));
  }
  if (!facts.empty()) texts.push_back(fmt::format("{}", fmt::join(facts, "; ")));
  if (fit.line.HasIntervals()) texts.emplace_back("low, high and ±% are of another session");
}

std::vector<std::string> Sentences(const ForecastSubject& subject) {
  std::vector<std::string> texts;
  const auto add = [&](const std::string& text) {
    if (!text.empty() && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  };
  for (const ForecastRow& row : subject.rows) {
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
  TellOfLine(subject, texts);
  if (WasChecked(subject.rows)) {
    add("checked: ms as run, and adjusted to the forecast's memory speed by the GB/s that were read beside it; in: "
        "whether that lies within another session's interval");
  }
  if (subject.rate)
    add(subject.rate->text.empty() ? "the stated rate is one that the memory can deliver" : subject.rate->text);
  for (const ForecastRow& row : subject.rows) {
    if (subject.fit) add(WhyNotRecorded(*subject.fit, row.forecast));
    if (!row.record.empty())
      add(fmt::format("in the ledger: depth {} {}", row.forecast.depth, row.record.substr(0, 12)));
  }
  return texts;
}

/// How many of several misses are inside, and how often chance alone leaves one outside.
std::string Held(std::span<const ForecastSubject> subjects) {
  std::size_t inside = 0, all = 0;
  for (const ForecastSubject& subject : subjects) {
    for (const ForecastRow& row : subject.rows) {
      if (!row.miss || !row.forecast.HasInterval()) continue;
      inside += row.miss->is_inside ? 1 : 0;
      ++all;
    }
  }
  if (all == 0) return "";
  const double chance = std::min(1.0, static_cast<double>(all) * (1 - subjects.front().confidence));
  return fmt::format(
      "{} of {} inside. Each interval holds for itself: of {} together, one or more is outside by chance in up to "
      "{:.0f} % of such series",
      inside, all, all, 100 * chance);
}

std::vector<std::string> SentencesOfAll(std::span<const ForecastSubject> subjects) {
  std::vector<Said> said;
  for (const ForecastSubject& subject : subjects) said.push_back({subject.model.name, Sentences(subject)});
  std::vector<std::string> texts = SaidTogether(said);
  if (subjects.size() > 1) {
    if (const std::string held = Held(subjects); !held.empty()) texts.insert(texts.begin(), held);
  } else if (subjects.front().fit && subjects.front().fit->line.HasIntervals()) {
    texts.emplace_back("session: ±% of the ladder's own sessions; cache: of both, what the depth adds");
  }
  return texts;
}

Json ForecastJson(const ForecastSubject& subject) {
  Json json = {{"schema", "boltbeam.predict.v1"},
               {"model", subject.model.name},
               {"architecture", subject.model.architecture},
               {"weight_bytes", subject.model.weight_bytes},
               {"bytes_from", subject.model.bytes_from},
               {"fixed_ms", subject.fixed_ms},
               {"bandwidth_gb_s", subject.bandwidth_gb_s},
               {"worst_residual_ms", subject.worst_residual_ms},
               {"confidence", subject.confidence}};
  if (subject.fit) {
    json["between_sessions_share"] = subject.fit->sessions.between;
    json["between_sessions_assumed"] = subject.fit->sessions.is_assumed;
  }
  if (subject.own_rows_out) json["own_rows_left_out"] = *subject.own_rows_out;
  const auto rate = [](const lab::Forecast& forecast, Json& to) {
    const bool has = forecast.HasInterval();
    to["tok_s"] = Number(forecast.tok_s());
    to["tok_s_low"] = has ? Number(forecast.tok_s_low()) : Json(nullptr);
    to["tok_s_high"] = has ? Number(forecast.tok_s_high()) : Json(nullptr);
    const measure::Interval& own = forecast.in_session;
    to["same_session_tok_s_low"] = has ? Number(1 / own.high) : Json(nullptr);
    to["same_session_tok_s_high"] = has && own.low > 0 ? Number(1 / own.low) : Json(nullptr);
  };
  if (!subject.rows.empty())
    rate(subject.rows.front().forecast, json);  // of the first depth, where scripts look for them
  json["depths"] = Json::array();
  for (const ForecastRow& row : subject.rows) {
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
  return json;
}

std::string JsonOfAll(std::span<const ForecastSubject> subjects) {
  Json json;
  if (subjects.size() == 1) {
    json = ForecastJson(subjects.front());
  } else {
    json = {{"schema", "boltbeam.predict.v1"}, {"models", Json::array()}};
    for (const ForecastSubject& subject : subjects) json["models"].push_back(ForecastJson(subject));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// ", 95 % intervals" where there is one.
std::string Confidence(std::span<const ForecastSubject> subjects) {
  const bool has_interval = std::ranges::any_of(subjects, [](const ForecastSubject& subject) {
    return std::ranges::any_of(subject.rows, [](const ForecastRow& row) { return row.forecast.HasInterval(); });
  });
  return has_interval ? fmt::format(", {:.0f} % intervals", 100 * subjects.front().confidence) : "";
}

std::string Title(std::span<const ForecastSubject> subjects) {
  if (subjects.size() > 1) return fmt::format("{} models{}", subjects.size(), Confidence(subjects));
  const ForecastSubject& subject = subjects.front();
  return fmt::format("{}: {:.3f} GB a token by {}; {:.2f} ms/token + bytes / {:.1f} GB/s{}", subject.model.name,
                     subject.model.weight_bytes / 1e9, subject.model.bytes_from, subject.fixed_ms,
                     subject.bandwidth_gb_s, Confidence(subjects));
}

}  // namespace

std::vector<std::string> SaidTogether(std::span<const Said> said) {
  std::vector<std::string> together;
  for (const Said& one : said) {
    for (const std::string& text : one.texts) {
      const bool is_of_all = std::ranges::all_of(
          said, [&](const Said& other) { return std::ranges::find(other.texts, text) != other.texts.end(); });
      if (!is_of_all) {
        together.push_back(one.name + ": " + text);
      } else if (&one == &said.front()) {
        together.push_back(text);
      }
    }
  }
  return together;
}

std::string ForecastReport(std::span<const ForecastSubject> subjects, Form form) {
  if (form == Form::kJson) return JsonOfAll(subjects);
  const bool was_checked =
      std::ranges::any_of(subjects, [](const ForecastSubject& subject) { return WasChecked(subject.rows); });
  std::vector<Table> tables;
  if (subjects.size() > 1) {
    tables.push_back(TogetherTable(subjects, was_checked));
  } else {
    tables.push_back(ForecastTable(subjects.front().rows));
    if (was_checked) tables.push_back(MissTable(subjects.front().rows));
  }
  if (form == Form::kCsv) return tables.back().Csv();
  const bool is_markdown = form == Form::kMarkdown;
  const std::string title = Inert(Title(subjects));
  std::string text = (is_markdown ? title : Wrap(title, 2)) + "\n\n";
  for (const Table& table : tables) text += (is_markdown ? table.Markdown() : table.Text()) + "\n";
  for (const std::string& sentence : SentencesOfAll(subjects)) {
    text += (is_markdown ? "- " + Inert(sentence) : Wrap(Inert(sentence), 2)) + "\n";
  }
  return text;
}

}  // namespace boltbeam::report
