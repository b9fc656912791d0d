#include "model/scored_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace boltbeam::model {
namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";          // U+2581, a lower one eighth block
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;  // places are kept in 32 bits
constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Bytes of the character that begins with this one; of a byte that can't begin one, 1.
std::uint32_t CharacterBytes(char lead) {
  const auto byte = static_cast<std::uint8_t>(lead);
  return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

/// Two neighbours that make a token together.
struct Pair {
  float score;
  std::uint32_t left, right, bytes;
  /// Worse: a lower score, or the same one further right.
  bool operator<(const Pair& other) const { return score != other.score ? score < other.score : left > other.left; }
};

}  // namespace

std::string EscapeSpaces(std::string_view text, bool prefix) {
  std::string escaped(prefix ? kSpace : "");
  escaped.reserve(text.size() + text.size() / 4);
  for (const char c : text) {
    if (c == ' ') {
      escaped += kSpace;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string UnescapeSpaces(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size();) {
    const bool is_space = token.substr(i).starts_with(kSpace);
    text += is_space ? ' ' : token[i];
    i += is_space ? kSpace.size() : 1;
  }
  return text;
}

ScoredPieces::ScoredPieces(std::span<const std::string> tokens, std::span<const float> scores)
    : table_(tokens), scores_(scores) {
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    byte_tokens_[byte] = table_.Find(fmt::format("<0x{:02X}>", byte));
    const char raw = static_cast<char>(byte);
    if (byte_tokens_[byte] < 0) byte_tokens_[byte] = table_.Find({&raw, 1});
  }
}

std::vector<ScoredPieces::Piece> ScoredPieces::Join(std::string_view text) const {
  std::vector<Piece> pieces;
  const auto size = static_cast<std::uint32_t>(text.size());
  for (std::uint32_t at = 0; at < size;) {
    const auto index = static_cast<std::uint32_t>(pieces.size());
    const std::uint32_t bytes = std::min(CharacterBytes(text[at]), size - at);
    pieces.push_back({at, bytes, index == 0 ? kNone : index - 1, index + 1});
    at += bytes;
  }
  if (pieces.empty()) return pieces;
  pieces.back().next = kNone;
  std::priority_queue<Pair> queue;
  const auto offer = [&](std::uint32_t left, std::uint32_t right) {
    if (left == kNone || right == kNone) return;
    const std::uint32_t bytes = pieces[left].bytes + pieces[right].bytes;
    const std::int32_t token = table_.Find(text.substr(pieces[left].begin, bytes));
    if (token >= 0) queue.push({scores_[static_cast<std::size_t>(token)], left, right, bytes});
  };
  for (std::uint32_t i = 1; i < pieces.size(); ++i) offer(i - 1, i);
  while (!queue.empty()) {
    const Pair best = queue.top();
    queue.pop();
    Piece& left = pieces[best.left];
    Piece& right = pieces[best.right];
    // One of the two has joined another piece since.
    if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != best.bytes) continue;
    left.bytes = best.bytes;
    right.bytes = 0;
    left.next = right.next;
    if (left.next != kNone) pieces[left.next].previous = best.left;
    offer(left.previous, best.left);
    offer(best.left, left.next);
  }
  std::erase_if(pieces, [](const Piece& piece) { return piece.bytes == 0; });
  return pieces;
}

Result<void> ScoredPieces::EmitBytes(std::string_view text, std::optional<std::int32_t> unknown,
                                     std::vector<std::int32_t>& ids) const {
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    const std::int32_t token = byte_tokens_[byte];
    if (token < 0 && !unknown) {
      return Fail(Code::kTokenizerText, "text",
                  fmt::format("byte 0x{:02x}, for which the vocabulary has no token", byte),
                  "text that the model's vocabulary can spell");
    }
    ids.push_back(token >= 0 ? token : *unknown);
  }
  return {};
}

Result<void> ScoredPieces::Encode(std::string_view text, std::optional<std::int32_t> unknown,
                                  std::vector<std::int32_t>& ids) const {
  if (text.size() > kMaxTextBytes) {
    return Fail(Code::kTokenizerText, "text", fmt::format("{} bytes", text.size()),
                fmt::format("at most {} bytes at once", kMaxTextBytes));
  }
  for (const Piece& piece : Join(text)) {
    const std::string_view spelled = text.substr(piece.begin, piece.bytes);
    const std::int32_t token = table_.Find(spelled);
    if (token >= 0) {
      ids.push_back(token);
    } else {
      BOLTBEAM_TRY(EmitBytes(spelled, unknown, ids));
    }
  }
  return {};
}

}  // namespace boltbeam::model
