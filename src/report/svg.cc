#include "report/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "report/html.h"

namespace boltbeam::report {
namespace {

constexpr std::string_view AnchorName(Svg::Anchor anchor) {
  if (anchor == Svg::Anchor::kMiddle) return "middle";
  return anchor == Svg::Anchor::kEnd ? "end" : "start";
}

}  // namespace

void Svg::Text(double x, double y, std::string_view text, const TextStyle& style) {
  body_ += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.0f}\" text-anchor=\"{}\" font-weight=\"{}\" "
      "fill=\"{}\">{}</text>\n",
      x, y, style.size, AnchorName(style.anchor), style.bold ? "bold" : "normal", style.color, EscapeHtml(Inert(text)));
}

void Svg::Line(double x1, double y1, double x2, double y2, std::string_view color, double width) {
  body_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n", x1, y1,
      x2, y2, color, width);
}

void Svg::Box(double x, double y, double width, double height, std::string_view fill, std::string_view border) {
  body_ +=
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" stroke=\"{}\"/>\n", x,
                  y, width, height, fill, border);
}

void Svg::Dot(double x, double y, double radius, std::string_view color) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"/>\n", x, y, radius, color);
}

std::string Svg::Document(std::string_view title, bool with_header) const {
  return fmt::format(
      "{}<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "font-family=\"DejaVu Sans, sans-serif\" role=\"img\">\n<title>{}</title>\n{}</svg>\n",
      with_header ? "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" : "", width_, height_, width_, height_,
      EscapeHtml(Inert(title)), body_);
}

double RoundStep(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double factor : {1, 2, 5}) {
    if (most / (factor * power) <= 5) return factor * power;
  }
  return 10 * power;
}

}  // namespace boltbeam::report
