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

constexpr std::string_view kTitle = "What a token costs";

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

/// has_what: with what each input is, for which a terminal has no room.
Table InputTable(const lab::Price& price, bool has_what) {
  Table table({{"input", "name", Align::kLeft},
               {"value", "value"},
               {"unit", "unit", Align::kLeft},
               {"date", "date"},
               {"source", "source", Align::kLeft}});
  for (const lab::PriceInput& input : price.list.inputs) {
    const std::string what = has_what && !input.what.empty() ? ": " + input.what : "";
    table.Add({input.name, fmt::format("{:g}", input.value), Inert(input.unit), Inert(input.date),
               Inert(input.source + what)});
  }
  return table;
}

std::string Millions(double tokens) { return Decimal(tokens / 1e6, 1) + " million"; }

std::string BreakEvenText(const char* way, const lab::Price::BreakEven& point) {
  return fmt::format(
      "{} beats hosted above {} tokens a day, {}", way, Millions(point.tokens_per_day),
      point.load <= 1 ? "a load of " + Percent(point.load, 1) : "more than this rate makes in a full day");
}

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
  texts.push_back(BreakEvenText("rented", price.rented_against_hosted));
  texts.push_back(BreakEvenText("owned", price.owned_against_hosted));
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
               {"break_even_tokens_per_day", price.rented_against_hosted.tokens_per_day},
               {"break_even_load", price.rented_against_hosted.load},
               {"owned_break_even_tokens_per_day", price.owned_against_hosted.tokens_per_day},
               {"owned_break_even_load", price.owned_against_hosted.load},
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

// Of both drawings, in pixels: as wide as a phone's screen, and a page's text at its side scales with it.
constexpr double kDrawingWidth = 360;
// The page's own colours, light and dark.
constexpr std::string_view kInk = "var(--ink)", kSoft = "var(--soft)", kGrid = "var(--line)", kRented = "var(--lost)",
                           kOwned = "var(--mark)";

/// For a drawing: "$79k".
std::string ShortUsd(double value) {
  if (value >= 1e6) return fmt::format("${:.3g}M", value / 1e6);
  return value >= 1e4 ? fmt::format("${:.0f}k", value / 1e3) : Usd(value, 0);
}

/// What each way has cost after so many years.
std::string YearChart(const lab::Price& price) {
  constexpr double kHeight = 260, kLeft = 48, kTop = 26, kPlotWidth = 216, kPlotHeight = 206, kLine = 15;
  const lab::YearCost& last = price.years.back();
  const double years = last.years, most = 1.05 * std::max(last.rent_usd, last.own_usd);
  Svg svg(kDrawingWidth, kHeight);
  const auto x = [&](double year) { return kLeft + kPlotWidth * year / years; };
  const auto y = [&](double usd) { return kTop + kPlotHeight * (1 - usd / most); };
  const double step = RoundStep(most), year_step = std::max(1.0, RoundStep(years));
  for (double usd = 0; usd <= most; usd += step) {
    svg.Line(x(0), y(usd), x(years), y(usd), kGrid);
    svg.Text(kLeft - 6, y(usd) + 4, ShortUsd(usd), {11, Svg::Anchor::kEnd, false, kSoft});
  }
  for (double year = 0; year <= years; year += year_step) {
    svg.Text(x(year), y(0) + 18, fmt::format("{:g}", year), {11, Svg::Anchor::kMiddle, false, kSoft});
  }
  svg.Text(x(years) + 10, y(0) + 18, "years", {11, Svg::Anchor::kStart, false, kSoft});
  const double crossing = price.months_to_own ? *price.months_to_own / 12 : -1;
  if (crossing > 0 && crossing <= years) {
    svg.Line(x(crossing), y(0), x(crossing), kTop - 8, kSoft);
    svg.Text(x(crossing), kTop - 13, fmt::format("{:.1f} months", *price.months_to_own),
             {11, Svg::Anchor::kMiddle, false, kSoft});
  }
  svg.Line(x(0), y(0), x(years), y(last.rent_usd), kRented, 2);
  svg.Line(x(0), y(price.list.Get("card_usd")), x(years), y(last.own_usd), kOwned, 2);
  // The names at the lines' ends, never on each other.
  const double apart = std::max(0.0, kLine - std::abs(y(last.rent_usd) - y(last.own_usd))) / 2;
  const double up = last.rent_usd >= last.own_usd ? apart : -apart;
  svg.Text(x(years) + 8, y(last.rent_usd) + 4 - up, "rented " + ShortUsd(last.rent_usd),
           {12, Svg::Anchor::kStart, false, kRented});
  svg.Text(x(years) + 8, y(last.own_usd) + 4 + up, "owned " + ShortUsd(last.own_usd),
           {12, Svg::Anchor::kStart, false, kOwned});
  return "<div class=\"drawing\">\n" + svg.Document("What renting and owning cost over the years", false) + "</div>\n";
}

/// Dollars for a million tokens by each way, as bars: filled as measured, hollow at the floor.
std::string PriceChart(const lab::Price& price) {
  struct Bar {
    const char* name;
    double usd;
    std::string_view color;
    bool is_hollow;
  };
  std::vector<Bar> bars;
  const auto add = [&](const char* name, const std::optional<double>& usd, std::string_view color, bool is_hollow) {
    if (usd) bars.push_back({name, *usd, color, is_hollow});
  };
  add("rented", price.rented.usd_per_million, kRented, false);
  add("rented, at the floor", price.rented.usd_per_million_at_floor, kRented, true);
  add("owned", price.owned.usd_per_million, kOwned, false);
  add("owned, at the floor", price.owned.usd_per_million_at_floor, kOwned, true);
  add("hosted", price.hosted_usd_per_million, "var(--floor)", false);
  add("hosted, with the fee", price.hosted_with_fee, "var(--floor)", false);
  const double most = std::ranges::max(bars, {}, &Bar::usd).usd;
  constexpr double kBar = 26, kLeft = 128, kPlotWidth = 160;
  Svg svg(kDrawingWidth, 8 + kBar * static_cast<double>(bars.size()));
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    const double top = 4 + kBar * static_cast<double>(i), length = std::max(1.0, kPlotWidth * bar.usd / most);
    svg.Text(kLeft - 8, top + 17, bar.name, {12, Svg::Anchor::kEnd, false, kInk});
    svg.Box(kLeft, top + 4, length, kBar - 8, bar.is_hollow ? "none" : bar.color, bar.color);
    svg.Text(kLeft + length + 6, top + 17, bar.usd < 1e4 ? TokenUsd(bar.usd) : ShortUsd(bar.usd),
             {12, Svg::Anchor::kStart, false, kInk});
  }
  return "<div class=\"drawing\">\n" + svg.Document("US dollars for a million tokens", false) + "</div>\n";
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
  return text + "\n" + (is_text ? InputTable(price, false).WrappedText() : InputTable(price, true).Markdown());
}

std::string PriceSections(const lab::Price& price, int level) {
  const auto heading = [&](const char* text) { return fmt::format("<h{0}>{1}</h{0}>\n", level, text); };
  std::string body = heading("A million tokens") + PriceChart(price) + Scrolling(PaidTable(price).Html()) + "<ul>\n";
  for (const std::string& sentence : Sentences(price)) body += "<li>" + EscapeHtml(sentence) + "</li>\n";
  body += "</ul>\n" + heading("Renting and owning") + YearChart(price) + Scrolling(YearTable(price).Html());
  return body + heading("What was taken for granted") + Scrolling(InputTable(price, true).Html());
}

std::string PriceHtml(const lab::Price& price) { return HtmlPage(kTitle, PriceSections(price, 2)); }

}  // namespace boltbeam::report
