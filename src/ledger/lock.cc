#include "ledger/lock.h"

#include <fmt/format.h>

#include <thread>

namespace boltbeam::ledger {
namespace {

constexpr std::chrono::milliseconds kPoll{2};

}  // namespace

Result<Lock> Lock::Take(FileOps& files, const std::string& folder, std::chrono::milliseconds timeout) {
  const std::string path = folder + "/lock";
  const auto give_up = std::chrono::steady_clock::now() + timeout;
  while (true) {
    BOLTBEAM_ASSIGN(OpenFile file, OpenFile::Open(files, path, Access::kWrite));
    while (true) {
      BOLTBEAM_ASSIGN(const bool taken, file.TryLock());
      if (taken) break;
      if (std::chrono::steady_clock::now() >= give_up) {
        return Fail(Code::kLedgerLocked, path,
                    fmt::format("another process has held it for {} s", timeout.count() / 1e3),
                    "a ledger that is free; nothing was recorded");
      }
      std::this_thread::sleep_for(kPoll);
    }
    // The file may have been removed while we waited: then another process locks another file of that name.
    BOLTBEAM_ASSIGN(const bool still_named, file.StillNamed());
    if (still_named) return Lock(std::move(file));
    if (std::chrono::steady_clock::now() >= give_up) {
      return Fail(Code::kLedgerLocked, path, "the file is removed again and again", "a folder that is left alone");
    }
  }
}

}  // namespace boltbeam::ledger
