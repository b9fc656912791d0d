#include "base/paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/pending_file.h"

namespace boltbeam::base {
namespace {

namespace fs = std::filesystem;

fs::path XdgFolder(const char* variable, const char* fallback) {
  const char* value = std::getenv(variable);
  if (value != nullptr && *value != '\0') return fs::path(value) / "boltbeam";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr && *home != '\0' ? home : "/tmp") / fallback / "boltbeam";
}

/// A device, a pipe or a terminal takes the bytes itself: a file that is renamed to its name would replace it.
Result<void> WriteInPlace(const fs::path& path, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Fail(Code::kFileWrite, path.string(), std::strerror(errno), "something that can be written to");
  Result<void> result;
  while (result && !bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) result = Fail(Code::kFileWrite, path.string(), std::strerror(errno), "a device with free space");
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  ::close(fd);
  return result;
}

}  // namespace

bool IsSpecialFile(const fs::path& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

Result<void> CheckFileName(const fs::path& path) {
  std::error_code ignored;
  if (!IsSpecialFile(path) && !fs::is_directory(path, ignored)) return {};
  return Fail(Code::kFileWrite, path.string(), "this is a folder, a pipe or a device", "the name of a file");
}

Paths ResolvePaths(const std::string& home) {
  if (!home.empty()) return {fs::path(home) / "data", fs::path(home) / "cache", fs::path(home) / "config"};
  return {XdgFolder("XDG_DATA_HOME", ".local/share"), XdgFolder("XDG_CACHE_HOME", ".cache"),
          XdgFolder("XDG_CONFIG_HOME", ".config")};
}

Result<void> WriteFileAtomically(const fs::path& path, std::string_view bytes) {
  if (IsSpecialFile(path)) return WriteInPlace(path, bytes);
  std::error_code no_folder;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), no_folder);
  if (no_folder) return Fail(Code::kFileWrite, path.string(), no_folder.message(), "a folder that can be written to");
  BOLTBEAM_ASSIGN(PendingFile file, PendingFile::Create(path.string()));
  BOLTBEAM_TRY(file.Write(bytes));
  return file.Commit();
}

Result<std::string> ReadWholeFile(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return Fail(Code::kFileNotFound, path.string(), "this is a folder", "a file");
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Fail(Code::kFileNotFound, path.string(), std::strerror(errno), "a file that can be read");
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad()) return Fail(Code::kFileRead, path.string(), "reading failed");
  return std::move(text).str();
}

}  // namespace boltbeam::base
