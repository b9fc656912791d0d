// What must hold for a bit layout before anything reads through it.
#pragma once

#include <cstdint>
#include <string>

#include "formats/coding.h"
#include "formats/format.h"

namespace boltbeam::formats {

/// Every bit of the block belongs to exactly one number, every piece lies within one byte, and pieces make up whole
/// numbers. kFormatRow otherwise.
Result<void> CheckLayout(const Layout& layout, std::uint32_t elements, std::uint32_t bytes, const std::string& where);
/// The same of a coding, and that its groups make up the block.
Result<void> CheckCoding(const Coding& coding, std::uint32_t elements, std::uint32_t bytes, const std::string& where);

}  // namespace boltbeam::formats
