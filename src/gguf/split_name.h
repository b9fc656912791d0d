// Names of the parts of a model that is split over several files: "NAME-00002-of-00005.gguf".
#pragma once

#include <string_view>

namespace boltbeam::gguf {

bool IsPartName(std::string_view path);

}  // namespace boltbeam::gguf
