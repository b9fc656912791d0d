// Byte-level BPE over one piece of text: bytes become symbols, and the adjacent pair with the lowest rank merges first.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace boltbeam::model {

/// GPT-2's printable stand-in for a byte, as UTF-8.
std::string_view ByteText(std::uint8_t byte);
/// Bytes of a token's text in that alphabet; characters outside it stand for themselves.
std::string BytesOfText(std::string_view text);

/// Open addressing from text to a number; the texts belong to somebody else. A later text wins over an equal earlier
/// one.
class TextIndex {
 public:
  explicit TextIndex(std::size_t expected = 0);
  void Insert(std::string_view text, std::int32_t value);
  std::int32_t Find(std::string_view text) const;  // -1 when absent

 private:
  struct Slot {
    std::string_view text;
    std::size_t hash = 0;
    std::int32_t value = -1;
  };
  Slot& Place(std::string_view text, std::size_t hash);
  void Grow();
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

class Bpe {
 public:
  /// tokens and merges must outlive the Bpe. `unknown_merges` counts merges whose parts or result are no tokens.
  static Result<Bpe> Make(const std::vector<std::string>& tokens, const std::vector<std::string>& merges,
                          bool ignore_merges);

  /// Appends the ids of one piece of text; `unknown` stands in for bytes without a token. kTokenizerText without it.
  Result<void> Encode(std::string_view piece, std::optional<std::int32_t> unknown,
                      std::vector<std::int32_t>& ids) const;

  std::int32_t Find(std::string_view token_text) const { return index_.Find(token_text); }
  std::size_t unknown_merges() const { return unknown_merges_; }

 private:
  // A symbol is a token id, or a number from tokens.size() on for text that merging passes through without being one.
  struct Merge {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = 0;
    std::int32_t product = 0;
  };
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};

  explicit Bpe(std::size_t tokens) : token_count_(tokens), index_(tokens) {}
  std::int32_t SymbolOf(std::string_view text);
  Result<void> AddMerge(std::string_view merge, std::uint32_t rank);
  void InsertMerge(const Merge& merge);
  const Merge* FindMerge(std::int32_t left, std::int32_t right) const;
  void MergeAll(std::vector<std::int32_t>& symbols) const;
  Result<void> EmitBytes(std::string_view text, std::optional<std::int32_t> unknown,
                         std::vector<std::int32_t>& ids) const;

  std::size_t token_count_;
  TextIndex index_;
  std::deque<std::string> extra_;  // texts of the symbols that are no tokens; a deque keeps them in place
  std::array<std::int32_t, 256> byte_symbols_{};
  std::vector<Merge> merges_;  // open addressing
  bool ignore_merges_ = false;
  std::size_t unknown_merges_ = 0;
};

}  // namespace boltbeam::model
