#include "kernel/families/rearrange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "kernel/builder.h"
#include "kernel/families/scales.h"

namespace boltbeam::kernel {
namespace {

/// Where the bits of one 32-bit word come from: for each, the bit of the block; -1: zero.
using WordSource = std::array<std::int32_t, 32>;

/// The block's bit that holds bit `bit` of element `index` of a field.
std::int32_t SourceBit(const formats::Field& field, std::uint32_t index, std::uint32_t bit) {
  for (const formats::Piece& piece : field.pieces) {
    if (bit >= piece.shift && bit < piece.shift + piece.width) {
      return static_cast<std::int32_t>(piece.BitAddress(index) + bit - piece.shift);
    }
  }
  return -1;
}

class Rearrange {
 public:
  Rearrange(const WeightLayout& layout, std::uint64_t cols)
      : layout_(layout),
        row_(*layout.format->layout),
        lanes_(static_cast<std::uint16_t>(layout.lanes)),
        b_(fmt::format("rearrange.{}.b{}.r{}", cols, layout.block_bytes, layout.lanes),
           fmt::format("rows of {} elements as in the file -> groups of {} rows side by side", cols, layout.lanes)) {
    source_ = b_.AddBuffer("source");
    target_ = b_.AddBuffer("target", true);
    const std::int64_t block_bytes = layout.format->bytes;
    const auto row_bytes = static_cast<std::int64_t>(cols / layout.elements * layout.format->bytes);
    stride_ = b_.I64(row_bytes);
    b_.Loop(b_.Begin(), b_.End(), b_.I64(1), {}, [&](Value group, auto) -> std::vector<Value> {
      const Value from = group * (row_bytes * lanes_);
      b_.Loop(from, from + row_bytes, b_.I64(block_bytes), {group * static_cast<std::int64_t>(layout.GroupBytes(cols))},
              [&](Value block, std::span<const Value> to) -> std::vector<Value> {
                Block(block, to[0]);
                return {to[0] + layout_.block_bytes};
              });
      return {};
    });
  }

  Program Build() && { return std::move(b_).Finish(); }

 private:
  void Block(Value from, Value to) {
    words_.clear();
    if (layout_.is_float) {
      const Scalar scalar = Scalar::kI32;  // the pattern is copied, not converted
      const Memory memory = layout_.format->bytes == 2 ? Memory::kU16 : Memory::kWord;
      b_.Store(target_, to, b_.LoadStrided(source_, {scalar, lanes_}, memory, from, stride_), memory);
      return;
    }
    if (layout_.has_minimums) Minimums(from, to);
    for (std::uint32_t chunk = 0; chunk < layout_.chunks; ++chunk) Chunk(from, to, chunk);
    WriteScale(from, to, row_.d, layout_.d_offset);
    if (layout_.has_m) WriteScale(from, to, *row_.m, layout_.m_offset);
  }

  void Minimums(Value from, Value to) {
    const std::uint32_t subs = layout_.elements / layout_.scale_elements;
    const bool halves = layout_.scale_place == ScalePlace::kHalves;
    const bool spread = layout_.scale_place == ScalePlace::kSpread;
    const std::uint32_t first = halves ? 4 : 0;  // bit of a minimum in its byte
    b_.Note(halves || spread ? "minimums and scales, four of each to a word" : "minimums, four to a word");
    for (std::uint32_t word = 0; word < layout_.MinimumWords(); ++word) {
      WordSource source;
      source.fill(-1);
      for (std::uint32_t bit = 0; bit < 32; ++bit) {
        const std::uint32_t sub = word * 4 + bit / 8;
        const std::uint32_t at = bit % 8;
        if (sub >= subs) continue;
        if (at < first) {
          source[bit] = SourceBit(*row_.scales, sub, at);
        } else if (at - first < row_.minimums->bits) {
          source[bit] = SourceBit(*row_.minimums, sub, at - first);
        } else if (spread && at >= layout_.SpreadBit()) {
          source[bit] = SourceBit(*row_.scales, sub, at - layout_.SpreadBit() + 4);
        }
      }
      b_.Store(target_, to, Assemble(from, source), Memory::kWord, std::int64_t{word} * 4 * lanes_);
    }
    if (spread) ScaleWords(from, to);
  }

  /// The low four bits of eight scales: the first four in the low halves of the bytes.
  void ScaleWords(Value from, Value to) {
    b_.Note("low four bits of the scales, eight to a word");
    for (std::uint32_t word = 0; word < layout_.ScaleWords(); ++word) {
      WordSource source;
      for (std::uint32_t bit = 0; bit < 32; ++bit) {
        const std::uint32_t sub = word * 8 + bit % 8 / 4 * 4 + bit / 8;
        source[bit] = SourceBit(*row_.scales, sub, bit % 4);
      }
      b_.Store(target_, to, Assemble(from, source), Memory::kWord,
               std::int64_t{layout_.MinimumWords() + word} * 4 * lanes_);
    }
  }

  void Chunk(Value from, Value to, std::uint32_t chunk) {
    const std::int64_t base = layout_.chunk_offset + std::int64_t{chunk} * layout_.chunk_bytes;
    const std::uint32_t first = chunk * layout_.chunk_elements;
    const std::uint32_t last = first + layout_.chunk_elements - 1;
    const bool has_words = layout_.scale_place == ScalePlace::kWords;
    if (layout_.has_scales && (layout_.scale_place == ScalePlace::kBytes || has_words)) {
      const std::uint32_t subs = layout_.SubsPerChunk();
      b_.Note(fmt::format("scales of elements {} to {}", first, last));
      for (std::uint32_t sub = 0; sub < subs; ++sub) {
        const std::uint32_t bytes = has_words ? 4 : 1;
        b_.Store(target_, to, SubScale(from, chunk * subs + sub), has_words ? Memory::kWord : Memory::kU8,
                 base + layout_.scale_offset + std::int64_t{sub} * bytes * lanes_);
      }
    }
    b_.Note(fmt::format("codes of elements {} to {}", first, last));
    for (std::uint32_t word = 0; word < layout_.code_words; ++word) {
      b_.Store(target_, to, CodeWord(from, first, word), Memory::kWord,
               base + layout_.code_offset + std::int64_t{word} * 4 * lanes_);
    }
  }

  /// A sub-block's scale as the layout stores it.
  Value SubScale(Value from, std::uint32_t sub) {
    const formats::Field& field = *row_.scales;
    WordSource source;
    source.fill(-1);
    for (std::uint32_t bit = 0; bit < field.bits; ++bit) source[bit] = SourceBit(field, sub, bit);
    Value scale = Assemble(from, source);
    const bool is_word = layout_.scale_place == ScalePlace::kWords;
    if (field.encoding) {
      scale = CleanScale(*field.encoding, scale);
      return is_word ? DecodeScale(b_, *field.encoding, scale) : scale;
    }
    const auto unused = static_cast<std::int32_t>(32 - field.bits);
    if (field.is_signed && (unused > 24 || is_word)) scale = Sar(Shl(scale, unused), unused);
    return scale - (field.bias - layout_.scale_bias);
  }

  /// A word of the chunk whose first element is `first`.
  Value CodeWord(Value from, std::uint32_t first, std::uint32_t word) {
    WordSource source;
    source.fill(-1);
    std::uint32_t flips = 0;
    for (std::uint32_t quad = 0; quad < layout_.quads.size(); ++quad) {
      for (const CodePiece& piece : layout_.quads[quad]) {
        if (piece.word != word) continue;
        for (std::uint32_t bit = 0; bit < 4 * piece.width; ++bit) {
          const std::uint32_t byte = bit / piece.width;
          const std::uint32_t of_piece = bit % piece.width;
          const std::uint32_t at = 8 * byte + piece.bit + of_piece;
          source[at] = SourceBit(row_.codes, first + 4 * quad + byte, piece.shift + of_piece);
          if (row_.codes.is_signed && piece.shift + of_piece + 1 == row_.codes.bits) flips |= 1U << at;
        }
      }
    }
    const Value value = Assemble(from, source);
    return flips == 0 ? value : value ^ b_.U32(flips, lanes_);  // signed -> biased: flip the top bit
  }

  /// Shifts and masks that gather one word's bits from the block, the same for every row: lanes are rows.
  Value Assemble(Value from, const WordSource& source) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> moves;  // (source byte, right shift) -> bits
    for (std::int32_t bit = 0; bit < 32; ++bit) {
      if (source[bit] < 0) continue;
      const std::int32_t byte = std::min(source[bit] / 32 * 4, static_cast<std::int32_t>(layout_.format->bytes) - 4);
      moves[{byte, source[bit] - byte * 8 - bit}] |= 1U << bit;
    }
    Value result;
    bool is_first = true;
    for (const auto& [move, mask] : moves) {
      Value bits = Word(from, move.first);
      bits = move.second >= 0 ? Shr(bits, move.second) : Shl(bits, -move.second);
      if (mask != 0xFFFFFFFFU) bits = bits & b_.U32(mask, lanes_);
      result = is_first ? bits : result | bits;
      is_first = false;
    }
    return result;
  }

  Value Word(Value from, std::int32_t byte) {
    const auto [place, is_new] = words_.try_emplace(byte);
    if (is_new) place->second = b_.LoadStrided(source_, {Scalar::kI32, lanes_}, Memory::kWord, from, stride_, byte);
    return place->second;
  }

  /// d or m in the file's encoding, or written out.
  void WriteScale(Value from, Value to, const formats::ScaleWord& word, std::uint32_t offset) {
    const std::uint32_t bytes = ScaleBytes(word.encoding);
    if (bytes == 0) return;
    if (layout_.scales == ScaleForm::kWords) {
      Value scale = FloatScale(from, word);
      if (word.factor != 1) scale = scale * b_.F32(word.factor, lanes_);
      if (word.sign < 0) scale = b_.F32(0, lanes_) - scale;
      b_.Store(target_, to, scale, Memory::kWord, offset);
      return;
    }
    const Memory memory = bytes == 1 ? Memory::kU8 : bytes == 2 ? Memory::kU16 : Memory::kWord;
    Value scale = b_.LoadStrided(source_, {Scalar::kI32, lanes_}, memory, from, stride_, word.base_bit / 8);
    if (bytes == 1) scale = CleanScale(word.encoding, scale);
    b_.Store(target_, to, scale, memory, offset);
  }

  Value FloatScale(Value from, const formats::ScaleWord& word) {
    const auto load = [&](Scalar scalar, Memory memory) {
      return b_.LoadStrided(source_, {scalar, lanes_}, memory, from, stride_, word.base_bit / 8);
    };
    if (word.encoding == formats::Encoding::kF32) return load(Scalar::kF32, Memory::kWord);
    if (word.encoding == formats::Encoding::kF16) return load(Scalar::kF32, Memory::kF16);
    if (word.encoding == formats::Encoding::kBf16) return load(Scalar::kF32, Memory::kBf16);
    return DecodeScale(b_, word.encoding, CleanScale(word.encoding, load(Scalar::kI32, Memory::kU8)));
  }

  const WeightLayout& layout_;
  const formats::Layout& row_;
  const std::uint16_t lanes_;
  Builder b_;
  std::uint32_t source_ = 0, target_ = 0;
  Value stride_;
  std::map<std::int32_t, Value> words_;  // source words of this block already read
};

}  // namespace

Result<Program> BuildRearrange(const WeightLayout& layout, std::uint64_t cols) {
  if (cols == 0 || cols % layout.elements != 0) {
    return Fail(Code::kKernelIllegal, layout.format->name,
                fmt::format("{} columns are no multiple of the block's {}", cols, layout.elements), "whole blocks");
  }
  return Rearrange(layout, cols).Build();
}

}  // namespace boltbeam::kernel
