// SentencePiece's BPE over a run of text: characters join with their neighbours, the pair whose token has the best
// score first; a character without a token is spelled in byte tokens. Source: google/sentencepiece, src/bpe_model.cc.
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

/// Spaces as the vocabulary writes them, U+2581; with `prefix` one more in front.
std::string EscapeSpaces(std::string_view text, bool prefix);
std::string UnescapeSpaces(std::string_view token);

class ScoredPieces {
 public:
  /// One score per token. Both must outlive the pieces and stay where they are.
  ScoredPieces(std::span<const std::string> tokens, std::span<const float> scores);

  /// Appends the ids of text with escaped spaces; `unknown` stands in for bytes without a token. kTokenizerText without
  /// it, or for text that is too long.
  Result<void> Encode(std::string_view text, std::optional<std::int32_t> unknown, std::vector<std::int32_t>& ids) const;

  std::int32_t Find(std::string_view token) const { return table_.Find(token); }

 private:
  /// A stretch of the text; empty once it has joined the one before it.
  struct Piece {
    std::uint32_t begin = 0, bytes = 0, previous = 0, next = 0;
  };
  std::vector<Piece> Join(std::string_view text) const;
  Result<void> EmitBytes(std::string_view text, std::optional<std::int32_t> unknown,
                         std::vector<std::int32_t>& ids) const;

  SymbolTable table_;
  std::span<const float> scores_;
  std::array<std::int32_t, 256> byte_tokens_{};  // -1: none
};

}  // namespace boltbeam::model
