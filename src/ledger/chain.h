// A chain as it lies on the disk, read and judged; nothing here writes.
//
// Beside WRITER.jsonl lies WRITER.head, the anchor: how far the chain was confirmed to have come. A chain by itself
// can't tell that its end was cut off; with its anchor it can. The anchor is also what separates a record that nobody
// was told about, torn by a power loss, from a confirmed one that was damaged afterwards.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ledger/file_ops.h"
#include "ledger/line.h"

namespace boltbeam::ledger {

struct Anchor {
  std::uint64_t seq = 0;  // of the last confirmed record; 0: none yet
  std::string hash = std::string(kNoHash);
  std::uint64_t size_bytes = 0;       // of the chain up to there
  std::uint64_t last_line_bytes = 0;  // with its line feed
};

std::string WriteAnchor(const Anchor& anchor);
Result<Anchor> ReadAnchor(std::string_view text, const std::string& where);

struct Entry {
  Record record;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;  // with its line feed
};

enum class ChainState {
  kWhole,
  kTorn,     // the end is no record, and nobody was told that it is one: a writer recovers from that
  kDamaged,  // anything else: a writer refuses
};

struct Chain {
  std::string path;
  std::string writer;
  std::vector<Entry> entries;    // the good ones, from the front
  std::uint64_t good_bytes = 0;  // they end here
  std::optional<Anchor> anchor;  // none: the chain came without one, and a cut end can't be seen
  ChainState state = ChainState::kWhole;
  std::optional<Error> fault;  // where: file, line and offset
  std::uint64_t torn_bytes = 0;

  [[nodiscard]] std::uint64_t LastSeq() const { return entries.empty() ? 0 : entries.back().record.seq; }
  [[nodiscard]] std::string LastHash() const {
    return entries.empty() ? std::string(kNoHash) : entries.back().record.hash;
  }
};

/// What `bytes` hold after a place in the chain: an anchor, or the default one for the beginning.
/// The entries' offsets count from the beginning of the file.
Chain ParseChain(const std::string& path, const std::string& writer, std::string_view bytes, const Anchor& from,
                 const std::optional<Anchor>& anchor);

/// A whole file with its anchor. An error only when it can't be read: damage is in the chain's state.
Result<Chain> ReadChain(FileOps& files, const std::string& path);

/// The chains of a folder, by name; none when the folder does not exist.
Result<std::vector<std::string>> ChainFiles(FileOps& files, const std::string& folder);

std::string ChainPath(const std::string& folder, const std::string& writer);
std::string AnchorPath(const std::string& chain_path);
/// The writer that a chain's file is named after.
std::string WriterOf(const std::string& chain_path);

}  // namespace boltbeam::ledger
