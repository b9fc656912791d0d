#include "report/price_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/html.h"
#include "report/svg.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using Json = nlohmann::ordered_json;

std::string Usd(double value, int places = 2) { return (value < 0 ? "-$" : "$") + Decimal(std::abs(value), places); }
/// Prices of tokens span magnitudes: three places below ten dollars.
std::string TokenUsd(double value) { return Usd(value, value < 10 ? 3 : 2); }
std::string OrDash(const std::optional<double>& value) { return value ? TokenUsd(*value) : "-"; }
Json Optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string Raw(double value) { return fmt::format("{}", value); }
std::string Raw(const std::optional<double>& value) { return value ? Raw(*value) : ""; }

Table PaidTable(const lab::Price& price) {
  Table table({{"", "way", Align::kLeft},
               {"$/h", "usd_per_hour"},
               {"$/M tokens", "usd_per_million"},
               {"floor", "usd_per_million_at_floor"},
               {"gap", "gap_usd_per_million"},
               {"prompt/M", "prompt_usd_per_million"},
               {"request", "request_usd"},
               {"1 µs/year", "microsecond_usd_per_year"}});
  const auto add = [&](const char* name, const lab::PaidRate& paid) {
    const std::optional<double> floor = paid.usd_per_million_at_floor;
    std::optional<double> gap;
    if (floor) gap.emplace(paid.usd_per_million - *floor);
    table.Add({name,
               {Usd(paid.usd_per_hour, 3), Raw(paid.usd_per_hour)},
               {TokenUsd(paid.usd_per_million), Raw(paid.usd_per_million)},
               {OrDash(floor), Raw(floor)},
               {OrDash(gap), Raw(gap)},
               {OrDash(paid.prompt_usd_per_million), Raw(paid.prompt_usd_per_million)},
               {paid.request_usd ? Usd(*paid.request_usd, 6) : "-", Raw(paid.request_usd)},
               {Usd(paid.microsecond_usd_per_year), Raw(paid.microsecond_usd_per_year)}});
  };
  add("rented", price.rented);
  add("owned", price.owned);
  table.Add({"hosted", "-", {TokenUsd(price.hosted_usd_per_million), Raw(price.hosted_usd_per_million)}});
  table.Add({"with the fee", "-", {TokenUsd(price.hosted_with_fee), Raw(price.hosted_with_fee)}});
  return table;
}

Table YearTable(const lab::Price& price) {
  Table table({{"years", "years"}, {"rented", "rent_usd"}, {"owned", "own_usd"}, {"owning saves", "saved_usd"}});
  for (const lab::YearCost& year : price.years) {
    table.Add({fmt::format("{:g}", year.years),
               {Usd(year.rent_usd, 0), Raw(year.rent_usd)},
               {Usd(year.own_usd, 0), Raw(year.own_usd)},
               {Usd(year.rent_usd - year.own_usd, 0), Raw(year.rent_usd - year.own_usd)}});
  }
  return table;
}

Table InputTable(const lab::Price& price) {
  Table table({{"input", "name", Align::kLeft},
               {"value", "value"},
               {"unit", "unit", Align::kLeft},
               {"date", "date", Align::kLeft},
               {"source", "source", Align::kLeft}});
  for (const lab::PriceInput& input : price.list.inputs) {
    table.Add({input.name,
               {fmt::format("{:g}", input.value), Raw(input.value)},
               Inert(input.unit),
               Inert(input.date),
               Inert(input.source)});
  }
  return table;
}

std::string Millions(double tokens) { return Decimal(tokens / 1e6, 1) + " million"; }

std::vector<std::string> Sentences(const lab::Price& price) {
  std::vector<std::string> texts;
  std::string rate = fmt::format("{} tok/s", Decimal(price.tok_s, 1));
  if (price.question.batch > 1) {
    rate += fmt::format(" by {:g} sequences together, {} by one alone", price.question.batch,
                        Decimal(price.question.tok_s, 1));
    if (price.question.batch_floor_tok_s) {
      rate += ", the same share of the floor that `bound` gives the batch";
    } else if (!price.question.crossover) {
      rate += ", as long as the memory binds (a model, or --crossover, says how long)";
    }
    if (price.question.crossover) rate += fmt::format(", sums binding from M* {:.1f} on", *price.question.crossover);
  }
  texts.push_back(fmt::format("{}{}; load {}: {} tokens a day", rate,
                              price.floor_tok_s ? fmt::format(", floor {}", Decimal(*price.floor_tok_s, 1)) : "",
                              Percent(price.list.Get("load"), 0), Millions(price.tokens_per_day)));
  if (!price.floor_tok_s) texts.push_back("the floor is not known: name a model and a chip, or --floor-rate");
  texts.push_back(fmt::format("rented beats hosted above {} tokens a day, {}",
                              Millions(price.break_even_tokens_per_day),
                              price.break_even_load <= 1 ? "a load of " + Percent(price.break_even_load, 1)
                                                         : "more than this rate makes in a full day"));
  texts.push_back(price.months_to_own
                      ? fmt::format("owning is cheaper than renting after {:.1f} months ({:.1f} without the power)",
                                    *price.months_to_own, price.months_to_buy)
                      : "owning never gets cheaper: its power costs as much as the rent");
  return texts;
}

Json PaidJson(const lab::PaidRate& paid) {
  return {{"usd_per_hour", paid.usd_per_hour},
          {"usd_per_million", paid.usd_per_million},
          {"usd_per_million_at_floor", Optional(paid.usd_per_million_at_floor)},
          {"prompt_usd_per_million", Optional(paid.prompt_usd_per_million)},
          {"request_usd", Optional(paid.request_usd)},
          {"microsecond_usd_per_year", paid.microsecond_usd_per_year}};
}

std::string PriceJson(const lab::Price& price) {
  Json json = {{"schema", "boltbeam.price.v1"},
               {"usd_per_million", price.rented.usd_per_million},
               {"usd_per_million_at_floor", Optional(price.rented.usd_per_million_at_floor)},
               {"tok_s", price.tok_s},
               {"floor_tok_s", Optional(price.floor_tok_s)},
               {"batch", price.question.batch},
               {"tokens_per_day", price.tokens_per_day},
               {"rented", PaidJson(price.rented)},
               {"owned", PaidJson(price.owned)},
               {"hosted_usd_per_million", price.hosted_usd_per_million},
               {"hosted_with_fee_usd_per_million", price.hosted_with_fee},
               {"break_even_tokens_per_day", price.break_even_tokens_per_day},
               {"break_even_load", price.break_even_load},
               {"months_to_buy", price.months_to_buy},
               {"months_to_own", Optional(price.months_to_own)}};
  json["years"] = Json::array();
  for (const lab::YearCost& year : price.years) {
    json["years"].push_back({{"years", year.years}, {"rent_usd", year.rent_usd}, {"own_usd", year.own_usd}});
  }
  json["inputs"] = Json::array();
  for (const lab::PriceInput& input : price.list.inputs) {
    json["inputs"].push_back({{"name", input.name},
                              {"value", input.value},
                              {"unit", input.unit},
                              {"source", input.source},
                              {"date", input.date},
                              {"what", input.what}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// What each way has cost after so many years.
std::string YearChart(const lab::Price& price) {
  constexpr double kWidth = 640, kHeight = 300, kLeft = 80, kTop = 20, kPlotWidth = 440, kPlotHeight = 230;
  const double years = price.years.back().years;
  const double most = 1.05 * std::max(price.years.back().rent_usd, price.years.back().own_usd);
  const double card = price.list.Get("card_usd");
  Svg svg(kWidth, kHeight);
  const auto x = [&](double year) { return kLeft + kPlotWidth * year / years; };
  const auto y = [&](double usd) { return kTop + kPlotHeight * (1 - usd / most); };
  svg.Line(x(0), y(0), x(years), y(0), "#888");
  svg.Line(x(0), y(0), x(0), y(most), "#888");
  svg.Line(x(0), y(0), x(years), y(price.years.back().rent_usd), "#cc0000", 2);
  svg.Line(x(0), y(card), x(years), y(price.years.back().own_usd), "#3465a4", 2);
  svg.Text(x(years) + 8, y(price.years.back().rent_usd) + 4, "rented " + Usd(price.years.back().rent_usd, 0),
           {12, Svg::Anchor::kStart, false, "#cc0000"});
  svg.Text(x(years) + 8, y(price.years.back().own_usd) + 4, "owned " + Usd(price.years.back().own_usd, 0),
           {12, Svg::Anchor::kStart, false, "#3465a4"});
  const Svg::TextStyle small{11, Svg::Anchor::kEnd, false, "#555"};
  svg.Text(kLeft - 6, y(most) + 10, Usd(most, 0), small);
  svg.Text(kLeft - 6, y(0), "$0", small);
  svg.Text(x(years), y(0) + 16, fmt::format("{:g} years", years), small);
  const double crossing = price.months_to_own ? *price.months_to_own / 12 : -1;
  if (crossing > 0 && crossing <= years) {
    svg.Line(x(crossing), y(0), x(crossing), y(most), "#999", 1);
    svg.Text(x(crossing), y(0) + 16, fmt::format("{:.1f} months", *price.months_to_own),
             {11, Svg::Anchor::kMiddle, false, "#555"});
  }
  return svg.Document("What renting and owning cost over the years", false);
}

/// Dollars for a million tokens by each way, as bars.
std::string PriceChart(const lab::Price& price) {
  std::vector<std::pair<std::string, double>> bars = {{"rented, measured", price.rented.usd_per_million}};
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) bars.emplace_back(name, *value);
  };
  add("rented, at the floor", price.rented.usd_per_million_at_floor);
  add("owned, measured", price.owned.usd_per_million);
  add("owned, at the floor", price.owned.usd_per_million_at_floor);
  add("hosted", price.hosted_usd_per_million);
  add("hosted, with the fee", price.hosted_with_fee);
  const double most = std::ranges::max(bars, {}, [](const auto& bar) { return bar.second; }).second;
  constexpr double kBar = 26, kLeft = 160, kPlotWidth = 380, kWidth = 640;
  Svg svg(kWidth, 20 + kBar * static_cast<double>(bars.size()));
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double top = 10 + kBar * static_cast<double>(i), length = kPlotWidth * bars[i].second / most;
    svg.Text(kLeft - 8, top + 15, bars[i].first, {12, Svg::Anchor::kEnd, false, "#222"});
    svg.Box(kLeft, top + 2, std::max(1.0, length), kBar - 8, bars[i].first.contains("floor") ? "#a4c2e8" : "#3465a4");
    svg.Text(kLeft + length + 6, top + 15, TokenUsd(bars[i].second), {12, Svg::Anchor::kStart, false, "#222"});
  }
  return svg.Document("US dollars for a million tokens", false);
}

}  // namespace

std::string PriceReport(const lab::Price& price, Form form) {
  if (form == Form::kJson) return PriceJson(price);
  if (form == Form::kCsv) return PaidTable(price).Csv();
  const bool is_text = form == Form::kText;
  std::string text = is_text ? PaidTable(price).Text() : PaidTable(price).Markdown();
  text += "\n" + (is_text ? YearTable(price).Text() : YearTable(price).Markdown()) + "\n";
  for (const std::string& sentence : Sentences(price)) {
    text += is_text ? Wrap(sentence, 2) + "\n" : "- " + sentence + "\n";
  }
  return text + "\n" + (is_text ? InputTable(price).Text() : InputTable(price).Markdown());
}

std::string PriceHtml(const lab::Price& price) {
  std::string body = "<h2>A million tokens</h2>\n" + PriceChart(price) + PaidTable(price).Html();
  body += "<ul>\n";
  for (const std::string& sentence : Sentences(price)) body += "<li>" + EscapeHtml(sentence) + "</li>\n";
  body += "</ul>\n<h2>Renting and owning</h2>\n" + YearChart(price) + YearTable(price).Html();
  body += "<h2>What was taken for granted</h2>\n" + InputTable(price).Html();
  return HtmlPage("What a token costs", body);
}

}  // namespace boltbeam::report
