#include "model/cache_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace boltbeam::model {

std::string CacheFormats::Name() const {
  return keys == values ? keys->name : fmt::format("{}/{}", keys->name, values->name);
}

std::uint64_t CacheFormats::Bytes(std::uint64_t elements) const {
  return elements / keys->elements * keys->bytes + elements / values->elements * values->bytes;
}

bool CanCache(const formats::Format& format) {
  using formats::Encoding;
  if (!format.layout || format.coding) return false;
  const formats::Layout& row = *format.layout;
  if (row.encoding) return *row.encoding == Encoding::kF16 || *row.encoding == Encoding::kF32;
  return row.codes.bits == 8 && row.codes.is_signed && row.codebook.empty() && !row.scales && !row.m &&
         row.d.encoding == Encoding::kF16 && row.d.factor == 1 && format.elements % 16 == 0;
}

std::string CacheFormatName(const formats::Format& format) {
  std::string name = format.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::vector<std::string> CacheFormatNames() {
  std::vector<std::string> names;
  for (const formats::Format& format : formats::AllFormats()) {
    if (CanCache(format)) names.push_back(CacheFormatName(format));
  }
  std::ranges::sort(names);
  return names;
}

Result<const formats::Format*> FindCacheFormat(std::string_view flag, std::string_view name) {
  for (const formats::Format& format : formats::AllFormats()) {
    if (CanCache(format) && CacheFormatName(format) == name) return &format;
  }
  return Fail(Code::kUsage, std::string(flag), std::string(name),
              fmt::format("a format that a cache is kept in: {}", fmt::join(CacheFormatNames(), ", ")));
}

}  // namespace boltbeam::model
