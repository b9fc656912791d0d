// A file that appears under its name whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace boltbeam::base {

/// Bytes go to a temporary file beside the one that is named. It disappears with the object, or with RemoveAll when a
/// signal ends the process, unless Commit gave it its name.
class PendingFile {
 public:
  /// kFileWrite: the name is a folder's or a device's, or the folder can't be written to. No folder is made.
  static Result<PendingFile> Create(std::string path);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::unexpected<Error> WriteError(int error) const;

  Result<void> Write(std::string_view bytes);
  /// fsync and rename.
  Result<void> Commit();

  /// Removes the temporary files of every object of the process. Safe in a signal handler; the process must end then.
  static void RemoveAll() noexcept;

 private:
  PendingFile(std::string path, std::string temporary, int fd);

  std::string path_;
  std::string* temporary_ = nullptr;  // on the heap, so that it stays where RemoveAll finds it
  int fd_ = -1;
};

}  // namespace boltbeam::base
