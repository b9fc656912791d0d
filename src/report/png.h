// A drawing as pixels. The library that draws is opened only when somebody asks for it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace boltbeam::report {

/// A PNG of an SVG document, `scale` pixels for each of its own. kImage when the plugin libboltbeam-png.so is not there
/// ($BOLTBEAM_PNG_PLUGIN names another place) or refuses the document.
Result<std::string> PngOf(std::string_view svg, double scale = 2);

}  // namespace boltbeam::report
