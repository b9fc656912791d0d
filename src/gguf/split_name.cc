#include "gguf/split_name.h"

#include <algorithm>

namespace boltbeam::gguf {

bool IsPartName(std::string_view path) {
  constexpr std::string_view kForm = "-#####-of-#####.gguf";
  if (path.size() < kForm.size()) return false;
  return std::ranges::equal(path.substr(path.size() - kForm.size()), kForm,
                            [](char c, char form) { return form == '#' ? c >= '0' && c <= '9' : c == form; });
}

}  // namespace boltbeam::gguf
