// Byte-level BPE over one piece of text: bytes become symbols, and the adjacent pair with the lowest rank merges first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/symbol_table.h"

namespace boltbeam::model {

/// GPT-2's printable stand-in for a byte, as UTF-8.
std::string_view ByteText(std::uint8_t byte);
/// Bytes of a token's text in that alphabet; characters outside it stand for themselves.
std::string BytesOfText(std::string_view text);

class Bpe {
 public:
  /// tokens must outlive the Bpe and stay where they are. `unknown_merges` counts merges whose parts or result are no
  /// tokens.
  static Result<Bpe> Make(std::span<const std::string> tokens, std::span<const std::string> merges, bool ignore_merges);

  /// Appends the ids of one piece of text; `unknown` stands in for bytes without a token. kTokenizerText without it.
  Result<void> Encode(std::string_view piece, std::optional<std::int32_t> unknown,
                      std::vector<std::int32_t>& ids) const;

  std::int32_t Find(std::string_view token_text) const {
    const std::int32_t symbol = symbols_.Find(token_text);
    return symbols_.IsToken(symbol) ? symbol : -1;
  }
  std::size_t unknown_merges() const { return unknown_merges_; }

 private:
  struct Merge {
    std::uint64_t pair = kNoPair;
    std::uint32_t rank = 0;
    std::int32_t product = 0;
  };
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};

  explicit Bpe(std::span<const std::string> tokens) : symbols_(tokens) {}
  Result<void> AddMerge(std::string_view merge, std::uint32_t rank, std::string& joined);
  void InsertMerge(const Merge& merge);
  const Merge* FindMerge(std::int32_t left, std::int32_t right) const;
  void MergeAll(std::vector<std::int32_t>& symbols) const;
  Result<void> EmitBytes(std::string_view text, std::optional<std::int32_t> unknown,
                         std::vector<std::int32_t>& ids) const;

  SymbolTable symbols_;
  std::array<std::int32_t, 256> byte_symbols_{};
  std::vector<Merge> merges_;  // open addressing
  bool ignore_merges_ = false;
  std::size_t unknown_merges_ = 0;
};

}  // namespace boltbeam::model
