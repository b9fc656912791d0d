// What an open file holds.
#pragma once

#include <sys/stat.h>

#include <string>

#include "gguf/contents.h"
#include "gguf/file.h"

namespace boltbeam::gguf {

struct File::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  /// kFileRead when the file's size or time of change differ from those at opening.
  [[nodiscard]] Result<void> CheckUnchanged() const;

  std::string path;
  int fd = -1;
  struct stat opened{};
  bool sparse = false;
  Contents contents;
};

}  // namespace boltbeam::gguf
