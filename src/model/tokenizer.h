// Text to token ids and back, as the file's own vocabulary says: byte-level BPE or SentencePiece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gguf/file.h"

namespace boltbeam::model {

class Tokenizer {
 public:
  struct EncodeOptions {
    bool add_special = true;     // BOS and EOS where the file asks for them
    bool parse_special = false;  // the text of a control token means that token
  };

  /// Reads the vocabulary. kNoTokenizer when the file has none, kTokenizerUnsupported when it is of a kind that this
  /// build can't read. With strict every warning is an error.
  static Result<Tokenizer> Make(const gguf::File& file, bool strict = false);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  Result<std::vector<std::int32_t>> Encode(std::string_view text, const EncodeOptions& options) const;

  /// The bytes that a token stands for; empty for control tokens unless `special`, and for ids outside the vocabulary.
  std::string Bytes(std::int32_t id, bool special = false) const;
  std::string Decode(std::span<const std::int32_t> ids, bool special = false) const;

  std::size_t size() const;
  std::optional<std::int32_t> bos() const;
  std::optional<std::int32_t> eos() const;
  bool adds_bos() const;
  /// True for tokens that end an answer: EOS, EOT and the well-known end markers that the vocabulary holds.
  bool IsStop(std::int32_t id) const;
  std::int32_t Find(std::string_view token_text) const;  // -1 when absent
  std::span<const std::string> warnings() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  static Result<Tokenizer> Read(const gguf::File& file, bool strict);
  std::unique_ptr<State> state_;
};

/// Joins the bytes of tokens into text that can be shown at once: a character that is not complete yet is held back.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool special = false) : tokenizer_(tokenizer), special_(special) {}
  /// Whole characters that can be shown now.
  std::string Push(std::int32_t id);
  /// What is left when no token follows.
  std::string Flush();

 private:
  const Tokenizer& tokenizer_;
  bool special_;
  std::string held_;
};

}  // namespace boltbeam::model
