// One writer at a time in a ledger's folder.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "ledger/durable.h"

namespace boltbeam::ledger {

/// Held while the object lives; the system frees it when the process dies.
class Lock {
 public:
  /// kLedgerLocked after the timeout.
  static Result<Lock> Take(FileOps& files, const std::string& folder, std::chrono::milliseconds timeout);

 private:
  explicit Lock(OpenFile file) : file_(std::move(file)) {}

  OpenFile file_;
};

}  // namespace boltbeam::ledger
