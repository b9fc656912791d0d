// A folder for files that other programs are to read, gone with all of them.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace boltbeam::base {

/// Removed with everything in it when the object goes.
class TemporaryFolder {
 public:
  /// In the system's temporary folder. kFileWrite when none can be made there.
  static Result<TemporaryFolder> Make() {
    constexpr const char* kCure = "a temporary folder that can be written to (TMPDIR)";
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error) return Fail(Code::kFileWrite, "temporary folder", error.message(), kCure);
    std::string pattern = (parent / "boltbeam-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) return Fail(Code::kFileWrite, parent.string(), std::strerror(errno), kCure);
    return TemporaryFolder(pattern);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace boltbeam::base
