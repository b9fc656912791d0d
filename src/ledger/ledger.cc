#include "ledger/ledger.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "base/hash.h"
#include "ledger/durable.h"

namespace boltbeam::ledger {
namespace {

std::string UtcNow() {
  timeval now{};
  ::gettimeofday(&now, nullptr);
  std::tm utc{};
  ::gmtime_r(&now.tv_sec, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, now.tv_usec / 1000);
}

/// As a part of a file's name.
std::string Plain(std::string text) {
  for (char& c : text) {
    if (!IsWriterName(std::string(1, c))) c = '_';
  }
  return text.substr(0, 40);
}

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "host";
}

std::string UserName() {
  std::array<char, 1024> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? found->pw_name : fmt::format("{}", ::getuid());
}

}  // namespace

Options OptionsFor(const base::Paths& paths) {
  Options options;
  options.folder = (paths.data / "ledger").string();
  options.index_file = (paths.cache / "ledger.sqlite").string();
  return options;
}

std::string ThisWriter() {
  // A hash: the id itself is a secret of the machine.
  const std::string id = base::ReadWholeFile("/etc/machine-id").value_or(HostName());
  return fmt::format("{}-{}-{}", Plain(HostName()), base::Sha256Hex("boltbeam " + id).substr(0, 8), Plain(UserName()));
}

Result<Ledger> Ledger::Open(Options options) {
  if (options.files == nullptr) options.files = &RealFiles();
  if (options.writer.empty()) options.writer = ThisWriter();
  if (!options.now) options.now = UtcNow;
  if (!IsWriterName(options.writer)) {
    return Fail(Code::kLedgerRecord, "writer", options.writer, "1 to 100 letters, digits, '.', '_' and '-'");
  }
  return Ledger(std::move(options));
}

template <typename T>
Result<Receipt> Ledger::AppendRecord(Kind kind, const T& record, const Samples* samples, const Lock* held) {
  BOLTBEAM_TRY(Check(record));
  // Samples first: a record must not name what is not there.
  if (samples != nullptr && !samples->sha256.empty()) BOLTBEAM_TRY(LoadSamples(samples->sha256));
  return held != nullptr ? Writer().Append(*held, kind, ToJson(record)) : Writer().Append(kind, ToJson(record));
}

ChainWriter Ledger::Writer() {
  return {files(), {options_.folder, options_.writer, options_.lock_timeout, options_.now}};
}

Result<Receipt> Ledger::AppendChipFacts(const ChipFacts& record) {
  return AppendRecord(Kind::kChipFacts, record, &record.samples);
}
Result<Receipt> Ledger::AppendPrediction(const Prediction& record) {
  return AppendRecord(Kind::kPrediction, record, nullptr);
}
Result<Receipt> Ledger::AppendMeasurement(const Measurement& record) {
  return AppendRecord(Kind::kMeasurement, record, &record.samples);
}
Result<Receipt> Ledger::AppendVerdict(const Verdict& record) {
  return AppendRecord(Kind::kVerdict, record, &record.samples);
}
Result<Receipt> Ledger::AppendVerdict(const Lock& held, const Verdict& record) {
  return AppendRecord(Kind::kVerdict, record, &record.samples, &held);
}
Result<Receipt> Ledger::AppendReopening(const Reopening& record) {
  return AppendRecord(Kind::kReopening, record, nullptr);
}

Result<std::string> Ledger::StoreSamples(std::string_view bytes) {
  return Blobs(files(), options_.folder).Store(bytes);
}

Result<std::string> Ledger::LoadSamples(const std::string& sha256) const {
  return Blobs(files(), options_.folder).Load(sha256);
}

Result<void> Ledger::CheckWritable() {
  BOLTBEAM_TRY(EnsureFolder(files(), options_.folder, 1));
  BOLTBEAM_ASSIGN(const Lock held, Lock::Take(files(), options_.folder, options_.lock_timeout));
  // The first record makes the chain.
  if (!OpenFile::Open(files(), ChainPath(options_.folder, options_.writer), Access::kRead)) return {};
  return Settle(held);
}

Result<void> Ledger::Settle(const Lock& held) { return Writer().Settle(held); }

Result<std::vector<Chain>> Ledger::ReadChains() const {
  BOLTBEAM_ASSIGN(const std::vector<std::string> paths, ChainFiles(files(), options_.folder));
  std::vector<Chain> chains;
  for (const std::string& path : paths) {
    BOLTBEAM_ASSIGN(Chain chain, ReadChain(files(), path));
    chains.push_back(std::move(chain));
  }
  return chains;
}

}  // namespace boltbeam::ledger
