#include "ledger/blobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "base/hash.h"
#include "ledger/durable.h"
#include "ledger/line.h"

namespace boltbeam::ledger {
namespace {

// The folder of blobs, the ledger's and the data folder above it.
constexpr int kOwnLevels = 3;

}  // namespace

Result<std::string> Blobs::Store(std::string_view bytes) {
  BOLTBEAM_TRY(EnsureFolder(*files_, folder_, kOwnLevels));
  std::string hash = base::Sha256Hex(bytes);
  const std::string path = PathOf(hash);
  // Written anew also when it is there: whoever wrote it may have failed to confirm it, and the same bytes under the
  // same name hurt nobody. Writers of one blob at the same time each have their own temporary file.
  static std::atomic<unsigned> counter{0};
  const std::string temporary = fmt::format("{}.{}.{}", path, ::getpid(), counter++);
  BOLTBEAM_TRY(ReplaceFile(*files_, path, temporary, bytes));
  return hash;
}

Result<std::string> Blobs::Load(const std::string& hash) const {
  if (!IsHash(hash)) return Fail(Code::kLedgerBlob, "samples", "no SHA-256", "64 hexadecimal digits");
  Result<std::string> bytes = ReadFile(*files_, PathOf(hash));
  if (!bytes && IsMissing(bytes.error())) {
    return Fail(Code::kLedgerBlob, PathOf(hash), "the samples are missing", "the file that a record names");
  }
  if (bytes && base::Sha256Hex(*bytes) != hash) {
    return Fail(Code::kLedgerBlob, PathOf(hash), "other bytes than its name says", "the file as boltbeam wrote it");
  }
  return bytes;
}

}  // namespace boltbeam::ledger
