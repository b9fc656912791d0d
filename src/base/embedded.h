// The registries under data/, compiled into the library.
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"

namespace boltbeam::base {

struct EmbeddedFile {
  std::string_view path;  // below data/, such as "formats/rows.json"
  std::string_view text;
};

std::span<const EmbeddedFile> EmbeddedFiles();

/// The scripts of Debian's libjs-vega that the report carries, by module: "vega-util".
std::span<const EmbeddedFile> VegaScripts();

/// The text of one registry; kInternal when the build did not embed it.
Result<std::string_view> Embedded(std::string_view path);

}  // namespace boltbeam::base
