#include "kernel/families/unpack.h"

#include <fmt/format.h>

#include "kernel/families/scales.h"

namespace boltbeam::kernel {

Unpack::Unpack(Builder& builder, const WeightLayout& layout, const GemvGeometry& geometry, std::uint32_t buffer)
    : b_(builder),
      layout_(layout),
      row_(*layout.format->layout),
      geometry_(geometry),
      buffer_(buffer),
      lanes_(geometry.lanes),
      ahead_{geometry.prefetch_bytes, geometry.prefetch_once, geometry.prefetch_every} {}

void Unpack::BeginBlock(Value weights, std::int64_t at, std::string turn) {
  weights_ = weights;
  at_ = at;
  turn_ = std::move(turn);
  scale_words_.clear();
}

/// The rows' elements side by side, `lane_bytes` each.
Rows Unpack::Load(Type type, Memory memory, std::int64_t offset, std::uint32_t lane_bytes) {
  std::vector<Value> registers;
  for (std::uint32_t row = 0; row < layout_.lanes; row += lanes_) {
    const std::int64_t place = offset + std::int64_t{row} * lane_bytes;
    registers.push_back(b_.Load(buffer_, type, memory, weights_, at_ + place, geometry_.ordered));
    FetchAhead(b_, buffer_, weights_, at_ + place, std::int64_t{lanes_} * lane_bytes, ahead_);
  }
  return Rows(std::move(registers));
}

Rows Unpack::Words(std::int64_t offset, Memory memory) {
  return Load({Scalar::kI32, lanes_}, memory, offset, memory == Memory::kWord ? 4 : 1);
}

Rows Unpack::Encoded(formats::Encoding encoding, std::int64_t offset) {
  std::vector<Value> registers;
  for (std::uint32_t row = 0; row < layout_.lanes; row += lanes_) {
    const std::int64_t place = offset + std::int64_t{row} * ScaleBytes(encoding);
    registers.push_back(LoadScale(b_, buffer_, encoding, lanes_, weights_, at_ + place, geometry_.ordered));
    FetchAhead(b_, buffer_, weights_, at_ + place, std::int64_t{lanes_} * ScaleBytes(encoding), ahead_);
  }
  return Rows(std::move(registers));
}

Unpack::MinimumPairs Unpack::Minimums(std::uint32_t word) {
  const bool halves = layout_.scale_place == ScalePlace::kHalves;
  const std::uint32_t bits = halves ? 4 : layout_.scale_place == ScalePlace::kSpread ? layout_.SpreadBit() : 8;
  const Value mask = b_.U32(0x00010001U * ((1U << bits) - 1), lanes_);
  b_.Note(fmt::format("{}minimums of sub-blocks {} to {} x sums of their activations", turn_, word * 4, word * 4 + 3));
  const Rows bytes = Words(std::int64_t{word} * 4 * layout_.lanes);
  scale_words_.push_back(bytes);
  MinimumPairs pairs;
  pairs.even = (halves ? Shr(bytes, 4) : bytes) & mask;
  pairs.odd = Shr(bytes, halves ? 12 : 8) & mask;
  return pairs;
}

/// Low halves come from their own words, the rest from the minimums'.
void Unpack::GatherScales() {
  if (layout_.scale_place != ScalePlace::kSpread) return;
  b_.Note(turn_ + "scales of all sub-blocks");
  const std::uint32_t high_bits = row_.scales->bits - 4;
  const Value low_mask = b_.U32(0x0F0F0F0F, lanes_);
  const Value high_mask = b_.U32(0x10101010U * ((1U << high_bits) - 1), lanes_);
  for (std::uint32_t word = 0; word < layout_.ScaleWords(); ++word) {
    const Rows low = Words(std::int64_t{layout_.MinimumWords() + word} * 4 * layout_.lanes);
    for (const std::uint32_t half : {0U, 1U}) {
      Rows& scales = scale_words_[2 * word + half];
      const Rows high = Shr(scales, static_cast<std::int32_t>(layout_.SpreadBit() - 4)) & high_mask;
      scales = (Shr(low, static_cast<std::int32_t>(4 * half)) & low_mask) | high;
    }
  }
}

void Unpack::BeginChunk(std::uint32_t chunk) {
  chunk_at_ = layout_.chunk_offset + std::int64_t{chunk} * layout_.chunk_bytes;
  ReadScales(chunk);
  words_.clear();
}

void Unpack::ReadScales(std::uint32_t chunk) {
  scales_.clear();
  if (!layout_.has_scales) return;
  b_.Note(fmt::format("{}sub-block scales of elements {} to {}", turn_, chunk * layout_.chunk_elements,
                      (chunk + 1) * layout_.chunk_elements - 1));
  for (std::uint32_t sub = 0; sub < layout_.SubsPerChunk(); ++sub) scales_.push_back(StoredScale(chunk, sub));
}

Rows Unpack::StoredScale(std::uint32_t chunk, std::uint32_t sub) {
  const std::uint32_t index = chunk * layout_.SubsPerChunk() + sub;
  const std::int64_t at = chunk_at_ + layout_.scale_offset;
  const bool is_encoded = row_.scales->encoding.has_value();
  switch (layout_.scale_place) {
    case ScalePlace::kWords:
      return Load({is_encoded ? Scalar::kF32 : Scalar::kI32, lanes_}, Memory::kWord,
                  at + std::int64_t{sub} * 4 * layout_.lanes, 4);
    case ScalePlace::kBytes: {
      const std::int64_t byte = at + std::int64_t{sub} * layout_.lanes;
      if (is_encoded) return Encoded(*row_.scales->encoding, byte);
      return Words(byte, layout_.has_signed_scales ? Memory::kS8 : Memory::kU8) - layout_.scale_bias;
    }
    case ScalePlace::kHalves:
    case ScalePlace::kSpread:
      break;
  }
  const std::uint32_t mask = layout_.scale_place == ScalePlace::kHalves ? 0xF : 0xFF;
  Rows scale = Shr(scale_words_[index / 4], static_cast<std::int32_t>(index % 4 * 8));
  if (mask != 0xFF || index % 4 != 3) scale = scale & b_.U32(mask, lanes_);
  return scale - layout_.scale_bias;
}

/// Four codes of every row, one a byte. A word is read when the first of its codes is wanted.
Rows Unpack::Codes(std::uint32_t quad) {
  Rows codes;
  bool is_first = true;
  for (const CodePiece& piece : layout_.quads[quad]) {
    while (words_.size() <= piece.word) {
      words_.push_back(
          Words(chunk_at_ + layout_.code_offset + static_cast<std::int64_t>(words_.size()) * 4 * layout_.lanes));
    }
    // One shift from where the bits lie to where they belong, then a mask.
    const auto down = static_cast<std::int32_t>(piece.bit) - static_cast<std::int32_t>(piece.shift);
    Rows bits = words_[piece.word];
    if (down != 0) bits = down > 0 ? Shr(bits, down) : Shl(bits, -down);
    if (piece.width < 8) bits = bits & b_.U32(0x01010101U * (((1U << piece.width) - 1) << piece.shift), lanes_);
    codes = is_first ? bits : codes | bits;
    is_first = false;
  }
  return codes;
}

std::vector<Rows> Unpack::Factors(std::uint32_t quad) {
  const Rows codes = Codes(quad);
  const std::vector<std::int32_t>& codebook = row_.codebook;
  const std::int32_t less = layout_.Recentred(geometry_.dot);
  // Flipping the highest bit of a byte takes 128 from it.
  if (codebook.empty() && !layout_.IsSplit(geometry_.dot)) {
    return {less == 0 ? codes : codes ^ b_.U32(0x80808080, lanes_)};
  }
  if (codebook.empty()) {
    const Value mask = b_.U32(0x0F0F0F0F, lanes_);
    const Rows low = codes & mask;
    return {low, Shr(codes, 4) & mask};
  }
  std::vector<std::vector<std::int32_t>> tables(layout_.IsSplit(geometry_.dot) ? 2 : 1, std::vector<std::int32_t>(16));
  for (std::size_t code = 0; code < codebook.size(); ++code) {
    const std::int32_t number = codebook[code] + layout_.bias - less;
    tables[0][code] = tables.size() == 1 ? number : number % kHalfBase;
    if (tables.size() == 2) tables[1][code] = number / kHalfBase;
  }
  std::vector<Rows> factors;
  for (const std::vector<std::int32_t>& table : tables) {
    factors.push_back(EachRegister([&](Value bytes) { return b_.Table16(bytes, table); }, codes));
  }
  return factors;
}

/// d or m: as the file encodes it, or written out with its factor and sign.
Rows Unpack::BlockScale(const formats::ScaleWord& word, std::int64_t offset) {
  if (layout_.scales == ScaleForm::kWords && word.encoding != formats::Encoding::kOne) {
    return Load({Scalar::kF32, lanes_}, Memory::kWord, offset, 4);
  }
  Rows scale = Encoded(word.encoding, offset);
  if (word.factor != 1) scale = scale * b_.F32(word.factor, lanes_);
  if (word.sign < 0) scale = Rows(b_.F32(0, lanes_)) - scale;
  return scale;
}

Rows Unpack::D() { return BlockScale(row_.d, layout_.d_offset); }
Rows Unpack::M() { return BlockScale(*row_.m, layout_.m_offset); }

}  // namespace boltbeam::kernel
