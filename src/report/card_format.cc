#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/html.h"
#include "report/lab_format.h"
#include "report/svg.h"
#include "report/table.h"

namespace boltbeam::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kNameWidth = 25;  // of a chip or a program in text
// Of one card's drawing, in pixels.
constexpr double kCardWidth = 400, kMargin = 20, kRow = 21, kHead = 92, kChartHeight = 190, kChartGap = 34, kAxis = 30,
                 kAxisText = 34, kNoteRow = 14;
constexpr std::size_t kNoteWidth = 62;  // characters of the small letters of a note

std::string Title(const lab::Card& card) { return fmt::format("{}, {}", card.alias, card.device); }

/// At most so many characters of a name, the rest an ellipsis.
std::string Cut(const std::string& text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (begins && ++shown > width) break;
  }
  return end == text.size() ? text : text.substr(0, end) + "…";
}

Table CardTable(std::span<const lab::Card> cards, std::size_t name_width = std::string::npos) {
  std::vector<Column> columns{{"", "quantity", Align::kLeft}};
  for (const lab::Card& card : cards) columns.push_back({Cut(Inert(card.alias), name_width), card.alias});
  Table table(std::move(columns));
  const auto add = [&](const std::string& label, auto text_of) {
    std::vector<Cell> cells{label};
    for (const lab::Card& card : cards) cells.emplace_back(Cut(Inert(text_of(card)), name_width));
    table.Add(std::move(cells));
  };
  add("chip", [](const lab::Card& card) { return card.device; });
  add("program", [](const lab::Card& card) { return card.program; });
  add("date", [](const lab::Card& card) { return card.date.substr(0, 10); });
  for (std::size_t i = 0; i < cards.front().lines.size(); ++i) {
    std::vector<Cell> cells{cards.front().lines[i].label};
    for (const lab::Card& card : cards) {
      const lab::CardLine& line = card.lines[i];
      cells.emplace_back(line.shown, line.value ? fmt::format("{}", *line.value) : "");
    }
    table.Add(std::move(cells));
  }
  return table;
}

std::vector<std::string> NotesOf(std::span<const lab::Card> cards) {
  std::vector<Said> said;
  for (const lab::Card& card : cards)
    said.push_back({card.alias + (card.program.empty() ? "" : ", " + card.program), card.notes});
  return SaidTogether(said);
}

/// Two beside each other, which is what 80 columns hold; more below them.
std::string CardText(std::span<const lab::Card> cards) {
  constexpr std::size_t kBeside = 2;
  std::string text;
  for (std::size_t i = 0; i < cards.size(); i += kBeside) {
    const std::span<const lab::Card> some = cards.subspan(i, std::min(kBeside, cards.size() - i));
    text += (i == 0 ? "" : "\n") + CardTable(some, kNameWidth).Text();
    for (const std::string& note : NotesOf(some)) text += Wrap(Inert(note), 2) + "\n";
  }
  return text;
}

/// A row for each number by its name in JSON, a column for each card.
std::string CardCsv(std::span<const lab::Card> cards) {
  std::vector<Column> columns{{"quantity", "quantity"}};
  for (const lab::Card& card : cards) columns.push_back({card.alias, card.alias});
  Table table(std::move(columns));
  const auto add = [&](const std::string& key, auto value_of) {
    std::vector<Cell> cells{key};
    for (const lab::Card& card : cards) cells.emplace_back(value_of(card));
    table.Add(std::move(cells));
  };
  const auto exact = [](const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; };
  add("device", [](const lab::Card& card) { return card.device; });
  add("program", [](const lab::Card& card) { return card.program; });
  add("date", [](const lab::Card& card) { return card.date; });
  for (std::size_t i = 0; i < cards.front().lines.size(); ++i) {
    const lab::CardLine& line = cards.front().lines[i];
    if (line.is_interval) {
      add(line.key + "_low", [&](const lab::Card& card) { return exact(card.lines[i].low); });
      add(line.key + "_high", [&](const lab::Card& card) { return exact(card.lines[i].high); });
    } else {
      add(line.key, [&](const lab::Card& card) { return exact(card.lines[i].value); });
    }
  }
  add("notes", [](const lab::Card& card) { return fmt::format("{}", fmt::join(card.notes, "; ")); });
  return table.Csv();
}

std::string CardJson(std::span<const lab::Card> cards) {
  Json json = {{"schema", "boltbeam.card.v1"}, {"cards", Json::array()}};
  for (const lab::Card& card : cards) {
    Json one = {{"alias", card.alias}, {"device", card.device}, {"program", card.program}, {"date", card.date}};
    for (const lab::CardLine& line : card.lines) {
      const auto put = [&](const std::string& key, const std::optional<double>& value) {
        one[key] = value ? Json(*value) : Json(nullptr);
      };
      if (line.is_interval) {
        put(line.key + "_low", line.low);
        put(line.key + "_high", line.high);
      } else {
        put(line.key, line.value);
      }
    }
    one["notes"] = card.notes;
    json["cards"].push_back(std::move(one));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// A card's notes as its drawing has them.
std::vector<std::string> NoteLines(const lab::Card& card) {
  std::vector<std::string> lines;
  for (const std::string& note : card.notes) {
    std::istringstream wrapped(Wrap(note, 2, kNoteWidth));
    for (std::string line; std::getline(wrapped, line);) lines.push_back(line);
  }
  return lines;
}

/// Milliseconds per token against gigabytes per token: the ladder's points and its line.
void DrawChart(Svg& svg, const lab::Card& card, double left, double top) {
  const double x0 = left + kMargin + kAxis, y0 = top + kChartHeight, width = left + kCardWidth - kMargin - x0;
  const double most_gb = 1.08 * std::ranges::max(card.points, {}, &lab::Point::bytes).bytes / 1e9;
  const auto line_ms = [&](double gb) { return 1e3 * (card.fixed_s + 1e9 * gb / card.bandwidth_bytes_s); };
  const double slowest = std::ranges::max(card.points, {}, &lab::Point::seconds).seconds;
  const double most_ms = 1.05 * std::max(line_ms(most_gb), 1e3 * slowest);
  const auto x = [&](double gb) { return x0 + width * gb / most_gb; };
  const auto y = [&](double ms) { return y0 - kChartHeight * std::clamp(ms / most_ms, 0.0, 1.0); };
  for (double ms = 0; ms <= most_ms; ms += RoundStep(most_ms)) {
    svg.Line(x0, y(ms), x0 + width, y(ms), "#ddd");
    svg.Text(x0 - 6, y(ms) + 4, fmt::format("{:.4g}", ms), {11, Svg::Anchor::kEnd, false, "#555"});
  }
  for (double gb = 0; gb <= most_gb; gb += RoundStep(most_gb)) {
    svg.Text(x(gb), y0 + 16, fmt::format("{:.4g}", gb), {11, Svg::Anchor::kMiddle, false, "#555"});
  }
  svg.Text(x0 + width, y0 + 32, "GB a token", {11, Svg::Anchor::kEnd, false, "#555"});
  svg.Text(x0 - 6, top - 8, "ms a token", {11, Svg::Anchor::kStart, false, "#555"});
  svg.Line(x(0), y(line_ms(0)), x(most_gb), y(line_ms(most_gb)), "#3465a4", 2);
  for (const lab::Point& point : card.points) svg.Dot(x(point.bytes / 1e9), y(1e3 * point.seconds), 4, "#cc0000");
}

}  // namespace

std::string CardReport(std::span<const lab::Card> cards, Form form) {
  if (form == Form::kJson) return CardJson(cards);
  if (form == Form::kCsv) return CardCsv(cards);
  if (form == Form::kText) return CardText(cards);
  std::string text = CardTable(cards).Markdown();
  const std::vector<std::string> notes = NotesOf(cards);
  if (!notes.empty()) text += "\n";
  for (const std::string& note : notes) text += "- " + Inert(note) + "\n";
  return text;
}

std::string CardSvg(std::span<const lab::Card> cards) {
  const double rows = static_cast<double>(cards.front().lines.size());
  std::size_t note_lines = 0;
  for (const lab::Card& card : cards) note_lines = std::max(note_lines, NoteLines(card).size());
  const double chart_end = kHead + rows * kRow + kChartGap + kChartHeight + kAxisText;
  const double height = chart_end + static_cast<double>(note_lines) * kNoteRow + kMargin;
  Svg svg(kCardWidth * static_cast<double>(cards.size()), height);
  std::string names;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const lab::Card& card = cards[i];
    names += (i == 0 ? "" : "; ") + Title(card);
    const double left = kCardWidth * static_cast<double>(i), right = left + kCardWidth - kMargin;
    svg.Box(left + 6, 6, kCardWidth - 12, height - 12, "#fdfdfb", "#bbb");
    svg.Text(left + kMargin, 36, Cut(card.alias, kNameWidth), {20, Svg::Anchor::kStart, true, "#222"});
    svg.Text(left + kMargin, 57, Cut(card.device, 2 * kNameWidth), {13, Svg::Anchor::kStart, false, "#444"});
    svg.Text(left + kMargin, 75, fmt::format("{}, {}", card.program, card.date.substr(0, 10)),
             {12, Svg::Anchor::kStart, false, "#666"});
    double y = kHead + kRow;
    for (const lab::CardLine& line : card.lines) {
      const bool is_inner = line.label.starts_with(' '), is_soft = is_inner || !line.value;
      svg.Text(left + kMargin + (is_inner ? 14 : 0), y, line.label,
               {13, Svg::Anchor::kStart, false, is_inner ? "#666" : "#222"});
      svg.Text(right, y, line.shown, {13, Svg::Anchor::kEnd, !is_soft, is_soft ? "#666" : "#222"});
      y += kRow;
    }
    DrawChart(svg, card, left, y - kRow + kChartGap);
    double note_y = chart_end + kNoteRow;
    for (const std::string& line : NoteLines(card)) {
      svg.Text(left + kMargin, note_y, line, {11, Svg::Anchor::kStart, false, "#666"});
      note_y += kNoteRow;
    }
  }
  return svg.Document("boltbeam card: " + names);
}

}  // namespace boltbeam::report
