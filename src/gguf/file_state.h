// What an open model holds: one file, or the parts of a split one.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/contents.h"
#include "gguf/file.h"

namespace boltbeam::gguf {

/// One open file. Its bytes lie at `base` and after in the addresses that a File's users see.
struct Part {
  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  Part(Part&& other) noexcept;
  Part& operator=(Part&&) = delete;
  ~Part();

  [[nodiscard]] std::uint64_t bytes() const { return static_cast<std::uint64_t>(opened.st_size); }
  /// kFileRead when the file's size or time of change differ from those at opening.
  [[nodiscard]] Result<void> CheckUnchanged() const;

  std::string path;
  int fd = -1;
  struct stat opened{};
  std::uint64_t base = 0;
};

struct File::State {
  std::vector<Part> parts;  // the first one has the metadata
  bool sparse = false;
  Contents contents;

  [[nodiscard]] const Part& first() const { return parts.front(); }
};

}  // namespace boltbeam::gguf
