// Text from a file or a flag, made fit for a message: it may hold terminal escapes, line breaks or no characters at
// all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace boltbeam::base {

/// Control bytes and bytes that are not UTF-8 as \xNN; at most limit bytes of text, then "...".
std::string Printable(std::string_view text, std::size_t limit = 80);

/// The bytes of the character that begins text: 1 to 4, or 0 when it is not valid UTF-8 (RFC 3629).
std::size_t Utf8Length(std::string_view text);

bool IsUtf8(std::string_view text);

}  // namespace boltbeam::base
