#include "gguf/split_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace boltbeam::gguf {

std::string PartName::Path(std::uint32_t part) const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, part, count);
}

std::optional<PartName> ParsePartName(std::string_view path) {
  constexpr std::string_view kForm = "-#####-of-#####.gguf";
  if (path.size() < kForm.size()) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kForm.size());
  const bool fits =
      std::ranges::equal(tail, kForm, [](char c, char form) { return form == '#' ? c >= '0' && c <= '9' : c == form; });
  if (!fits) return std::nullopt;
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::from_chars(tail.data() + at, tail.data() + at + 5, value);
    return value;
  };
  return PartName{std::string(path.substr(0, path.size() - kForm.size())), number(1), number(10)};
}

}  // namespace boltbeam::gguf
