// A small drawing: lines, points and texts at places in pixels, as one SVG document.
#pragma once

#include <string>
#include <string_view>

namespace boltbeam::report {

class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {}

  enum class Anchor { kStart, kMiddle, kEnd };
  struct TextStyle {
    double size = 13;
    Anchor anchor = Anchor::kStart;
    bool bold = false;
    std::string_view color = "#222";
  };

  void Text(double x, double y, std::string_view text, const TextStyle& style);
  void Line(double x1, double y1, double x2, double y2, std::string_view color, double width = 1);
  void Box(double x, double y, double width, double height, std::string_view fill, std::string_view border = "none");
  void Dot(double x, double y, double radius, std::string_view color);

  /// The whole document; `title` is for who can't see it. with_header: as a file of its own, not inside a page.
  [[nodiscard]] std::string Document(std::string_view title, bool with_header = true) const;

 private:
  double width_, height_;
  std::string body_;
};

/// For the lines of a grid: 1, 2 or 5 times a power of ten, of which at most five fit into `most`.
double RoundStep(double most);

}  // namespace boltbeam::report
