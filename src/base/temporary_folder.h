// A folder for files that other programs are to read, gone with all of them.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace boltbeam::base {

/// Made in the system's temporary folder, removed with everything in it when the object goes. path() is empty where it
/// can't be made.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "boltbeam-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace boltbeam::base
