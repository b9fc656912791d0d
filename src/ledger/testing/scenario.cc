#include "ledger/testing/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "ledger/verify.h"

namespace boltbeam::ledger {
namespace {

Said::What WhatWasSaid(const Result<Receipt>& receipt) {
  if (receipt) return Said::What::kRecorded;
  return receipt.error().code == Code::kLedgerDurability ? Said::What::kUnknown : Said::What::kNotRecorded;
}

std::string MarkerOf(const Record& record) {
  if (record.kind == Kind::kPrediction) return record.payload.value("method", "");
  return record.payload.value("reason", "");
}

}  // namespace

Options DiskOptions(SimulatedDisk& disk, const std::string& writer) {
  Options options;
  options.folder = kDiskFolder;
  options.writer = writer;
  options.files = &disk;
  options.now = [] { return std::string("2026-11-29T12:00:00.000Z"); };
  return options;
}

Prediction MarkedPrediction(const std::string& marker) {
  Prediction prediction;
  prediction.subject = {"candidate", "chip", "model", "", "shape", "plan", ""};
  prediction.quantity = "token_ns";
  prediction.value = 1.5e6;
  prediction.low = 1.25e6;
  prediction.high = 1.75e6;
  prediction.method = marker;
  return prediction;
}

Verdict MarkedVerdict(const std::string& marker, Ruling ruling) {
  Verdict verdict;
  verdict.subject = {"candidate", "chip", "model", "", "shape", "plan", ""};
  verdict.ruling = ruling;
  verdict.reason = marker;
  verdict.repetitions = 100;
  if (ruling == Ruling::kRefute) verdict.reopen_when.push_back({"llvm_version", Comparison::kChanges, "19.1.7", ""});
  return verdict;
}

void AppendOne(SimulatedDisk& disk, const std::string& marker, std::vector<Said>& said) {
  Ledger ledger = *Ledger::Open(DiskOptions(disk));
  const Result<Receipt> receipt = ledger.AppendPrediction(MarkedPrediction(marker));
  said.push_back({marker, WhatWasSaid(receipt), receipt ? receipt->hash : "", ""});
}

void AppendThree(SimulatedDisk& disk, const std::string& prefix, std::vector<Said>& said) {
  Ledger ledger = *Ledger::Open(DiskOptions(disk));
  AppendOne(disk, prefix + " 1", said);
  Verdict verdict = MarkedVerdict(prefix + " 2");
  const Result<std::string> blob = ledger.StoreSamples("samples of " + prefix + std::string(200, 's'));
  if (blob) {
    verdict.samples = {*blob, "test.samples.v1"};
    const Result<Receipt> receipt = ledger.AppendVerdict(verdict);
    said.push_back({verdict.reason, WhatWasSaid(receipt), receipt ? receipt->hash : "", *blob});
  }
  AppendOne(disk, prefix + " 3", said);
}

SimulatedDisk MakeDisk(Start start, std::vector<Said>& said) {
  SimulatedDisk disk;
  if (start == Start::kNothing) return disk;
  AppendThree(disk, "before", said);
  const std::string anchor = disk.Bytes(kDiskAnchor), three = disk.Bytes(kDiskChain);
  if (start == Start::kTornShort || start == Start::kUnanchored) {
    std::vector<Said> ignored;
    AppendOne(disk, "unheard of", ignored);
    const std::string four = disk.Bytes(kDiskChain);
    const std::size_t cut = start == Start::kTornShort ? (four.size() - three.size()) / 2 : 0;
    disk.SetBytes(kDiskChain, four.substr(0, four.size() - cut));
    disk.SetBytes(kDiskAnchor, anchor);
  }
  if (start == Start::kTornLong) disk.SetBytes(kDiskChain, three + std::string(3000, '\0'));
  if (start == Start::kNoAnchor) disk.Erase(kDiskAnchor);
  disk.Restart(Survives::kAll, 0);
  return disk;
}

std::string WhatIsWrong(SimulatedDisk& disk, const std::vector<Said>& said, bool may_be_torn) {
  const Result<Verification> verified = Verify(disk, kDiskFolder);
  if (!verified) return verified.error().Message();
  if (!verified->faults.empty()) return verified->faults.front().Message();
  std::vector<Entry> entries;
  for (const Chain& chain : verified->chains) {
    if (chain.state == ChainState::kTorn && !may_be_torn) return chain.fault->Message();
    entries.insert(entries.end(), chain.entries.begin(), chain.entries.end());
  }
  for (const Said& one : said) {
    const auto has_it = [&](const Entry& entry) { return MarkerOf(entry.record) == one.marker; };
    const std::size_t count = static_cast<std::size_t>(std::ranges::count_if(entries, has_it));
    if (count > 1) return one.marker + " is there twice";
    if (one.what == Said::What::kNotRecorded && count != 0) return one.marker + " is there, but was said not to be";
    if (one.what != Said::What::kRecorded) continue;
    if (count == 0) return one.marker + " was said to be there, and is not";
    if (std::ranges::find_if(entries, has_it)->record.hash != one.hash) return one.marker + " is another record";
  }
  return {};
}

}  // namespace boltbeam::ledger
