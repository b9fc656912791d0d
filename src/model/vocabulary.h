// The vocabulary of a GGUF file, read and checked (class I of the input rules).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/file.h"
#include "model/pretokenizer.h"

namespace boltbeam::model {

/// What a token is, as tokenizer.ggml.token_type numbers it.
enum class TokenType : std::uint8_t { kUndefined = 0, kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Vocabulary {
  VocabularyKind kind;
  std::string pre;  // tokenizer.ggml.pre; empty when tokens join by score
  std::vector<std::string> tokens;
  std::vector<std::string> merges;  // empty when tokens join by score
  std::vector<float> scores;        // one per token when they join by score
  std::vector<TokenType> types;     // one per token
  std::optional<std::int32_t> bos, eos, eot, unknown;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  std::vector<std::string> warnings;
};

/// kNoTokenizer, kTokenizerUnsupported, or the code of the rule that the vocabulary breaks. With strict, what would be
/// a warning is an error.
Result<Vocabulary> ReadVocabulary(const gguf::File& file, bool strict);

}  // namespace boltbeam::model
