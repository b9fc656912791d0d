// Where boltbeam keeps its files: XDG folders, all three moved by --home.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace boltbeam::base {

struct Paths {
  std::filesystem::path data;    // measured chips, ledger, samples
  std::filesystem::path cache;   // compiled kernels, synthetic models
  std::filesystem::path config;  // the user's own rows and settings
};

/// home empty: $XDG_*_HOME/boltbeam, or the usual folders below $HOME.
Paths ResolvePaths(const std::string& home);

/// A device, a pipe or a socket, also at the end of a link: what must never be replaced by a file.
bool IsSpecialFile(const std::filesystem::path& path);

/// Refuses a folder and a special file as the name of a file that appears by renaming.
Result<void> CheckFileName(const std::filesystem::path& path);

/// Writes a whole file or nothing, and the folders above it. A special file is written to as it is.
Result<void> WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes);

/// The whole file; kFileNotFound or kFileRead.
Result<std::string> ReadWholeFile(const std::filesystem::path& path);

}  // namespace boltbeam::base
