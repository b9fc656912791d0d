#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/embedded.h"
#include "model/synth.h"

namespace boltbeam::model {
namespace {

using nlohmann::json;

constexpr std::string_view kVocabulary = "models/small_vocabulary.json";

// Kinds of token as tokenizer.ggml.token_type counts them.
enum TokenType : std::int32_t { kNormal = 1, kControl = 3, kUnused = 5 };

std::string Utf8(std::uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// Byte-level BPE writes every byte as a printable character: itself where it is printable in Latin-1, else the next
// one from 256 on.
std::array<std::string, 256> ByteCharacters() {
  std::array<std::string, 256> characters;
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    characters[byte] = Utf8(printable ? byte : next++);
  }
  return characters;
}

}  // namespace

Result<void> AddSmallVocabulary(gguf::Writer& writer, std::uint32_t size, const std::string& pre) {
  BOLTBEAM_ASSIGN(const std::string_view text, base::Embedded(kVocabulary));
  std::vector<std::string> tokens, merges, special;
  std::string end;
  try {
    const json document = json::parse(text);
    merges = document.at("merges").get<std::vector<std::string>>();
    special = document.at("special").get<std::vector<std::string>>();
    end = document.at("end").get<std::string>();
  } catch (const json::exception& error) {
    return Fail(Code::kJson, std::string(kVocabulary), error.what());
  }
  for (const std::string& character : ByteCharacters()) tokens.push_back(character);
  for (std::string merged : merges) tokens.push_back(merged.erase(merged.find(' '), 1));
  std::vector<std::int32_t> types(tokens.size(), kNormal);
  std::uint32_t end_id = 0;
  for (const std::string& token : special) {
    if (token == end) end_id = static_cast<std::uint32_t>(tokens.size());
    tokens.push_back(token);
    types.push_back(kControl);
  }
  if (tokens.size() > size) {
    return Fail(Code::kInternal, std::string(kVocabulary), fmt::format("{} tokens", tokens.size()),
                fmt::format("at most the {} of the model", size));
  }
  while (tokens.size() < size) {
    tokens.push_back(fmt::format("<|unused_{}|>", tokens.size()));
    types.push_back(kUnused);
  }
  writer.Add("tokenizer.ggml.model", std::string_view("gpt2"));
  writer.Add("tokenizer.ggml.pre", std::string_view(pre));
  writer.Add("tokenizer.ggml.tokens", tokens);
  writer.Add("tokenizer.ggml.token_type", types);
  writer.Add("tokenizer.ggml.merges", merges);
  writer.Add("tokenizer.ggml.eos_token_id", end_id);
  writer.Add("tokenizer.ggml.padding_token_id", end_id);
  writer.Add("tokenizer.ggml.add_bos_token", false);
  return {};
}

}  // namespace boltbeam::model
