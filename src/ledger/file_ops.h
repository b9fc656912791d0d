// Everything the ledger does to files goes through here, so that tests can count, fail, cut and reorder it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace boltbeam::ledger {

enum class Access : std::uint8_t {
  kRead,     // must exist
  kWrite,    // for reading and writing; made when it is missing
  kReplace,  // as kWrite, and emptied
};

/// Results below 0 are -errno. Nothing here retries: durable.h does.
class FileOps {
 public:
  virtual ~FileOps() = default;

  /// A descriptor.
  virtual int Open(const std::string& path, Access access) = 0;
  virtual int Close(int file) = 0;
  /// Bytes read: fewer than asked for are allowed, 0 is the end.
  virtual std::int64_t ReadAt(int file, char* to, std::size_t size, std::uint64_t offset) = 0;
  /// Bytes written: fewer than asked for are allowed.
  virtual std::int64_t WriteAt(int file, const char* from, std::size_t size, std::uint64_t offset) = 0;
  virtual std::int64_t Size(int file) = 0;
  virtual int Truncate(int file, std::uint64_t size) = 0;
  virtual int Sync(int file) = 0;
  /// -EWOULDBLOCK while another descriptor holds it. Goes with the descriptor.
  virtual int TryLock(int file) = 0;
  /// 1 when path still names the file that is open, otherwise 0.
  virtual int Names(const std::string& path, int file) = 0;

  virtual int Rename(const std::string& from, const std::string& to) = 0;
  virtual int Remove(const std::string& path) = 0;
  virtual int MakeFolder(const std::string& path) = 0;
  virtual int SyncFolder(const std::string& path) = 0;
  /// Names of the entries of a folder, sorted.
  virtual int List(const std::string& path, std::vector<std::string>& names) = 0;
};

/// The file system of this machine.
FileOps& RealFiles();

}  // namespace boltbeam::ledger
