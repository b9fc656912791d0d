#include "report/table.h"

#include <algorithm>
#include <utility>

#include "report/html.h"

namespace boltbeam::report {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kEllipsis = "…";

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The first `width` characters, the last of them an ellipsis when something was cut.
std::string Shorten(const std::string& text, std::size_t width) {
  if (DisplayWidth(text) <= width) return text;
  if (width == 0) return {};
  std::size_t end = 0;
  for (std::size_t taken = 0; end < text.size(); ++end) {
    if (IsContinuation(text[end])) continue;
    if (++taken == width) break;
  }
  return text.substr(0, end) + std::string(kEllipsis);
}

std::string Pad(const std::string& text, std::size_t width, Align align) {
  const std::string shown = Shorten(text, width);
  const std::string space(width - std::min(width, DisplayWidth(shown)), ' ');
  return align == Align::kLeft ? shown + space : space + shown;
}

/// Where the character that is number `width` begins, or the end.
std::size_t EndOf(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t taken = 0; end < text.size(); ++end) {
    if (IsContinuation(text[end])) continue;
    if (taken++ == width) break;
  }
  return end;
}

/// The first line of at most width columns, broken at a space where there is one; it is taken off the text.
std::string TakeLine(std::string_view& text, std::size_t width) {
  if (DisplayWidth(text) <= width) return std::string(std::exchange(text, {}));
  const std::size_t most = std::max<std::size_t>(1, EndOf(text, width));
  const std::size_t space = text[most] == ' ' ? most : text.rfind(' ', most);
  const bool at_space = space != std::string_view::npos && space > 0;
  std::string line(text.substr(0, at_space ? space : most));
  text.remove_prefix(line.size() + (at_space ? 1 : 0));
  return line;
}

std::vector<std::string> Lines(std::string_view text, std::size_t width) {
  std::vector<std::string> lines = {TakeLine(text, width)};
  while (!text.empty()) lines.push_back(TakeLine(text, width));
  return lines;
}

void TrimRight(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

std::string QuoteCsv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string EscapeMarkdown(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

}  // namespace

std::size_t DisplayWidth(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !IsContinuation(c); }));
}

std::string Wrap(std::string_view text, std::size_t indent, std::size_t width, std::size_t column) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const std::size_t length = DisplayWidth(word);
    if (column > indent && column + 1 + length > width) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > 0 && !lines.empty()) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += length;
  }
  return lines;
}

std::string WrapNames(std::string_view text, std::size_t indent, std::size_t width, std::size_t column) {
  std::string lines = TakeLine(text, width - std::min(width - 1, column));
  while (!text.empty()) {
    lines += "\n" + std::string(indent, ' ') + TakeLine(text, width - std::min(width - 1, indent));
  }
  return lines;
}

void Table::Add(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(""));
  rows_.push_back(std::move(cells));
}

void Table::AddRule() { rules_.push_back(rows_.size()); }

std::vector<std::size_t> Table::Widths(std::size_t width) const {
  std::vector<std::size_t> widths;
  std::size_t total = columns_.empty() ? 0 : kGap.size() * (columns_.size() - 1);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = DisplayWidth(columns_[i].title);
    for (const std::vector<Cell>& row : rows_) widest = std::max(widest, DisplayWidth(row[i].text));
    widths.push_back(widest);
    total += widest;
  }
  constexpr std::size_t kLeastWidth = 6;
  while (total > width) {  // numbers are never cut: the widest name gives way
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].align != Align::kLeft || widths[i] <= kLeastWidth) continue;
      if (widest == nullptr || widths[i] > *widest) widest = &widths[i];
    }
    if (widest == nullptr) break;
    --*widest;
    --total;
  }
  return widths;
}

std::string Table::Text(std::size_t width) const { return Lay(Widths(width), false); }

std::string Table::WrappedText(std::size_t width) const { return Lay(Widths(width), true); }

std::string Table::Lay(const std::vector<std::size_t>& widths, bool is_wrapped) const {
  std::size_t total = 0;
  for (const std::size_t column : widths) total += column + (total > 0 ? kGap.size() : 0);
  std::string rule;
  for (std::size_t i = 0; i < total; ++i) rule += "─";
  std::string text;
  const auto add_line = [&](auto cell) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += kGap;
      line += Pad(cell(i), widths[i], columns_[i].align);
    }
    TrimRight(line);
    text += line + "\n";
  };
  const auto add_wrapped = [&](const std::vector<Cell>& cells) {
    std::vector<std::vector<std::string>> lines;
    std::size_t most = 1;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      lines.push_back(Lines(cells[i].text, std::max<std::size_t>(1, widths[i])));
      most = std::max(most, lines.back().size());
    }
    for (std::size_t k = 0; k < most; ++k) {
      add_line([&](std::size_t i) { return k < lines[i].size() ? lines[i][k] : std::string(); });
    }
  };
  add_line([&](std::size_t i) { return columns_[i].title; });
  text += rule + "\n";
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (std::ranges::find(rules_, row) != rules_.end() && row > 0) text += rule + "\n";
    if (is_wrapped) {
      add_wrapped(rows_[row]);
    } else {
      add_line([&](std::size_t i) { return rows_[row][i].text; });
    }
  }
  return text;
}

std::string Table::Markdown() const {
  std::string text = "|", separator = "|";
  for (const Column& column : columns_) {
    text += " " + EscapeMarkdown(column.title) + " |";
    separator += column.align == Align::kLeft ? " --- |" : " ---: |";
  }
  text += "\n" + separator + "\n";
  for (const std::vector<Cell>& row : rows_) {
    text += "|";
    for (const Cell& cell : row) text += " " + EscapeMarkdown(cell.text) + " |";
    text += "\n";
  }
  return text;
}

std::string Table::Html() const {
  std::string text = "<table>\n<tr>";
  for (const Column& column : columns_) text += "<th>" + EscapeHtml(column.title) + "</th>";
  text += "</tr>\n";
  for (const std::vector<Cell>& row : rows_) {
    text += "<tr>";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      text += columns_[i].align == Align::kRight ? "<td class=\"number\">" : "<td>";
      text += EscapeHtml(row[i].text) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

std::string Table::Csv() const {
  const auto line = [&](auto cell) {
    std::string joined;
    bool first = true;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].key.empty()) continue;
      joined += (first ? "" : ",") + QuoteCsv(cell(i));
      first = false;
    }
    return joined + "\r\n";
  };
  std::string text = line([&](std::size_t i) { return columns_[i].key; });
  for (const std::vector<Cell>& row : rows_) text += line([&](std::size_t i) { return row[i].raw; });
  return text;
}

}  // namespace boltbeam::report
