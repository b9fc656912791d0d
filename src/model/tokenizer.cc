#include "model/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/pretokenizer.h"
#include "model/text_encoder.h"
#include "model/vocabulary.h"

namespace boltbeam::model {
namespace {

// Text, or one token that was found in it.
struct Fragment {
  std::string_view text;
  std::int32_t token = -1;
};

// Bytes at the end of text that begin a UTF-8 character without completing it.
std::size_t IncompleteTail(std::string_view text) {
  const std::size_t look = std::min<std::size_t>(text.size(), 3);
  for (std::size_t back = 1; back <= look; ++back) {
    const auto byte = static_cast<std::uint8_t>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;  // a continuation: its lead lies further back
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace

struct Tokenizer::State {
  explicit State(Vocabulary&& read) : vocabulary(std::move(read)) {}

  Vocabulary vocabulary;
  std::unique_ptr<TextEncoder> encoder;  // refers to the vocabulary
  bool add_bos = false, add_eos = false;
  std::vector<std::int32_t> specials;  // tokens that text is cut at: longest first
  std::vector<std::int32_t> stops;

  bool IsControl(std::int32_t id) const {
    const TokenType type = vocabulary.types[static_cast<std::size_t>(id)];
    return type == TokenType::kControl || type == TokenType::kUnknown;
  }
  /// Text is cut at it.
  bool IsSpecial(std::int32_t id) const {
    return IsControl(id) || vocabulary.types[static_cast<std::size_t>(id)] == TokenType::kUserDefined;
  }
  const std::string& Text(std::int32_t id) const { return vocabulary.tokens[static_cast<std::size_t>(id)]; }
  bool Holds(std::int32_t id) const { return id >= 0 && static_cast<std::size_t>(id) < vocabulary.tokens.size(); }

  Result<void> CheckTexts(bool strict);
  Result<void> FindStops();
  void FindSpecials();
  std::vector<Fragment> Partition(std::string_view text, bool parse_special) const;
};

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::Make(const gguf::File& file, bool strict) {
  Result<Tokenizer> tokenizer = Read(file, strict);
  if (tokenizer) return tokenizer;
  Error error = std::move(tokenizer).error();
  error.where = error.where.empty() ? file.path() : file.path() + ": " + error.where;
  return std::unexpected(std::move(error));
}

Result<Tokenizer> Tokenizer::Read(const gguf::File& file, bool strict) {
  BOLTBEAM_ASSIGN(Vocabulary vocabulary, ReadVocabulary(file, strict));
  auto state = std::make_unique<State>(std::move(vocabulary));
  BOLTBEAM_ASSIGN(state->encoder, MakeTextEncoder(state->vocabulary));
  state->add_bos = state->vocabulary.add_bos.value_or(state->encoder->adds_bos()) && state->vocabulary.bos;
  state->add_eos = state->vocabulary.add_eos.value_or(false) && state->vocabulary.eos;
  BOLTBEAM_TRY(state->CheckTexts(strict));
  BOLTBEAM_TRY(state->FindStops());
  state->FindSpecials();
  return Tokenizer(std::move(state));
}

Result<void> Tokenizer::State::CheckTexts(bool strict) {
  std::size_t duplicates = 0;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& text = vocabulary.tokens[id];
    if (!text.empty() && encoder->Find(text) != static_cast<std::int32_t>(id)) ++duplicates;
  }
  const auto complain = [&](std::string where, std::string found, std::string expected) -> Result<void> {
    Error error{Code::kTokenizerTokens, std::move(where), std::move(found), std::move(expected)};
    if (strict) return std::unexpected(std::move(error));
    vocabulary.warnings.push_back(error.Message());
    return {};
  };
  if (duplicates > 0) {
    BOLTBEAM_TRY(complain("tokenizer.ggml.tokens", fmt::format("{} tokens whose text another one has too", duplicates),
                          "different texts; the last of equal ones counts"));
  }
  if (encoder->unknown_merges() > 0) {
    BOLTBEAM_TRY(complain("tokenizer.ggml.merges",
                          fmt::format("{} merges of texts that are no tokens", encoder->unknown_merges()),
                          "parts and results that are tokens; such a result is spelled byte by byte"));
  }
  return {};
}

Result<void> Tokenizer::State::FindStops() {
  if (vocabulary.eos) stops.push_back(*vocabulary.eos);
  if (vocabulary.eot) stops.push_back(*vocabulary.eot);
  BOLTBEAM_ASSIGN(const std::vector<std::string> texts, StopTokenTexts());
  for (const std::string& text : texts) {
    const std::int32_t id = encoder->Find(text);
    if (id < 0) continue;
    stops.push_back(id);
    // Some converters forget the type: an end marker is a control token whatever the file says.
    vocabulary.types[static_cast<std::size_t>(id)] = TokenType::kControl;
  }
  return {};
}

void Tokenizer::State::FindSpecials() {
  for (std::size_t at = 0; at < vocabulary.tokens.size(); ++at) {
    const auto id = static_cast<std::int32_t>(at);
    if (IsSpecial(id) && !vocabulary.tokens[at].empty()) specials.push_back(id);
  }
  std::ranges::sort(specials, [&](std::int32_t a, std::int32_t b) {
    return Text(a).size() != Text(b).size() ? Text(a).size() > Text(b).size() : a < b;
  });
}

std::vector<Fragment> Tokenizer::State::Partition(std::string_view text, bool parse_special) const {
  std::vector<Fragment> fragments{{text}}, finer;
  for (const std::int32_t id : specials) {
    if (!parse_special && IsControl(id)) continue;
    const std::string& wanted = Text(id);
    if (text.find(wanted) == std::string_view::npos) continue;
    finer.clear();
    for (const Fragment& fragment : fragments) {
      std::string_view rest = fragment.text;
      while (fragment.token < 0) {
        const std::size_t at = rest.find(wanted);
        if (at == std::string_view::npos) break;
        if (at > 0) finer.push_back({rest.substr(0, at)});
        finer.push_back({{}, id});
        rest.remove_prefix(at + wanted.size());
      }
      if (fragment.token >= 0 || !rest.empty()) finer.push_back({rest, fragment.token});
    }
    fragments.swap(finer);
  }
  return fragments;
}

Result<std::vector<std::int32_t>> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<std::int32_t> ids;
  if (options.add_special && state_->add_bos) ids.push_back(*state_->vocabulary.bos);
  bool opens = true;  // the text, or the run after a special token
  for (const Fragment& fragment : state_->Partition(text, options.parse_special)) {
    opens = opens || fragment.token >= 0;
    if (fragment.token >= 0) {
      ids.push_back(fragment.token);
    } else {
      BOLTBEAM_TRY(state_->encoder->Encode(fragment.text, std::exchange(opens, false), ids));
    }
  }
  if (options.add_special && state_->add_eos) ids.push_back(*state_->vocabulary.eos);
  return ids;
}

std::string Tokenizer::Bytes(std::int32_t id, bool special) const {
  if (!state_->Holds(id)) return {};
  switch (state_->vocabulary.types[static_cast<std::size_t>(id)]) {
    case TokenType::kControl:
    case TokenType::kUnknown:
      return special ? state_->Text(id) : std::string();
    case TokenType::kUserDefined:
      return state_->Text(id);
    case TokenType::kUnused:
      return {};
    case TokenType::kByte:  // <0xNN>, checked when the vocabulary was read
      return std::string(1, static_cast<char>(std::stoi(state_->Text(id).substr(3, 2), nullptr, 16)));
    default:
      return state_->encoder->Bytes(state_->Text(id));
  }
}

std::string Tokenizer::Decode(std::span<const std::int32_t> ids, bool special) const {
  std::string text;
  bool opens = state_->encoder->adds_space();  // a space that Encode put there may come next
  for (const std::int32_t id : ids) {
    const std::string bytes = Bytes(id, special);
    const bool is_special = !state_->Holds(id) || state_->IsSpecial(id);
    const bool is_added = opens && !is_special && bytes.starts_with(' ');
    text += std::string_view(bytes).substr(is_added ? 1 : 0);
    opens = state_->encoder->adds_space() && is_special;
  }
  return text;
}

std::size_t Tokenizer::size() const { return state_->vocabulary.tokens.size(); }
std::optional<std::int32_t> Tokenizer::bos() const { return state_->vocabulary.bos; }
std::optional<std::int32_t> Tokenizer::eos() const { return state_->vocabulary.eos; }
bool Tokenizer::adds_bos() const { return state_->add_bos; }
bool Tokenizer::IsStop(std::int32_t id) const { return std::ranges::find(state_->stops, id) != state_->stops.end(); }
std::span<const std::string> Tokenizer::warnings() const { return state_->vocabulary.warnings; }

std::int32_t Tokenizer::Find(std::string_view token_text) const { return state_->encoder->Find(token_text); }

std::string StreamDecoder::Push(std::int32_t id) {
  held_ += tokenizer_.Bytes(id, special_);
  const std::size_t ready = held_.size() - IncompleteTail(held_);
  std::string text = held_.substr(0, ready);
  held_.erase(0, ready);
  return text;
}

std::string StreamDecoder::Flush() { return std::exchange(held_, {}); }

}  // namespace boltbeam::model
