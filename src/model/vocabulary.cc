#include "model/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/printable.h"
#include "model/pretokenizer.h"

namespace boltbeam::model {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";
constexpr std::size_t kMaxTokenBytes = 65535;  // far above any real token; sizes are narrowed safely below it

std::string Key(std::string_view name) { return std::string(kPrefix).append(name); }

// Reads one vocabulary; every complaint about it goes through here.
class Reader {
 public:
  Reader(const gguf::File& file, bool strict) : file_(file), strict_(strict) {}

  Result<Vocabulary> Read() {
    BOLTBEAM_TRY(ReadKind());
    BOLTBEAM_TRY(ReadTokens());
    BOLTBEAM_TRY(ReadTypes());
    BOLTBEAM_TRY(CheckTokens());
    BOLTBEAM_TRY(ReadScores());
    BOLTBEAM_TRY(ReadIds());
    BOLTBEAM_TRY(ReadFlags());
    return std::move(out_);
  }

 private:
  // What other programs load too is a warning, unless the user asked for strictness.
  Result<void> Complain(Code code, std::string where, std::string found, std::string expected) {
    Error error{code, std::move(where), std::move(found), std::move(expected)};
    if (strict_) return std::unexpected(std::move(error));
    out_.warnings.push_back(error.Message());
    return {};
  }

  Result<void> ReadKind() {
    if (file_.Find(Key("model")) == nullptr || file_.Find(Key("tokens")) == nullptr) {
      return Fail(
          Code::kNoTokenizer, file_.path(), "the file holds no tokenizer",
          "tokenizer.ggml.model and tokenizer.ggml.tokens, as in a model that was converted with its vocabulary");
    }
    BOLTBEAM_ASSIGN(const std::string kind, file_.GetString(Key("model")));
    BOLTBEAM_ASSIGN(out_.kind, FindVocabularyKind(kind));
    if (out_.kind.by_score) return {};  // nothing is cut before
    if (file_.Find(Key("pre")) == nullptr) {
      return Fail(Code::kTokenizerUnsupported, Key("pre"), "the file does not name its pre-tokenizer",
                  "a file that does: convert the model again with a current converter");
    }
    BOLTBEAM_ASSIGN(out_.pre, file_.GetString(Key("pre")));
    return {};
  }

  Result<void> ReadTokens() {
    BOLTBEAM_ASSIGN(out_.tokens, file_.GetStrings(Key("tokens")));
    if (out_.tokens.empty() || out_.tokens.size() > std::numeric_limits<std::int32_t>::max() / 2) {
      return Fail(Code::kTokenizerArrays, Key("tokens"), fmt::format("{} tokens", out_.tokens.size()), "1 to 2^30");
    }
    if (out_.kind.by_score) return {};
    if (file_.Find(Key("merges")) == nullptr) {
      return Fail(Code::kTokenizerArrays, Key("merges"), "absent", "the merges of a byte-level BPE vocabulary");
    }
    BOLTBEAM_ASSIGN(out_.merges, file_.GetStrings(Key("merges")));
    return {};
  }

  Result<void> ReadTypes() {
    out_.types.assign(out_.tokens.size(), TokenType::kNormal);
    if (file_.Find(Key("token_type")) == nullptr) return {};
    BOLTBEAM_ASSIGN(const std::vector<std::int64_t> types, file_.GetIntegers(Key("token_type")));
    if (types.size() != out_.tokens.size()) {
      return Fail(Code::kTokenizerArrays, Key("token_type"), fmt::format("{} entries", types.size()),
                  fmt::format("one for each of the {} tokens", out_.tokens.size()));
    }
    for (std::size_t id = 0; id < types.size(); ++id) {
      if (types[id] < 0 || types[id] > static_cast<std::int64_t>(TokenType::kByte)) {
        return Fail(Code::kTokenizerTokenType, fmt::format("{}[{}]", Key("token_type"), id),
                    fmt::format("{}", types[id]), "0 to 6");
      }
      out_.types[id] = static_cast<TokenType>(types[id]);
    }
    return {};
  }

  Result<void> CheckTokens() {
    std::size_t empty = 0;
    for (std::size_t id = 0; id < out_.tokens.size(); ++id) {
      const std::string& token = out_.tokens[id];
      if (token.empty()) ++empty;
      if (token.size() > kMaxTokenBytes) {
        return Fail(Code::kTokenizerTokenLength, fmt::format("{}[{}]", Key("tokens"), id),
                    fmt::format("a token of {} bytes", token.size()), fmt::format("at most {}", kMaxTokenBytes));
      }
      if (out_.types[id] == TokenType::kByte && !IsByteToken(token)) {
        return Fail(Code::kTokenizerByteToken, fmt::format("{}[{}]", Key("tokens"), id),
                    fmt::format("the byte token '{}'", base::Printable(token, 40)),
                    "<0xNN> with two hexadecimal digits");
      }
    }
    if (empty == 0) return {};
    return Complain(Code::kTokenizerTokens, Key("tokens"), fmt::format("{} empty tokens", empty),
                    "a text for every token; the empty ones are never produced from text");
  }

  static bool IsByteToken(std::string_view token) {
    const auto hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
    return token.size() == 6 && token.starts_with("<0x") && hex(token[3]) && hex(token[4]) && token[5] == '>';
  }

  Result<void> ReadScores() {
    if (file_.Find(Key("scores")) == nullptr) {
      if (!out_.kind.by_score) return {};
      return Fail(Code::kTokenizerArrays, Key("scores"), "absent", "the scores of a SentencePiece vocabulary");
    }
    BOLTBEAM_ASSIGN(std::vector<float> scores, file_.GetFloats(Key("scores")));
    const auto bad = std::ranges::find_if(scores, [](float score) { return std::isnan(score); });
    const std::string where = fmt::format("{}[{}]", Key("scores"), bad - scores.begin());
    if (!out_.kind.by_score) {
      if (bad == scores.end()) return {};
      return Complain(Code::kTokenizerScores, where, "not a number", "a finite score; byte-level BPE does not use it");
    }
    if (bad != scores.end()) return Fail(Code::kTokenizerScores, where, "not a number", "a score to order tokens by");
    if (scores.size() != out_.tokens.size()) {
      return Fail(Code::kTokenizerArrays, Key("scores"), fmt::format("{} entries", scores.size()),
                  fmt::format("one for each of the {} tokens", out_.tokens.size()));
    }
    out_.scores = std::move(scores);
    return {};
  }

  Result<void> ReadIds() {
    const auto silent = [&](std::optional<std::int32_t> id) {
      return id && static_cast<std::size_t>(*id) < out_.tokens.size() ? id : std::nullopt;
    };
    out_.bos = silent(out_.kind.bos);
    out_.eos = silent(out_.kind.eos);
    out_.unknown = silent(out_.kind.unknown);
    BOLTBEAM_TRY(ReadId("bos_token_id", out_.bos));
    BOLTBEAM_TRY(ReadId("eos_token_id", out_.eos));
    BOLTBEAM_TRY(ReadId("eot_token_id", out_.eot));
    return ReadId("unknown_token_id", out_.unknown);
  }

  Result<void> ReadId(std::string_view name, std::optional<std::int32_t>& id) {
    if (file_.Find(Key(name)) == nullptr) return {};
    BOLTBEAM_ASSIGN(const std::uint64_t value, file_.GetUnsigned(Key(name)));
    if (value >= out_.tokens.size()) {
      id.reset();
      return Complain(Code::kTokenizerSpecialId, Key(name), fmt::format("{}", value),
                      fmt::format("an id below {}, the number of tokens; it is taken as absent", out_.tokens.size()));
    }
    id = static_cast<std::int32_t>(value);
    return {};
  }

  Result<void> ReadFlags() {
    BOLTBEAM_TRY(ReadFlag("add_bos_token", out_.add_bos));
    BOLTBEAM_TRY(ReadFlag("add_eos_token", out_.add_eos));
    return ReadFlag("add_space_prefix", out_.add_space_prefix);
  }

  Result<void> ReadFlag(std::string_view name, std::optional<bool>& flag) {
    if (file_.Find(Key(name)) == nullptr) return {};
    BOLTBEAM_ASSIGN(flag, file_.GetBool(Key(name)));
    return {};
  }

  const gguf::File& file_;
  bool strict_;
  Vocabulary out_;
};

}  // namespace

Result<Vocabulary> ReadVocabulary(const gguf::File& file, bool strict) { return Reader(file, strict).Read(); }

}  // namespace boltbeam::model
