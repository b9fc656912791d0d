// Any bytes are a chain, damage or an error; what is read is written back as it was; what is damaged can be repaired.
#include <cstddef>
#include <cstdint>
#include <string>

#include "byte_source.h"
#include "ledger/index.h"
#include "ledger/merge.h"
#include "ledger/repair.h"
#include "ledger/testing/scenario.h"
#include "ledger/verify.h"

namespace {

using namespace boltbeam::ledger;
using boltbeam::fuzz::ByteSource;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

bool IsDamaged(SimulatedDisk& disk) {
  const auto verified = Verify(disk, kDiskFolder);
  if (!verified) return true;
  for (const Chain& chain : verified->chains) {
    if (chain.state == ChainState::kDamaged) return true;
  }
  return false;
}

// The lines of a chain are the ones that their records are written as.
void TryChain(std::string_view bytes) {
  const Chain chain = ParseChain("chain.jsonl", "writer", bytes, {}, std::nullopt);
  std::string again;
  for (Entry entry : chain.entries) again += WriteLine(entry.record).value();
  Require(again == bytes.substr(0, chain.good_bytes));
  Require((chain.state == ChainState::kWhole) == (chain.good_bytes == bytes.size()));
  if (const auto anchor = ReadAnchor(bytes, "chain.head")) Require(WriteAnchor(*anchor) == bytes);
}

void TryImport(std::string_view bytes) {
  SimulatedDisk disk;
  Ledger ledger = Ledger::Open(DiskOptions(disk)).value();
  (void)Import(ledger, bytes, "file");
  Require(!IsDamaged(disk));
}

// Any JSON may stand in a record of any kind.
void TryPayload(Kind kind, std::string_view bytes) {
  const auto payload = ParseJson(bytes, "payload");
  if (!payload) return;
  Record record{1, "2026-11-29T12:00:00.000Z", "writer", std::string(kNoHash), kind, *payload, {}};
  const auto line = WriteLine(record);
  if (!line) return;
  Require(ReadLine(std::string_view(*line).substr(0, line->size() - 1)).has_value());
  SimulatedDisk disk;
  Ledger ledger = Ledger::Open(DiskOptions(disk)).value();
  Require(ledger.CheckWritable().has_value());
  disk.SetBytes(kDiskChain, *line);
  Require(!IsDamaged(disk));
  (void)Index::Open(ledger);
}

void TryFolder(std::string_view anchor, std::string_view bytes) {
  SimulatedDisk disk;
  Ledger ledger = Ledger::Open(DiskOptions(disk)).value();
  Require(ledger.CheckWritable().has_value());
  disk.SetBytes(kDiskChain, std::string(bytes));
  if (!anchor.empty()) disk.SetBytes(kDiskAnchor, std::string(anchor));
  if (IsDamaged(disk)) Require(Repair(ledger, "").has_value());
  Require(!IsDamaged(disk));
  Require(ledger.AppendPrediction(MarkedPrediction("after")).has_value());
  Require(!IsDamaged(disk));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteSource source(data, size);
  switch (source.Below(4)) {
    case 0:
      TryChain(source.rest());
      break;
    case 1:
      TryImport(source.rest());
      break;
    case 2: {
      const Kind kind = kKinds[source.Below(std::size(kKinds))];
      TryPayload(kind, source.rest());
      break;
    }
    default: {
      const std::string_view anchor = source.Text(255);
      TryFolder(anchor, source.rest());
    }
  }
  return 0;
}
