#include "report/html.h"

#include <array>

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

std::string HtmlPage(std::string_view title, std::string_view body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>" + EscapeHtml(title) +
         "</title>\n<style>\n"
         "body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }\n"
         "table { border-collapse: collapse; }\n"
         "th, td { border-bottom: 1px solid #ccc; padding: 0.3em 0.7em; text-align: left; vertical-align: top; }\n"
         "td.number { text-align: right; font-variant-numeric: tabular-nums; }\n"
         "</style>\n</head>\n<body>\n<h1>" +
         EscapeHtml(title) + "</h1>\n" + std::string(body) + "</body>\n</html>\n";
}

}  // namespace boltbeam::report
