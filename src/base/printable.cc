#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace boltbeam::base {
namespace {

std::uint8_t ByteAt(std::string_view text, std::size_t i) { return static_cast<std::uint8_t>(text[i]); }

}  // namespace

std::size_t Utf8Length(std::string_view text) {
  if (text.empty()) return 0;
  const std::uint8_t first = ByteAt(text, 0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((ByteAt(text, i) & 0xC0U) != 0x80) return 0;
  }
  const std::uint8_t second = ByteAt(text, 1);
  if (first == 0xE0 && second < 0xA0) return 0;   // could be written with two bytes
  if (first == 0xED && second >= 0xA0) return 0;  // a surrogate
  if (first == 0xF0 && second < 0x90) return 0;   // could be written with three bytes
  if (first == 0xF4 && second >= 0x90) return 0;  // above U+10FFFF
  return length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Printable(std::string_view text, std::size_t limit) {
  std::string out;
  std::size_t taken = 0;
  while (taken < text.size()) {
    const std::string_view rest = text.substr(taken);
    const std::size_t length = Utf8Length(rest);
    if (taken + (length == 0 ? 1 : length) > limit) return out + "...";
    const std::uint8_t first = ByteAt(rest, 0);
    // U+0080 to U+009F are control characters too: terminals obey them.
    const bool control = first < 0x20 || first == 0x7F || (first == 0xC2 && length == 2 && ByteAt(rest, 1) < 0xA0);
    if (length == 0 || control) {
      const std::size_t bytes = length == 0 ? 1 : length;
      for (std::size_t i = 0; i < bytes; ++i) out += fmt::format("\\x{:02x}", ByteAt(rest, i));
      taken += bytes;
    } else {
      out += rest.substr(0, length);
      taken += length;
    }
  }
  return out;
}

}  // namespace boltbeam::base
