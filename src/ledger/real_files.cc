#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "ledger/file_ops.h"

namespace boltbeam::ledger {
namespace {

/// What the call returned, or -errno.
template <typename T>
T OrErrno(T result) {
  return result < 0 ? static_cast<T>(-errno) : result;
}

class Real final : public FileOps {
 public:
  int Open(const std::string& path, Access access) override {
    int flags = O_CLOEXEC | O_NONBLOCK;  // a pipe in place of a file must not stop us
    if (access != Access::kRead) flags |= O_CREAT;
    if (access == Access::kReplace) flags |= O_TRUNC;
    flags |= access == Access::kRead ? O_RDONLY : O_RDWR;
    const int file = ::open(path.c_str(), flags, 0644);
    if (file < 0) return -errno;
    struct stat status{};
    if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) return file;
    const int error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    ::close(file);
    return -error;
  }
  int Close(int file) override { return OrErrno(::close(file)); }
  std::int64_t ReadAt(int file, char* to, std::size_t size, std::uint64_t offset) override {
    return OrErrno(static_cast<std::int64_t>(::pread(file, to, size, static_cast<off_t>(offset))));
  }
  std::int64_t WriteAt(int file, const char* from, std::size_t size, std::uint64_t offset) override {
    return OrErrno(static_cast<std::int64_t>(::pwrite(file, from, size, static_cast<off_t>(offset))));
  }
  std::int64_t Size(int file) override {
    struct stat status{};
    return ::fstat(file, &status) < 0 ? -errno : static_cast<std::int64_t>(status.st_size);
  }
  int Truncate(int file, std::uint64_t size) override { return OrErrno(::ftruncate(file, static_cast<off_t>(size))); }
  int Sync(int file) override { return OrErrno(::fsync(file)); }
  int TryLock(int file) override { return OrErrno(::flock(file, LOCK_EX | LOCK_NB)); }
  int Names(const std::string& path, int file) override {
    struct stat by_name{}, by_file{};
    if (::fstat(file, &by_file) != 0) return -errno;
    if (::stat(path.c_str(), &by_name) != 0) return errno == ENOENT ? 0 : -errno;
    return by_name.st_ino == by_file.st_ino && by_name.st_dev == by_file.st_dev ? 1 : 0;
  }

  int Rename(const std::string& from, const std::string& to) override {
    return OrErrno(::rename(from.c_str(), to.c_str()));
  }
  int Remove(const std::string& path) override { return OrErrno(::unlink(path.c_str())); }
  int MakeFolder(const std::string& path) override { return OrErrno(::mkdir(path.c_str(), 0755)); }
  int SyncFolder(const std::string& path) override {
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -errno;
    const int result = OrErrno(::fsync(folder));
    ::close(folder);
    return result;
  }
  int List(const std::string& path, std::vector<std::string>& names) override {
    DIR* folder = ::opendir(path.c_str());
    if (folder == nullptr) return -errno;
    errno = 0;
    while (const dirent* entry = ::readdir(folder)) names.emplace_back(entry->d_name);
    const int error = errno;
    ::closedir(folder);
    std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
    std::ranges::sort(names);
    return -error;
  }
};

}  // namespace

FileOps& RealFiles() {
  static Real files;
  return files;
}

}  // namespace boltbeam::ledger
