// Names of the parts of a model that is split over several files: "NAME-00002-of-00005.gguf".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace boltbeam::gguf {

struct PartName {
  std::string prefix;        // what comes before the number, with its folder
  std::uint32_t number = 0;  // from 1
  std::uint32_t count = 0;

  /// The name of another part: in the same folder, whatever a file's metadata say.
  [[nodiscard]] std::string Path(std::uint32_t part) const;
};

std::optional<PartName> ParsePartName(std::string_view path);

}  // namespace boltbeam::gguf
