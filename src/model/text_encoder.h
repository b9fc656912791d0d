// Plain text to token ids, as a kind of vocabulary spells it; special tokens have been cut out before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/vocabulary.h"

namespace boltbeam::model {

class TextEncoder {
 public:
  TextEncoder() = default;
  TextEncoder(const TextEncoder&) = delete;
  TextEncoder& operator=(const TextEncoder&) = delete;
  virtual ~TextEncoder() = default;

  /// Appends the ids of a run of text. `opens`: the run begins the text or follows a special token.
  virtual Result<void> Encode(std::string_view text, bool opens, std::vector<std::int32_t>& ids) const = 0;
  /// What a normal token's text stands for.
  virtual std::string Bytes(std::string_view token) const = 0;
  /// -1 when no token has this text.
  virtual std::int32_t Find(std::string_view token) const = 0;
  /// Whether BOS goes first when the file does not say.
  virtual bool adds_bos() const = 0;
  /// Whether a space is put before a run that opens: a decoder takes it away again.
  virtual bool adds_space() const = 0;
  /// Merges of texts that are no tokens.
  virtual std::size_t unknown_merges() const = 0;
};

/// The encoder of the vocabulary's kind. The vocabulary must outlive it and stay where it is.
Result<std::unique_ptr<TextEncoder>> MakeTextEncoder(const Vocabulary& vocabulary);

}  // namespace boltbeam::model
