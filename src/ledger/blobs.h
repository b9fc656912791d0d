// Raw samples beside the chains: files named by the SHA-256 of what they hold, on the disk before a record names them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ledger/file_ops.h"

namespace boltbeam::ledger {

class Blobs {
 public:
  Blobs(FileOps& files, const std::string& ledger_folder) : files_(&files), folder_(ledger_folder + "/blobs") {}

  /// Its name. On success the bytes are on the disk.
  Result<std::string> Store(std::string_view bytes);
  /// kLedgerBlob: missing, or not what its name says.
  [[nodiscard]] Result<std::string> Load(const std::string& hash) const;
  [[nodiscard]] std::string PathOf(const std::string& hash) const { return folder_ + "/" + hash; }

 private:
  FileOps* files_;
  std::string folder_;
};

}  // namespace boltbeam::ledger
