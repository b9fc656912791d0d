// One small wrong file, or more, for every code that the bytes of a file can provoke.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace boltbeam::gguf::testing {

struct Refusal {
  Code code;
  std::string variant;  // tells several files of one code apart
  bool strict = false;  // refused only when strict
  std::string bytes;
};

std::vector<Refusal> Refusals();

struct GoodFile {
  std::string name;
  std::string bytes;
};

/// Unusual files that are nevertheless right.
std::vector<GoodFile> GoodFiles();

}  // namespace boltbeam::gguf::testing
