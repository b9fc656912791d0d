// Cuts text into the pieces within which byte-level BPE merges: one row of data/models/pretokenizers.json.
//
// The regular expressions are compiled when a Pretokenizer is made, so that commands that never look at text pay
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

/// kTokenizerUnsupported unless this build reads vocabularies of this kind (the value of tokenizer.ggml.model).
Result<void> CheckVocabularyKind(std::string_view name);

/// Texts of tokens that end an answer whatever the file's ids say.
Result<std::vector<std::string>> StopTokenTexts();

}  // namespace boltbeam::model
