// The unpacking of one block of a row group: from the words of a WeightLayout to what is multiplied.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/families/ahead.h"
#include "kernel/rows.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

/// Everything is read in the order of the calls, which for one ascending stream is: the minimums' words, GatherScales,
/// then chunk after chunk BeginChunk and its factors in order, then D and M.
class Unpack {
 public:
  Unpack(Builder& builder, const WeightLayout& layout, const GemvGeometry& geometry, std::uint32_t buffer);

  /// A block that lies `at` bytes after `weights`. `turn` says in notes which one of a turn it is.
  void BeginBlock(Value weights, std::int64_t at, std::string turn);

  /// Four minimums of every row as pairs of 16 bits: sub-blocks 0 and 2, and 1 and 3 of a word's four.
  struct MinimumPairs {
    Rows even, odd;
  };
  MinimumPairs Minimums(std::uint32_t word);
  /// Puts the scales of kSpread together, four to a word.
  void GatherScales();
  /// Reads the scales of a chunk.
  void BeginChunk(std::uint32_t chunk);
  /// Of a sub-block of the chunk: whole numbers, or f32 where the format encodes them so.
  [[nodiscard]] const Rows& ScaleOf(std::uint32_t sub) const { return scales_[sub]; }
  /// What is multiplied for elements 4 * quad to 4 * quad + 3 of the chunk: the codes, or the codebook's numbers, or
  /// the two halves of each, low ones first, where whole ones would overflow.
  std::vector<Rows> Factors(std::uint32_t quad);
  /// The block's scale and minimum, with their factor and sign.
  Rows D();
  Rows M();

  [[nodiscard]] const std::string& turn() const { return turn_; }

 private:
  Rows Load(Type type, Memory memory, std::int64_t offset, std::uint32_t lane_bytes);
  Rows Words(std::int64_t offset, Memory memory = Memory::kWord);
  Rows Encoded(formats::Encoding encoding, std::int64_t offset);
  Rows BlockScale(const formats::ScaleWord& word, std::int64_t offset);
  Rows StoredScale(std::uint32_t chunk, std::uint32_t sub);
  void ReadScales(std::uint32_t chunk);
  Rows Codes(std::uint32_t quad);

  Builder& b_;
  const WeightLayout& layout_;
  const formats::Layout& row_;
  const GemvGeometry& geometry_;
  const std::uint32_t buffer_;
  const std::uint16_t lanes_;
  const Ahead ahead_;
  Value weights_;
  std::int64_t at_ = 0, chunk_at_ = 0;
  std::string turn_;
  std::vector<Rows> scale_words_;  // of kHalves and kSpread, four to a word
  std::vector<Rows> scales_;       // of the chunk
  std::vector<Rows> words_;        // of the chunk's codes, as far as they have been read
};

}  // namespace boltbeam::kernel
