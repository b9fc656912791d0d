#include "base/embedded.h"

namespace boltbeam::base {

Result<std::string_view> Embedded(std::string_view path) {
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (file.path == path) return file.text;
  }
  return Fail(Code::kInternal, std::string(path), "no such registry in this build", "a file listed in boltbeam_embed");
}

}  // namespace boltbeam::base
