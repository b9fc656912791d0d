#include "model/bpe.h"

#include <fmt/format.h>

#include <bit>
#include <functional>
#include <queue>

#include "base/printable.h"

namespace boltbeam::model {
namespace {

struct ByteAlphabet {
  std::array<std::array<char, 2>, 256> text{};
  std::array<std::uint8_t, 256> length{};
  std::array<std::int16_t, 512> byte_of{};  // by code point; -1: none
};

// Printable Latin-1 stands for itself, the other bytes for the code points from 256 on, in order.
constexpr ByteAlphabet MakeAlphabet() {
  ByteAlphabet alphabet;
  alphabet.byte_of.fill(-1);
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
    const std::uint32_t point = printable ? byte : next++;
    alphabet.byte_of[point] = static_cast<std::int16_t>(byte);
    alphabet.length[byte] = point < 0x80 ? 1 : 2;
    if (point < 0x80) {
      alphabet.text[byte] = {static_cast<char>(point), 0};
    } else {
      alphabet.text[byte] = {static_cast<char>(0xc0 | (point >> 6)), static_cast<char>(0x80 | (point & 0x3f))};
    }
  }
  return alphabet;
}

constexpr ByteAlphabet kAlphabet = MakeAlphabet();

constexpr std::uint64_t PairKey(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
}

constexpr std::size_t HashPair(std::uint64_t key) {
  key ^= key >> 31;
  key *= 0x9e3779b97f4a7c15U;
  return key ^ (key >> 29);
}

// A power of two that stays at most half full.
std::size_t TableSize(std::size_t entries) { return std::bit_ceil(std::max<std::size_t>(16, 2 * entries)); }

}  // namespace

std::string_view ByteText(std::uint8_t byte) { return {kAlphabet.text[byte].data(), kAlphabet.length[byte]}; }

std::string BytesOfText(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<std::uint8_t>(text[i]);
    std::uint32_t point = lead;
    std::size_t length = 1;
    if ((lead & 0xe0) == 0xc0 && i + 1 < text.size()) {
      point = (static_cast<std::uint32_t>(lead & 0x1f) << 6) | (static_cast<std::uint8_t>(text[i + 1]) & 0x3f);
      length = 2;
    }
    const bool known =
        (lead < 0x80 || length == 2) && point < kAlphabet.byte_of.size() && kAlphabet.byte_of[point] >= 0;
    if (known) {
      bytes += static_cast<char>(kAlphabet.byte_of[point]);
    } else {
      bytes.append(text.substr(i, length));
    }
    i += length - 1;
  }
  return bytes;
}

Result<Bpe> Bpe::Make(std::span<const std::string> tokens, std::span<const std::string> merges, bool ignore_merges) {
  Bpe bpe(tokens);
  bpe.ignore_merges_ = ignore_merges;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    bpe.byte_symbols_[byte] = bpe.symbols_.FindOrAdd(ByteText(static_cast<std::uint8_t>(byte)));
  }
  bpe.merges_.resize(TableSize(merges.size()));
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    BOLTBEAM_TRY(bpe.AddMerge(merges[rank], static_cast<std::uint32_t>(rank), joined));
  }
  return bpe;
}

Result<void> Bpe::AddMerge(std::string_view merge, std::uint32_t rank, std::string& joined) {
  const std::size_t space = merge.find(' ', 1);  // a first character that is a space belongs to the left part
  if (space == std::string_view::npos || space + 1 == merge.size()) {
    return Fail(Code::kTokenizerMerges, fmt::format("tokenizer.ggml.merges[{}]", rank),
                fmt::format("'{}'", base::Printable(merge)), "two parts with a space between them");
  }
  const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
  const std::size_t known = symbols_.extra();
  const std::int32_t left_symbol = symbols_.FindOrAdd(left), right_symbol = symbols_.FindOrAdd(right);
  joined.assign(left).append(right);
  const std::int32_t product = symbols_.FindOrAdd(joined);
  if (symbols_.extra() != known) ++unknown_merges_;
  InsertMerge({PairKey(left_symbol, right_symbol), rank, product});
  return {};
}

void Bpe::InsertMerge(const Merge& merge) {
  const std::size_t mask = merges_.size() - 1;
  std::size_t at = HashPair(merge.pair) & mask;
  while (merges_[at].pair != kNoPair && merges_[at].pair != merge.pair) at = (at + 1) & mask;
  if (merges_[at].pair == kNoPair) merges_[at] = merge;  // of two equal merges the first, better ranked one counts
}

const Bpe::Merge* Bpe::FindMerge(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = PairKey(left, right);
  const std::size_t mask = merges_.size() - 1;
  for (std::size_t at = HashPair(pair) & mask; merges_[at].pair != kNoPair; at = (at + 1) & mask) {
    if (merges_[at].pair == pair) return &merges_[at];
  }
  return nullptr;
}

// A linked list of symbols and a queue of the pairs that can merge; a pair whose symbols have changed since is skipped.
void Bpe::MergeAll(std::vector<std::int32_t>& symbols) const {
  struct Pair {
    std::uint32_t rank, left, right;
    std::int32_t left_symbol, right_symbol, product;
    bool operator>(const Pair& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
  };
  constexpr std::uint32_t kNone = ~std::uint32_t{0};
  const auto count = static_cast<std::uint32_t>(symbols.size());
  std::vector<std::uint32_t> previous(count), next(count);
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> queue;
  const auto offer = [&](std::uint32_t left, std::uint32_t right) {
    if (left == kNone || right == kNone) return;
    const Merge* merge = FindMerge(symbols[left], symbols[right]);
    if (merge != nullptr) queue.push({merge->rank, left, right, symbols[left], symbols[right], merge->product});
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == count ? kNone : i + 1;
    if (i > 0) offer(i - 1, i);
  }
  while (!queue.empty()) {
    const Pair best = queue.top();
    queue.pop();
    if (symbols[best.left] != best.left_symbol || symbols[best.right] != best.right_symbol) continue;
    symbols[best.left] = best.product;
    symbols[best.right] = -1;  // gone
    next[best.left] = next[best.right];
    if (next[best.left] != kNone) previous[next[best.left]] = best.left;
    offer(previous[best.left], best.left);
    offer(best.left, next[best.left]);
  }
  std::erase(symbols, -1);
}

Result<void> Bpe::EmitBytes(std::string_view text, std::optional<std::int32_t> unknown,
                            std::vector<std::int32_t>& ids) const {
  for (const char c : BytesOfText(text)) {
    const auto byte = static_cast<std::uint8_t>(c);
    const std::int32_t symbol = byte_symbols_[byte];
    if (!symbols_.IsToken(symbol) && !unknown) {
      return Fail(Code::kTokenizerText, "text",
                  fmt::format("byte 0x{:02x}, for which the vocabulary has no token", byte),
                  "text that the model's vocabulary can spell");
    }
    ids.push_back(symbols_.IsToken(symbol) ? symbol : *unknown);
  }
  return {};
}

Result<void> Bpe::Encode(std::string_view piece, std::optional<std::int32_t> unknown,
                         std::vector<std::int32_t>& ids) const {
  std::vector<std::int32_t> symbols;
  symbols.reserve(piece.size());
  std::string text;
  for (const char c : piece) {
    symbols.push_back(byte_symbols_[static_cast<std::uint8_t>(c)]);
    if (ignore_merges_) text += ByteText(static_cast<std::uint8_t>(c));
  }
  if (const std::int32_t whole = ignore_merges_ ? Find(text) : -1; whole >= 0) {
    ids.push_back(whole);
    return {};
  }
  MergeAll(symbols);
  for (const std::int32_t symbol : symbols) {
    if (symbols_.IsToken(symbol)) {
      ids.push_back(symbol);
    } else {
      BOLTBEAM_TRY(EmitBytes(symbols_.Text(symbol), unknown, ids));
    }
  }
  return {};
}

}  // namespace boltbeam::model
