// Cuts text into the pieces within which byte-level BPE merges: one row of data/models/pretokenizers.json.
//
// The regular expressions are compiled when a Pretokenizer is made, so that commands that never look at text pay
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace boltbeam::model {

class Pretokenizer {
 public:
  /// The row that carries this name (the value of tokenizer.ggml.pre); kTokenizerUnsupported when there is none.
  static Result<Pretokenizer> Make(std::string_view name);
  Pretokenizer(Pretokenizer&&) noexcept;
  Pretokenizer& operator=(Pretokenizer&&) noexcept;
  ~Pretokenizer();

  bool ignore_merges() const;  // a piece that is a token stays whole, whatever the merges say
  bool adds_bos() const;       // when the file does not say

  /// Calls `piece` for each piece in order; together they are the whole text. Bytes that are not UTF-8 come out as
  /// U+FFFD, as the models' own tokenizers do it.
  Result<void> Split(std::string_view text, const std::function<Result<void>(std::string_view)>& piece) const;

 private:
  struct State;
  explicit Pretokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A kind of vocabulary, and what holds where a file of that kind is silent.
struct VocabularyKind {
  bool by_score = false;  // neighbours join by their token's score; else by ranked merges within pieces
  bool add_bos = false, add_space_prefix = false;
  std::optional<std::int32_t> bos, eos, unknown;
};

/// The kind of this name (the value of tokenizer.ggml.model); kTokenizerUnsupported when this build can't read it.
Result<VocabularyKind> FindVocabularyKind(std::string_view name);

/// Texts of tokens that end an answer whatever the file's ids say.
Result<std::vector<std::string>> StopTokenTexts();

}  // namespace boltbeam::model
