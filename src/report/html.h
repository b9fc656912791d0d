// Text of any origin in a page: it stays text.
#pragma once

#include <string>
#include <string_view>

namespace boltbeam::report {

/// Without marks that turn the direction of what follows, and control characters as \xNN: for any output.
std::string Inert(std::string_view text, std::size_t limit = 400);

/// Fit for the content of an element and for an attribute in double quotes.
std::string EscapeHtml(std::string_view text);

/// A table's element in a frame of its own: where the screen is narrower, it scrolls there, and not the page.
std::string Scrolling(std::string_view table);

/// A whole page with that title and body, light or dark as the reader's system is. It loads nothing.
std::string HtmlPage(std::string_view title, std::string_view body);

}  // namespace boltbeam::report
