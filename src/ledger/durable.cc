#include "ledger/durable.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace boltbeam::ledger {
namespace {

// A call that is interrupted this often in a row is not going to come back.
constexpr int kMostInterruptions = 100;

/// Repeats an interrupted call.
template <typename Call>
auto Patiently(Call call) {
  auto result = call();
  for (int i = 0; result == -EINTR && i < kMostInterruptions; ++i) result = call();
  return result;
}

std::unexpected<Error> Refused(const std::string& path, std::int64_t result, Code code, const char* expected) {
  const int error = static_cast<int>(-result);
  return Fail(error == ENOENT ? Code::kFileNotFound : code, path, std::strerror(error), expected);
}

}  // namespace

Result<OpenFile> OpenFile::Open(FileOps& files, const std::string& path, Access access) {
  const int file = Patiently([&] { return files.Open(path, access); });
  if (file >= 0) return OpenFile(files, path, file);
  if (file == -EISDIR || file == -EINVAL) {
    return Fail(Code::kFileRead, path, "this is a folder, a pipe or a device", "a file");
  }
  return access == Access::kRead ? Refused(path, file, Code::kFileRead, "a file that can be read")
                                 : Refused(path, file, Code::kFileWrite, "a folder that can be written to");
}

OpenFile::OpenFile(OpenFile&& other) noexcept
    : files_(other.files_), path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(files_, other.files_);
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

OpenFile::~OpenFile() {
  // What counts was confirmed by Sync; closing says nothing about the disk.
  if (file_ >= 0) (void)files_->Close(file_);
}

Result<std::uint64_t> OpenFile::Size() {
  const std::int64_t size = Patiently([&] { return files_->Size(file_); });
  if (size < 0) return Refused(path_, size, Code::kFileRead, "a file that can be read");
  return static_cast<std::uint64_t>(size);
}

Result<std::string> OpenFile::Read(std::uint64_t offset, std::uint64_t size) {
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const std::int64_t count =
        Patiently([&] { return files_->ReadAt(file_, bytes.data() + done, bytes.size() - done, offset + done); });
    if (count < 0) return Refused(path_, count, Code::kFileRead, "a disk that can be read");
    if (count == 0) return Fail(Code::kFileRead, path_, "the file became shorter while it was read");
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

Result<void> OpenFile::Write(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::int64_t count = Patiently([&] { return files_->WriteAt(file_, bytes.data(), bytes.size(), offset); });
    if (count <= 0) return Refused(path_, count == 0 ? -ENOSPC : count, Code::kFileWrite, "a disk with free space");
    offset += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> OpenFile::Truncate(std::uint64_t size) {
  const int result = Patiently([&] { return files_->Truncate(file_, size); });
  if (result < 0) return Refused(path_, result, Code::kFileWrite, "a disk that can be written to");
  return {};
}

Result<void> OpenFile::Sync() {
  const int result = Patiently([&] { return files_->Sync(file_); });
  if (result < 0) return Refused(path_, result, Code::kFileWrite, "a disk that confirms what it was given");
  return {};
}

Result<bool> OpenFile::TryLock() {
  const int result = Patiently([&] { return files_->TryLock(file_); });
  if (result == -EWOULDBLOCK) return false;
  if (result < 0) return Refused(path_, result, Code::kFileWrite, "a file system with locks");
  return true;
}

Result<bool> OpenFile::StillNamed() {
  const int result = Patiently([&] { return files_->Names(path_, file_); });
  if (result < 0) return Refused(path_, result, Code::kFileRead, "a file that can be asked about");
  return result == 1;
}

bool IsMissing(const Error& error) { return error.code == Code::kFileNotFound; }

Result<std::string> ReadFile(FileOps& files, const std::string& path) {
  BOLTBEAM_ASSIGN(OpenFile file, OpenFile::Open(files, path, Access::kRead));
  BOLTBEAM_ASSIGN(const std::uint64_t size, file.Size());
  return file.Read(0, size);
}

Result<void> ReplaceFile(FileOps& files, const std::string& path, const std::string& temporary,
                         std::string_view bytes) {
  // Not emptied but removed: after a power loss it may be a second name of the very file that it is to replace.
  const int removed = Patiently([&] { return files.Remove(temporary); });
  if (removed < 0 && removed != -ENOENT) {
    return Refused(temporary, removed, Code::kFileWrite, "a folder that can be written to");
  }
  {
    BOLTBEAM_ASSIGN(OpenFile file, OpenFile::Open(files, temporary, Access::kReplace));
    Result<void> written = file.Write(0, bytes);
    if (written) written = file.Sync();
    if (!written) {
      (void)files.Remove(temporary);
      return written;
    }
  }
  const int renamed = Patiently([&] { return files.Rename(temporary, path); });
  if (renamed < 0) {
    (void)files.Remove(temporary);
    return Refused(path, renamed, Code::kFileWrite, "a folder that can be written to");
  }
  return SyncFolder(files, FolderOf(path));
}

Result<void> SyncFolder(FileOps& files, const std::string& path) {
  const int result = Patiently([&] { return files.SyncFolder(path); });
  if (result < 0) return Refused(path, result, Code::kFileWrite, "a disk that confirms what it was given");
  return {};
}

Result<void> EnsureFolder(FileOps& files, const std::string& path, int levels) {
  const std::string above = FolderOf(path);
  int made = Patiently([&] { return files.MakeFolder(path); });
  if (above != path && (made == -ENOENT || levels > 1)) {
    BOLTBEAM_TRY(EnsureFolder(files, above, levels - 1));
    if (made == -ENOENT) made = Patiently([&] { return files.MakeFolder(path); });
  }
  if (made < 0 && made != -EEXIST) return Refused(path, made, Code::kFileWrite, "a folder that can be made");
  // Also when it was there: whoever made it may have failed to confirm it. Those of others we may not be able to ask.
  const int synced = Patiently([&] { return files.SyncFolder(above); });
  if (synced == 0 || (made == -EEXIST && (synced == -EACCES || synced == -EPERM))) return {};
  return Refused(above, synced, Code::kFileWrite, "a disk that confirms what it was given");
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace boltbeam::ledger
