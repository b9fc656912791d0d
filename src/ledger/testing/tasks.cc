// What the loops of faults are run over.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "ledger/merge.h"
#include "ledger/repair.h"
#include "ledger/testing/fault_loops.h"
#include "ledger/verify.h"

namespace boltbeam::ledger {
namespace {

constexpr const char* kOtherChain = "/data/boltbeam/ledger/other.jsonl";

/// An anchor that stands behind its chain's end does not see that end cut off. The writer's own may do so until its
/// next record.
std::string FirstLaggingAnchor(SimulatedDisk& disk, bool own_too) {
  const Verification verified = *Verify(disk, kDiskFolder);
  for (const Chain& chain : verified.chains) {
    if (!own_too && chain.path == kDiskChain) continue;
    if (!chain.anchor || chain.anchor->seq != chain.LastSeq())
      return "the anchor of " + chain.writer + " stands behind";
  }
  return {};
}

/// A further record is taken, and all of it survives a power loss that keeps nothing unconfirmed.
std::string UnsoundAfterwards(Case& now) {
  AppendOne(now.disk, "afterwards", now.said);
  if (now.said.back().what != Said::What::kRecorded) return "the next record is refused";
  std::string wrong = WhatIsWrong(now.disk, now.said, false);
  if (wrong.empty()) wrong = FirstLaggingAnchor(now.disk, true);
  if (!wrong.empty()) return "with the next record: " + wrong;
  now.disk.Restart(Survives::kNothing, 0);
  wrong = WhatIsWrong(now.disk, now.said, false);
  return wrong.empty() ? wrong : "after a power loss: " + wrong;
}

std::string UnsoundRecords(Case now) {
  const std::string wrong = WhatIsWrong(now.disk, now.said, true);
  return wrong.empty() ? UnsoundAfterwards(now) : "at once: " + wrong;
}

Ledger On(SimulatedDisk& disk, const std::string& writer = "writer") {
  return *Ledger::Open(DiskOptions(disk, writer));
}

constexpr std::size_t kOwnRecords = 6, kOtherRecords = 3;

/// Six records of this writer and three of another one, in this order in what was said.
Case TwoChains() {
  Case begun;
  begun.disk = MakeDisk(Start::kRecords, begun.said);
  AppendThree(begun.disk, "more", begun.said);
  Ledger other = On(begun.disk, "other");
  for (const char* marker : {"other 1", "other 2", "other 3"}) {
    const Result<Receipt> receipt = other.AppendPrediction(MarkedPrediction(marker));
    begun.said.push_back({marker, Said::What::kRecorded, receipt->hash, ""});
  }
  begun.disk.Restart(Survives::kAll, 0);
  return begun;
}

void Edit(SimulatedDisk& disk, const char* path, const std::string& from, const std::string& to) {
  std::string bytes = disk.Bytes(path);
  disk.SetBytes(path, bytes.replace(bytes.find(from), from.size(), to));
}

void CutHalfALine(SimulatedDisk& disk, const char* path) {
  const std::string bytes = disk.Bytes(path);
  disk.SetBytes(path, bytes.substr(0, bytes.size() - 40));
}

/// The same chain without its last record, and a beginning of that: as a power loss leaves it.
void Tear(SimulatedDisk& disk, const char* path) {
  const Chain chain = *ReadChain(disk, path);
  const Entry& last = chain.entries.back();
  const Entry& before = chain.entries[chain.entries.size() - 2];
  disk.SetBytes(AnchorPath(path), WriteAnchor({before.record.seq, before.record.hash, last.offset, before.size_bytes}));
  CutHalfALine(disk, path);
}

/// Every byte of a chain as it was found is in the chain or in a blob that a recovery record names.
std::string Dropped(SimulatedDisk& disk, const std::string& path, const std::string& bytes) {
  const Verification verified = *Verify(disk, kDiskFolder);
  const std::string now = disk.Bytes(path);
  if (now.starts_with(bytes)) return {};
  const Ledger ledger = On(disk);
  for (const Chain& chain : verified.chains) {
    for (const Entry& entry : chain.entries) {
      if (entry.record.kind != Kind::kRecovery) continue;
      for (const std::string& hash : BlobsOf(entry.record)) {
        const Result<std::string> kept = ledger.LoadSamples(hash);
        if (!kept) return "a blob that a recovery names is missing";
        if (bytes.ends_with(*kept) && now.starts_with(bytes.substr(0, bytes.size() - kept->size()))) return {};
      }
    }
  }
  return "bytes of the chain are gone and nothing says so";
}

std::string FirstFault(SimulatedDisk& disk) {
  const Result<Verification> verified = Verify(disk, kDiskFolder);
  if (!verified) return verified.error().Message();
  if (!verified->faults.empty()) return verified->faults.front().Message();
  for (const Chain& chain : verified->chains) {
    if (chain.state != ChainState::kWhole) return chain.fault->Message();
  }
  return {};
}

/// intact: records of the damaged chain in front of the damage. Those behind it may be cut: their bytes are what must
/// be left.
Task RepairTask(const std::string& name, const char* path, std::size_t intact,
                const std::function<void(SimulatedDisk&)>& damage) {
  Task task;
  task.name = "repair of " + name;
  task.begin = TwoChains();
  std::vector<Said>& said = task.begin.said;
  const bool is_own = std::string_view(path) == kDiskChain;
  const auto first = said.begin() + static_cast<std::ptrdiff_t>(is_own ? intact : kOwnRecords + intact);
  said.erase(first, first + static_cast<std::ptrdiff_t>((is_own ? kOwnRecords : kOtherRecords) - intact));
  damage(task.begin.disk);
  task.begin.disk.Restart(Survives::kAll, 0);
  const std::string bytes = task.begin.disk.Bytes(path);
  task.act = [](Case& now) {
    Ledger ledger = On(now.disk);
    now.is_done = Repair(ledger, "").has_value();
  };
  task.again = task.act;
  const std::string chain_path = path;
  task.unsound = [act = task.act, chain_path, bytes](Case now) -> std::string {
    if (!now.is_done) act(now);
    if (!now.is_done) return "it can't be repaired any more";
    for (const char* when : {"at once: ", "after a power loss: "}) {
      std::string wrong = WhatIsWrong(now.disk, now.said, false);
      if (wrong.empty()) wrong = FirstLaggingAnchor(now.disk, false);
      if (wrong.empty()) wrong = Dropped(now.disk, chain_path, bytes);
      if (!wrong.empty()) return when + wrong;
      now.disk.Restart(Survives::kNothing, 0);
    }
    return UnsoundAfterwards(now);
  };
  return task;
}

constexpr const char* kRouteEntry =
    R"({"schema":"boltbeam.route_ledger_entry.v1","candidate_id":"fold","status":"refuted","scope":{"target":"c"},)"
    R"("evidence":[{"claim":"slower"}],"reopen_condition":"it is staged once"})"
    "\n";

/// Two chains of another machine, three records each, with their samples, and a line of the Python tool.
std::string Arriving() {
  SimulatedDisk disk;
  for (const char* writer : {"first", "second"}) {
    Ledger ledger = On(disk, writer);
    for (const char* number : {" 1", " 2", " 3"}) {
      Verdict verdict = MarkedVerdict(writer + std::string(number));
      verdict.samples = {*ledger.StoreSamples("samples of " + verdict.reason), "test.samples.v1"};
      (void)ledger.AppendVerdict(verdict);
    }
  }
  return *Export(On(disk), "", true) + kRouteEntry;
}

/// Empty when all that arrived is here, once, with its samples.
std::string NotArrived(SimulatedDisk& disk) {
  std::string wrong = FirstFault(disk);
  if (wrong.empty()) wrong = FirstLaggingAnchor(disk, false);
  if (!wrong.empty()) return wrong;
  std::uint64_t records = 0, entries = 0;
  const Verification verified = *Verify(disk, kDiskFolder);
  for (const Chain& chain : verified.chains) {
    if (chain.writer == "first" || chain.writer == "second") records += chain.entries.size();
    for (const Entry& entry : chain.entries) entries += entry.record.payload.contains("origin") ? 1 : 0;
  }
  const Ledger ledger = On(disk);
  for (const Chain& chain : verified.chains) {
    for (const Entry& entry : chain.entries) {
      for (const std::string& hash : BlobsOf(entry.record)) {
        if (!ledger.LoadSamples(hash)) return "samples are missing";
      }
    }
  }
  if (records == 6 && entries == 1) return {};
  return fmt::format("{} records and {} route entries are here of 6 and 1", records, entries);
}

Task ImportTask(const std::string& name, const std::function<void(SimulatedDisk&, std::vector<Said>&)>& found) {
  Task task;
  task.name = "import into " + name;
  found(task.begin.disk, task.begin.said);
  task.begin.disk.Restart(Survives::kAll, 0);
  const auto text = std::make_shared<const std::string>(Arriving());
  task.act = [text](Case& now) {
    Ledger ledger = On(now.disk);
    Result<ImportResult> result = Import(ledger, *text, "arriving");
    // A torn end is not written over: it is mended first, as the refusal says.
    if (!result && result.error().code == Code::kLedgerDamaged && Repair(ledger, "")) {
      result = Import(ledger, *text, "arriving");
    }
    now.is_done = result.has_value();
  };
  task.again = task.act;
  task.unsound = [act = task.act](Case now) -> std::string {
    std::string wrong = WhatIsWrong(now.disk, now.said, true);
    if (!wrong.empty()) return "at once: " + wrong;
    if (!now.is_done) act(now);
    if (!now.is_done) return "it can't be imported any more";
    for (const char* when : {"when it is done: ", "after a power loss: "}) {
      wrong = NotArrived(now.disk);
      if (!wrong.empty()) return when + wrong;
      now.disk.Restart(Survives::kNothing, 0);
    }
    return UnsoundAfterwards(now);
  };
  return task;
}

/// The first chain's first record, and whole or torn what follows.
void APartOfIt(SimulatedDisk& disk, bool is_torn) {
  const std::string text = Arriving();
  const std::size_t one = text.find('\n') + 1, two = text.find('\n', one) + 1;
  const std::size_t blobs = text.find("{\"base64\"");
  Ledger ledger = On(disk);
  (void)Import(ledger, text.substr(0, two) + text.substr(blobs, text.rfind("{\"schema\"") - blobs), "a part");
  if (is_torn) Tear(disk, "/data/boltbeam/ledger/first.jsonl");
}

}  // namespace

std::vector<Task> AppendTasks(std::vector<Start> starts) {
  std::vector<Task> tasks;
  for (const Start start : starts) {
    Task task;
    task.name = fmt::format("records, start {}", static_cast<int>(start));
    task.begin.disk = MakeDisk(start, task.begin.said);
    task.begin.disk.Disarm();
    task.act = [](Case& now) {
      AppendThree(now.disk, "during", now.said);
      now.is_done =
          std::ranges::count_if(now.said, [](const Said& one) { return one.marker.starts_with("during"); }) == 3;
    };
    task.again = [](Case& now) { AppendOne(now.disk, "recovering", now.said); };
    task.unsound = UnsoundRecords;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::vector<Task> RepairTasks() {
  std::vector<Task> tasks;
  const auto add = [&](const char* name, const char* path, std::size_t intact,
                       const std::function<void(SimulatedDisk&)>& damage) {
    tasks.push_back(RepairTask(name, path, intact, damage));
  };
  add("an edited line", kDiskChain, 1, [](SimulatedDisk& disk) { Edit(disk, kDiskChain, "before 2", "before 9"); });
  add("the first line", kDiskChain, 0, [](SimulatedDisk& disk) { Edit(disk, kDiskChain, "before 1", "before 9"); });
  add("an end cut off", kDiskChain, 5, [](SimulatedDisk& disk) { CutHalfALine(disk, kDiskChain); });
  add("a file that is gone", kDiskChain, 0, [](SimulatedDisk& disk) { disk.Erase(kDiskChain); });
  add("no anchor's text", kDiskChain, 6, [](SimulatedDisk& disk) { disk.SetBytes(kDiskAnchor, "anchor\n"); });
  add("a torn end", kDiskChain, 5, [](SimulatedDisk& disk) { Tear(disk, kDiskChain); });
  add("another chain's line", kOtherChain, 1,
      [](SimulatedDisk& disk) { Edit(disk, kOtherChain, "other 2", "other 9"); });
  add("another chain's torn end", kOtherChain, 2, [](SimulatedDisk& disk) { Tear(disk, kOtherChain); });
  return tasks;
}

std::vector<Task> ImportTasks() {
  return {ImportTask("nothing", [](SimulatedDisk&, std::vector<Said>&) {}),
          ImportTask("other records",
                     [](SimulatedDisk& disk, std::vector<Said>& said) { disk = MakeDisk(Start::kRecords, said); }),
          ImportTask("a part of it", [](SimulatedDisk& disk, std::vector<Said>&) { APartOfIt(disk, false); }),
          ImportTask("a torn part of it", [](SimulatedDisk& disk, std::vector<Said>&) { APartOfIt(disk, true); })};
}

}  // namespace boltbeam::ledger
