#include "report/html.h"

#include <fmt/format.h>

#include <array>

#include "base/embedded.h"
#include "base/printable.h"

namespace boltbeam::report {
namespace {

// U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
constexpr std::array<std::string_view, 11> kDirectionMarks = {
    "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"};

}  // namespace

std::string Inert(std::string_view text, std::size_t limit) {
  std::string plain = base::Printable(text, limit);
  for (const std::string_view mark : kDirectionMarks) {
    for (std::size_t at = plain.find(mark); at != std::string::npos; at = plain.find(mark)) {
      plain.replace(at, mark.size(), "?");
    }
  }
  return plain;
}

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Scrolling(std::string_view table) {
  return "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"A table\">\n" + std::string(table) +
         "</div>\n";
}

std::string HtmlPage(std::string_view title, std::string_view body) {
  const std::string_view css = base::Embedded("report/page.css").value_or("");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n</header>\n"
      "<main>\n{2}</main>\n</body>\n</html>\n",
      EscapeHtml(title), css, body);
}

}  // namespace boltbeam::report
