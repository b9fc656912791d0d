#include "ledger/merge.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/printable.h"
#include "ledger/durable.h"
#include "ledger/verify.h"

namespace boltbeam::ledger {
namespace {

using nlohmann::json;

constexpr std::string_view kBlobSchema = "boltbeam.ledger_blob.v1";

std::string ToBase64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const std::size_t padding = text.size() - std::min(text.size(), text.find_last_not_of('=') + 1);
  bytes.resize(static_cast<std::size_t>(size) - std::min<std::size_t>(padding, 2));
  return bytes;
}

/// What a file to be imported holds, sorted.
struct Bundle {
  std::map<std::string, std::string> chains;  // writer -> lines
  std::map<std::string, std::string> blobs;   // hash -> bytes
  std::vector<Verdict> foreign;
};

Result<void> TakeBlob(const json& value, const std::string& where, Bundle& bundle) {
  const auto hash = value.find("sha256"), text = value.find("base64");
  const bool texts = hash != value.end() && hash->is_string() && text != value.end() && text->is_string();
  const std::optional<std::string> bytes = texts ? FromBase64(text->get_ref<const std::string&>()) : std::nullopt;
  if (!bytes || base::Sha256Hex(*bytes) != hash->get<std::string>()) {
    return Fail(Code::kLedgerImport, where, "samples that are not what their hash says", "the line as it was exported");
  }
  bundle.blobs.emplace(hash->get<std::string>(), *bytes);
  return {};
}

Result<void> TakeLine(std::string_view line, const std::string& where, Bundle& bundle) {
  Result<json> value = ParseJson(line, where);
  const json schema = value && value->is_object() ? value->value("schema", json()) : json();
  if (schema == kRecordSchema) {
    // The whole chain is checked later; here only whose it is.
    const Result<Record> record = ReadLine(line);
    if (!record) return Fail(Code::kLedgerImport, where, record.error().found, record.error().expected);
    bundle.chains[record->writer].append(line).append("\n");
    return {};
  }
  if (schema == kBlobSchema) return TakeBlob(*value, where, bundle);
  if (schema == kRouteEntrySchema) {
    BOLTBEAM_ASSIGN(Verdict verdict, VerdictOfRouteEntry(*value, line, where));
    bundle.foreign.push_back(std::move(verdict));
    return {};
  }
  return Fail(Code::kLedgerImport, where, base::Printable(line, 60),
              fmt::format("lines of {} or {}", kRecordSchema, kRouteEntrySchema));
}

Result<Bundle> ParseBundle(std::string_view text, const std::string& where) {
  Bundle bundle;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) BOLTBEAM_TRY(TakeLine(line, fmt::format("{}: line {}", where, number), bundle));
  }
  if (bundle.chains.empty() && bundle.blobs.empty() && bundle.foreign.empty()) {
    return Fail(Code::kLedgerImport, where, "no record", fmt::format("lines of {}", kRecordSchema));
  }
  return bundle;
}

struct Merged {
  std::string writer;
  std::string bytes;
  Chain chain;
  Chain here;  // what is here of it already
};

std::unexpected<Error> Forked(const Record& here, const Record& there, const std::string& where) {
  return Fail(
      Code::kLedgerFork, fmt::format("{}: the writer {}", where, here.writer),
      fmt::format("record {} is {}… there and {}… here", here.seq, there.hash.substr(0, 12), here.hash.substr(0, 12)),
      "one history for one writer; nothing was imported");
}

Error NotImported(Error fault) {
  fault.expected += "; nothing was imported: boltbeam ledger verify says more, repair mends it";
  return fault;
}

/// Whether one of the two chains continues the other.
Result<Merged> MergeChain(const Ledger& ledger, const std::string& writer, const std::string& bytes,
                          const std::string& where) {
  Merged merged{writer, bytes, ParseChain(where, writer, bytes, {}, std::nullopt), {}};
  if (merged.chain.state != ChainState::kWhole) return std::unexpected(*merged.chain.fault);
  Result<Chain> here = ReadChain(*ledger.options().files, ChainPath(ledger.options().folder, writer));
  if (!here && IsMissing(here.error())) return merged;
  if (!here) return std::unexpected(here.error());
  if (here->state == ChainState::kDamaged) return std::unexpected(NotImported(*here->fault));
  const std::size_t both = std::min(here->entries.size(), merged.chain.entries.size());
  for (std::size_t i = 0; i < both; ++i) {
    const Record& a = here->entries[i].record;
    const Record& b = merged.chain.entries[i].record;
    if (a.hash != b.hash) return Forked(a, b, where);
  }
  // Written over, bytes that are no record would be gone without a word: a repair keeps them.
  if (here->state == ChainState::kTorn && merged.chain.entries.size() > here->entries.size()) {
    Error torn = NotImported(*here->fault);
    torn.code = Code::kLedgerDamaged;
    return std::unexpected(std::move(torn));
  }
  merged.here = std::move(*here);
  return merged;
}

/// The anchor after the chain: it may stand behind it, never ahead.
Result<void> WriteChain(FileOps& files, const std::string& path, const Chain& chain, std::string_view bytes) {
  const Entry& last = chain.entries.back();
  const Anchor anchor{last.record.seq, last.record.hash, chain.good_bytes, last.size_bytes};
  BOLTBEAM_TRY(ReplaceFile(files, path, path + ".tmp", bytes));
  return ReplaceFile(files, AnchorPath(path), AnchorPath(path) + ".tmp", WriteAnchor(anchor));
}

/// An import that was cut between the two left the anchor behind, and no writer is here who would move it. The bytes
/// are written anew: the disk may not have confirmed them.
Result<void> SettleAnchor(FileOps& files, const Chain& here) {
  if (here.state != ChainState::kWhole || (here.anchor && here.anchor->seq == here.LastSeq())) return {};
  BOLTBEAM_ASSIGN(const std::string bytes, ReadFile(files, here.path));
  return WriteChain(files, here.path, here, bytes);
}

Result<void> MergeChains(Ledger& ledger, const Bundle& bundle, const std::string& where, ImportResult& result) {
  FileOps& files = *ledger.options().files;
  // The names of chains that an earlier import put in place, and could not confirm.
  BOLTBEAM_TRY(SyncFolder(files, ledger.options().folder));
  std::vector<Merged> merged;
  for (const auto& [writer, bytes] : bundle.chains) {
    BOLTBEAM_ASSIGN(Merged one, MergeChain(ledger, writer, bytes, where));
    merged.push_back(std::move(one));
  }
  for (const auto& [hash, bytes] : bundle.blobs) {
    // Also when it is there: whoever wrote it may have failed to confirm it.
    const bool is_known = ledger.LoadSamples(hash).has_value();
    BOLTBEAM_TRY(ledger.StoreSamples(bytes));
    result.blobs += is_known ? 0 : 1;
  }
  for (const Merged& one : merged) {
    for (const Entry& entry : one.chain.entries) {
      for (const std::string& hash : BlobsOf(entry.record)) {
        if (!ledger.LoadSamples(hash)) ++result.missing_blobs;
      }
    }
    const std::size_t known = one.here.entries.size();
    if (one.chain.entries.size() <= known) {
      BOLTBEAM_TRY(SettleAnchor(files, one.here));
      result.known_chains.push_back(one.writer);
      continue;
    }
    BOLTBEAM_TRY(WriteChain(files, ChainPath(ledger.options().folder, one.writer), one.chain, one.bytes));
    (known == 0 ? result.new_chains : result.extended_chains).push_back(one.writer);
    result.records += one.chain.entries.size() - known;
  }
  return {};
}

Result<void> AddForeign(Ledger& ledger, const Lock& lock, const std::vector<Verdict>& verdicts, ImportResult& result) {
  if (verdicts.empty()) return {};
  std::set<std::string> known;
  BOLTBEAM_ASSIGN(const std::vector<Chain> chains, ledger.ReadChains());
  for (const Chain& chain : chains) {
    for (const Entry& entry : chain.entries) {
      const auto origin = entry.record.payload.find("origin");
      if (origin != entry.record.payload.end() && origin->is_object())
        known.insert(origin->value("line_sha256", json("")).dump());
    }
  }
  for (const Verdict& verdict : verdicts) {
    if (!known.insert(verdict.origin.at("line_sha256").dump()).second) {
      ++result.known_foreign;
      continue;
    }
    BOLTBEAM_TRY(ledger.AppendVerdict(lock, verdict));
    ++result.foreign;
  }
  // What is here already may be there unconfirmed, by an import that failed.
  if (result.known_foreign > 0 && result.foreign == 0) BOLTBEAM_TRY(ledger.Settle(lock));
  return {};
}

}  // namespace

Result<std::string> Export(const Ledger& ledger, const std::string& writer, bool with_samples) {
  BOLTBEAM_ASSIGN(const std::vector<Chain> chains, ledger.ReadChains());
  std::string text;
  std::set<std::string> blobs;
  for (const Chain& chain : chains) {
    if (!writer.empty() && chain.writer != writer) continue;
    if (chain.state == ChainState::kDamaged) return std::unexpected(*chain.fault);
    if (chain.entries.empty()) continue;
    BOLTBEAM_ASSIGN(const std::string bytes, ReadFile(*ledger.options().files, chain.path));
    text += bytes.substr(0, chain.good_bytes);
    for (const Entry& entry : chain.entries) {
      for (const std::string& hash : BlobsOf(entry.record)) blobs.insert(hash);
    }
  }
  if (text.empty()) return Fail(Code::kLedgerNoRecord, "export", "no record", "a ledger that holds some");
  for (const std::string& hash : blobs) {
    if (!with_samples) break;
    BOLTBEAM_ASSIGN(const std::string bytes, ledger.LoadSamples(hash));
    text += json{{"schema", kBlobSchema}, {"sha256", hash}, {"base64", ToBase64(bytes)}}.dump() + "\n";
  }
  return text;
}

Result<ImportResult> Import(Ledger& ledger, std::string_view text, const std::string& where) {
  BOLTBEAM_ASSIGN(const Bundle bundle, ParseBundle(text, where));
  BOLTBEAM_TRY(ledger.CheckWritable());
  // One lock from the question what is known to the last answer: two imports of the same enter it once.
  const Options& options = ledger.options();
  BOLTBEAM_ASSIGN(const Lock lock, Lock::Take(*options.files, options.folder, options.lock_timeout));
  ImportResult result;
  if (!bundle.chains.empty() || !bundle.blobs.empty()) BOLTBEAM_TRY(MergeChains(ledger, bundle, where, result));
  BOLTBEAM_TRY(AddForeign(ledger, lock, bundle.foreign, result));
  return result;
}

}  // namespace boltbeam::ledger
