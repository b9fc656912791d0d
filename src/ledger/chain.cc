#include "ledger/chain.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "base/printable.h"
#include "ledger/durable.h"

namespace boltbeam::ledger {
namespace {

using nlohmann::json;

constexpr std::string_view kChainEnding = ".jsonl";
constexpr std::string_view kAnchorEnding = ".head";
constexpr std::string_view kAnchorSchema = "boltbeam.ledger_head.v1";

Error At(const Chain& chain, std::uint64_t line, std::uint64_t offset, std::string found, std::string expected) {
  return {Code::kLedgerDamaged, fmt::format("{}: line {}, byte {}", chain.path, line, offset), std::move(found),
          std::move(expected)};
}

/// The record that a line must hold after those before it.
Result<Record> NextRecord(std::string_view line, const std::string& writer, const Anchor& before) {
  BOLTBEAM_ASSIGN(Record record, ReadLine(line));
  if (record.writer != writer) {
    return Fail(Code::kLedgerDamaged, {}, "a record of the writer " + record.writer,
                fmt::format("one of {}, after whom the file is named", writer));
  }
  if (record.seq != before.seq + 1) {
    return Fail(Code::kLedgerDamaged, {}, fmt::format("record {}", record.seq),
                fmt::format("record {}: one was removed, doubled or moved", before.seq + 1));
  }
  if (record.prev != before.hash) {
    return Fail(Code::kLedgerDamaged, {}, "a record that follows " + record.prev.substr(0, 12) + "…",
                "one that follows the record before it, " + before.hash.substr(0, 12) + "…");
  }
  return record;
}

/// Whether what begins at good_bytes may be the remains of a write that nobody was told had succeeded.
bool MayBeTorn(const Chain& chain, std::string_view rest) {
  if (chain.anchor) return chain.good_bytes >= chain.anchor->size_bytes;
  const std::size_t line_feed = rest.find('\n');
  return line_feed == std::string_view::npos || line_feed + 1 == rest.size();
}

/// The anchor is the place where a confirmed record ended. It must be one in this chain.
void CheckAnchor(Chain& chain, const Anchor& from) {
  if (!chain.anchor || chain.state == ChainState::kDamaged) return;
  const Anchor& anchor = *chain.anchor;
  if (anchor.seq == from.seq && anchor.hash == from.hash && anchor.size_bytes == from.size_bytes) return;
  if (anchor.size_bytes > chain.good_bytes) {
    chain.state = ChainState::kDamaged;
    chain.fault = At(chain, chain.LastSeq() + 1, chain.good_bytes,
                     fmt::format("the end of the file after {} records", chain.LastSeq()),
                     fmt::format("{} records: the end was cut off", anchor.seq));
    return;
  }
  for (const Entry& entry : chain.entries) {
    const bool ends_here = entry.offset + entry.size_bytes == anchor.size_bytes;
    if (ends_here && entry.record.seq == anchor.seq && entry.record.hash == anchor.hash &&
        entry.size_bytes == anchor.last_line_bytes) {
      return;
    }
  }
  chain.state = ChainState::kDamaged;
  chain.fault = Error{
      Code::kLedgerDamaged, AnchorPath(chain.path),
      fmt::format("record {} with the hash {}… at byte {}", anchor.seq, anchor.hash.substr(0, 12), anchor.size_bytes),
      "a record of " + chain.path + ": one of the two files was replaced"};
}

}  // namespace

std::string WriteAnchor(const Anchor& anchor) {
  const json value = {{"schema", kAnchorSchema},
                      {"seq", anchor.seq},
                      {"hash", anchor.hash},
                      {"size_bytes", anchor.size_bytes},
                      {"last_line_bytes", anchor.last_line_bytes}};
  return value.dump() + "\n";
}

Result<Anchor> ReadAnchor(std::string_view text, const std::string& where) {
  const auto bad = [&] {
    return Fail(Code::kLedgerDamaged, where, base::Printable(text), "the anchor of a chain, as boltbeam wrote it");
  };
  const Result<json> value = ParseJson(text, where);
  if (!value || !value->is_object()) return bad();
  Anchor anchor;
  const auto number = [&](const char* key, std::uint64_t& to) {
    const auto found = value->find(key);
    if (found == value->end() || !found->is_number_unsigned()) return false;
    to = found->get<std::uint64_t>();
    return true;
  };
  const bool numbers = number("seq", anchor.seq) && number("size_bytes", anchor.size_bytes) &&
                       number("last_line_bytes", anchor.last_line_bytes);
  const auto hash = value->find("hash");
  if (!numbers || hash == value->end() || !hash->is_string()) return bad();
  anchor.hash = hash->get<std::string>();
  const bool begins = anchor.seq == 0 && anchor.size_bytes == 0 && anchor.hash == kNoHash;
  const bool follows = anchor.seq > 0 && anchor.last_line_bytes > 0 && anchor.last_line_bytes <= kMostLineBytes &&
                       anchor.last_line_bytes <= anchor.size_bytes && IsHash(anchor.hash);
  if (!(begins || follows) || WriteAnchor(anchor) != text) return bad();
  return anchor;
}

Chain ParseChain(const std::string& path, const std::string& writer, std::string_view bytes, const Anchor& from,
                 const std::optional<Anchor>& anchor) {
  Chain chain;
  chain.path = path;
  chain.writer = writer;
  chain.anchor = anchor;
  chain.good_bytes = from.size_bytes;
  Anchor last = from;
  while (!bytes.empty()) {
    const std::size_t line_feed = bytes.find('\n');
    Result<Record> record = line_feed == std::string_view::npos
                                ? Fail(Code::kLedgerDamaged, {}, "a line without an end", "a whole record")
                                : NextRecord(bytes.substr(0, line_feed), writer, last);
    if (!record) {
      const bool torn = MayBeTorn(chain, bytes);
      chain.state = torn ? ChainState::kTorn : ChainState::kDamaged;
      chain.torn_bytes = torn ? bytes.size() : 0;
      chain.fault = At(chain, last.seq + 1, chain.good_bytes, record.error().found, record.error().expected);
      break;
    }
    const std::uint64_t size = line_feed + 1;
    last = {record->seq, record->hash, chain.good_bytes + size, size};
    chain.entries.push_back({std::move(*record), chain.good_bytes, size});
    chain.good_bytes += size;
    bytes.remove_prefix(size);
  }
  CheckAnchor(chain, from);
  return chain;
}

Result<Chain> ReadChain(FileOps& files, const std::string& path) {
  // The anchor first: a writer at work meanwhile only makes the chain longer than it says.
  std::optional<Anchor> anchor;
  std::optional<Error> bad_anchor;
  if (const Result<std::string> text = ReadFile(files, AnchorPath(path))) {
    const Result<Anchor> read = ReadAnchor(*text, AnchorPath(path));
    if (read) anchor = *read;
    if (!read) bad_anchor = read.error();
  } else if (!IsMissing(text.error())) {
    return std::unexpected(text.error());
  }
  const Result<std::string> bytes = ReadFile(files, path);
  // With an anchor and no chain, the anchor says whether there was one.
  if (!bytes && !(IsMissing(bytes.error()) && (anchor || bad_anchor))) return std::unexpected(bytes.error());
  Chain chain = ParseChain(path, WriterOf(path), bytes.value_or(""), {}, anchor);
  if (bad_anchor && chain.state != ChainState::kDamaged) {
    chain.state = ChainState::kDamaged;
    chain.fault = std::move(bad_anchor);
  }
  return chain;
}

Result<std::vector<std::string>> ChainFiles(FileOps& files, const std::string& folder) {
  std::vector<std::string> names;
  int result = files.List(folder, names);
  for (int i = 0; result == -EINTR && i < 100; ++i) {
    names.clear();
    result = files.List(folder, names);
  }
  if (result == -ENOENT) return std::vector<std::string>();
  if (result < 0) return Fail(Code::kFileRead, folder, std::strerror(-result), "a folder that can be read");
  std::set<std::string> paths;
  for (const std::string& name : names) {
    const std::size_t dot = name.find_last_of('.');
    const std::string stem = name.substr(0, dot);
    if (dot == std::string::npos || !IsWriterName(stem)) continue;
    // An anchor alone is a chain whose file is gone.
    if (name.substr(dot) == kChainEnding || name.substr(dot) == kAnchorEnding) paths.insert(ChainPath(folder, stem));
  }
  return std::vector<std::string>(paths.begin(), paths.end());
}

std::string ChainPath(const std::string& folder, const std::string& writer) {
  return folder + "/" + writer + std::string(kChainEnding);
}

std::string AnchorPath(const std::string& chain_path) {
  return chain_path.substr(0, chain_path.size() - kChainEnding.size()) + std::string(kAnchorEnding);
}

std::string WriterOf(const std::string& chain_path) {
  const std::string name = chain_path.substr(chain_path.find_last_of('/') + 1);
  return name.substr(0, name.size() - kChainEnding.size());
}

}  // namespace boltbeam::ledger
