// What the ledger needs of a disk, in whole steps: an interrupted call is repeated, a short one continued, and what the
// disk did not confirm is an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ledger/file_ops.h"

namespace boltbeam::ledger {

/// A descriptor that closes itself.
class OpenFile {
 public:
  static Result<OpenFile> Open(FileOps& files, const std::string& path, Access access);
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  Result<std::uint64_t> Size();
  /// Exactly those bytes; kFileRead when the file ends before.
  Result<std::string> Read(std::uint64_t offset, std::uint64_t size);
  Result<void> Write(std::uint64_t offset, std::string_view bytes);
  Result<void> Truncate(std::uint64_t size);
  /// Once: after a failure the system may forget what it could not write, and a second try would lie.
  Result<void> Sync();
  /// false: another holds it.
  Result<bool> TryLock();
  Result<bool> StillNamed();

 private:
  OpenFile(FileOps& files, std::string path, int file) : files_(&files), path_(std::move(path)), file_(file) {}

  FileOps* files_;
  std::string path_;
  int file_ = -1;
};

bool IsMissing(const Error& error);
Result<std::string> ReadFile(FileOps& files, const std::string& path);
/// The file has these bytes, on the disk, or what it had before. They are first written to `temporary`.
Result<void> ReplaceFile(FileOps& files, const std::string& path, const std::string& temporary, std::string_view bytes);
/// The folder and those above it that are missing; the entries of the lowest levels are on the disk afterwards.
Result<void> EnsureFolder(FileOps& files, const std::string& path, int levels);
Result<void> SyncFolder(FileOps& files, const std::string& path);
/// The folder that a file lies in.
std::string FolderOf(const std::string& path);

}  // namespace boltbeam::ledger
