// The formats in which a cache of keys and values can be kept: rows of the formats' registry whose numbers a pass can
// write, plain floats and codes of 8 bits with an f16 scale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/format.h"

namespace boltbeam::model {

/// What keys and values are kept in. Never null.
struct CacheFormats {
  const formats::Format* keys = formats::FindFormat("F16");
  const formats::Format* values = formats::FindFormat("F16");
  friend bool operator==(const CacheFormats&, const CacheFormats&) = default;

  /// "F16", or "Q8_0/F16" when they differ.
  [[nodiscard]] std::string Name() const;
  /// Keys and values of so many elements each, whole blocks.
  [[nodiscard]] std::uint64_t Bytes(std::uint64_t elements) const;
};

bool CanCache(const formats::Format& format);

/// As command lines write them: f16, f32, q8_0.
std::vector<std::string> CacheFormatNames();
std::string CacheFormatName(const formats::Format& format);

/// kUsage, naming the flag, when no cache is kept in this format.
Result<const formats::Format*> FindCacheFormat(std::string_view flag, std::string_view name);

}  // namespace boltbeam::model
