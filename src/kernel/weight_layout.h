// How a table of weights lies in memory for the chip, and how the activations lie that it is multiplied by.
//
// A row group is `lanes` rows side by side, in one vector register or several: every 32-bit lane belongs to a row, so
// no product needs a horizontal sum. Inside a group, block after block along the contracted dimension, everything lies
// in the order in which the kernel reads it, so that a thread reads one ascending stream:
//
//   [minimum words][chunk: scale bytes, words of codes] ... [d][m]
//
// A chunk is 32 elements, or more where a sub-block or a block asks for it. Its codes are taken four at a time, a quad,
// element 4q + i in byte i of a word, so that a shift and a mask give four codes ready for a byte dot product. Each
// byte holds as many whole codes as fit (of 3 bits two, of 6 one), and the bits that are left over, word after word,
// hold further quads in pieces: eight quads of n bits fill n words, and most codes need no joining. Codes that are
// signed in the file (or looked up in a codebook) are stored biased, as unsigned bytes need. Scales share bytes with
// minimums where both fit, or are written out in more bytes for fewer instructions (ScaleForm). All of it is derived
// from the format's layout row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/format.h"
#include "kernel/program.h"

namespace boltbeam::kernel {

inline constexpr std::int32_t kHalfBase = 16;  // of a number that is multiplied in two halves

inline constexpr std::uint32_t kLineBytes = 64;  // of a cache: what one prefetch asks for

/// The instruction that multiplies bytes, in order of preference where the chip has it.
enum class Dot : std::uint8_t {
  kDot4,        // four u8 x s8 products added into an i32 lane (VNNI, usdot)
  kDot4Signed,  // four s8 x s8 products added into an i32 lane (sdot): factors that are no signed bytes less 128
  kMaddBytes,   // pairs of u8 x s8 into saturating i16 (AVX2): numbers up to 128, larger ones in two halves
  kMaddHalves,  // pairs of i16 products into an i32 (SSE2): any code
  kFloat,       // f32 fused multiply-add, for float formats
};

/// How a table's scales are written when it is rearranged.
enum class ScaleForm : std::uint8_t {
  kPacked,  // as many bits as in the file
  kBytes,   // those of sub-blocks a byte each, and so the minimums
  kWords,   // all of them 32 bits: whole numbers as i32, the others as f32. Minimums are bytes
};

/// What a search may choose about a product. The default comes from DefaultGeometry.
struct GemvGeometry {
  std::uint16_t lanes = 8;  // 32-bit lanes of a vector register, a row each
  Dot dot = Dot::kMaddHalves;
  std::uint16_t columns = 1;         // activation columns that share one pass over the weights in registers
  std::uint16_t unroll = 1;          // blocks (float formats: elements) per turn of the loop
  bool ordered = true;               // keep the weight loads in address order
  std::uint32_t prefetch_bytes = 0;  // distance; 0: none
  bool prefetch_once = false;        // what is fetched need not stay in the caches
  std::uint16_t prefetch_every = 1;  // one line of so many is fetched
  std::uint16_t vectors = 1;         // registers of rows side by side, which share a load of the activations
  std::uint16_t chains = 1;          // accumulators of one dot product (float formats: of one sum)
  std::uint16_t depth = 1;           // of kMaddBytes: pairs added in 16 bits before they are widened
  ScaleForm scales = ScaleForm::kPacked;

  [[nodiscard]] std::uint32_t rows() const { return std::uint32_t{lanes} * vectors; }  // of a group
  /// What decides which instructions there are: the same with loads in order and nothing fetched ahead.
  [[nodiscard]] GemvGeometry Coarse() const;
  friend bool operator==(const GemvGeometry&, const GemvGeometry&) = default;
};

/// Bits of a quad's four codes, the same ones of each: where they lie and where they belong.
struct CodePiece {
  std::uint32_t word = 0;   // of the chunk's words of codes
  std::uint32_t bit = 0;    // the first one, of each byte of the word
  std::uint32_t width = 0;  // bits
  std::uint32_t shift = 0;  // where they belong in the code
};

/// Where the whole numbers of sub-block scales lie. Minimums are a byte each, four to a word, before the chunks.
enum class ScalePlace : std::uint8_t {
  kBytes,   // a byte each, before the chunk's codes
  kWords,   // a word each, before the chunk's codes
  kHalves,  // in the low half of the minimum's byte, whose high half is the minimum: both have four bits at most
  kSpread,  // their low four bits two to a byte after the minimums, the others above the minimum: at most twelve in all
};

struct WeightLayout {
  const formats::Format* format = nullptr;  // whose blocks are rearranged: the plain one of a format with a coding
  std::uint32_t lanes = 0;                  // rows of a group
  ScaleForm scales = ScaleForm::kPacked;
  bool is_float = false;
  Memory float_memory = Memory::kWord;

  std::uint32_t elements = 0;  // per block
  std::uint32_t chunks = 0;    // per block
  std::uint32_t chunk_elements = 0;
  std::uint32_t scale_elements = 0;  // per sub-block (a chunk when a block has no sub-scales)
  bool has_scales = false, has_minimums = false, has_m = false;
  ScalePlace scale_place = ScalePlace::kBytes;
  bool has_signed_scales = false;                   // of kBytes
  std::int32_t scale_bias = 0;                      // to be subtracted from a stored scale
  std::int32_t bias = 0;                            // subtracted from every stored code
  std::int32_t code_max = 0;                        // largest stored code
  std::vector<std::vector<CodePiece>> quads;        // of a chunk: the pieces of each
  std::uint32_t code_words = 0;                     // of a chunk and row
  std::uint32_t scale_offset = 0, code_offset = 0;  // in a chunk
  std::uint32_t chunk_offset = 0, chunk_bytes = 0;
  std::uint32_t d_offset = 0, m_offset = 0;
  std::uint32_t d_bytes = 0, m_bytes = 0;  // of a row
  std::uint32_t block_bytes = 0;           // of the whole row group

  /// Whether numbers are multiplied in two halves: whole ones would overflow pairs of 16 bits.
  [[nodiscard]] bool IsSplit(Dot dot) const { return dot == Dot::kMaddBytes && code_max > 128; }
  /// What is taken from every number that is multiplied, the bias included, so that it fits the instruction.
  [[nodiscard]] std::int32_t Recentred(Dot dot) const { return dot == Dot::kDot4Signed && code_max > 127 ? 128 : 0; }
  /// Most pairs of bytes that add up in 16 bits, no more than a sub-block has; 1 where nothing is summed so.
  [[nodiscard]] std::uint32_t PairDepth(Dot dot) const;
  [[nodiscard]] std::uint32_t SubsPerChunk() const { return chunk_elements / scale_elements; }
  [[nodiscard]] std::uint32_t MinimumWords() const;  // per block and row
  [[nodiscard]] std::uint32_t ScaleWords() const;    // of kSpread, after them: one for eight sub-blocks
  /// Of kSpread: the bit of a minimum's byte where the scale's bits from the fourth on begin.
  [[nodiscard]] std::uint32_t SpreadBit() const { return 8 - (format->layout->scales->bits - 4); }
  [[nodiscard]] std::uint64_t GroupBytes(std::uint64_t cols) const { return cols / elements * block_bytes; }
  [[nodiscard]] std::uint64_t TableBytes(std::uint64_t rows, std::uint64_t cols) const {
    return (rows + lanes - 1) / lanes * GroupBytes(cols);
  }
};

/// kKernelIllegal with the reason when no layout can be derived from the format's row.
Result<WeightLayout> LayoutFor(const formats::Format& format, std::uint32_t lanes,
                               ScaleForm scales = ScaleForm::kPacked);
inline Result<WeightLayout> LayoutFor(const formats::Format& format, const GemvGeometry& geometry) {
  return LayoutFor(format, geometry.rows(), geometry.scales);
}

/// One column of activations, quantised so that the product with a layout needs nothing else:
/// block after block [codes][sums][scale f32][scaled sum f32].
struct ActivationLayout {
  bool is_float = true;
  std::uint32_t elements = 1;      // per block: one scale
  bool halves = false;             // codes are i16 in the order 0 2 1 3 instead of bytes
  std::uint32_t sum_elements = 0;  // elements per sum
  enum class Sums : std::uint8_t { kNone, kMinusBias, kHalfPairs } sums = Sums::kNone;
  std::int32_t bias = 0;  // of kMinusBias: the sum is multiplied by -bias
  bool has_scaled_sum = false;
  std::uint32_t sums_offset = 0, scale_offset = 0, block_bytes = 4;

  [[nodiscard]] std::uint64_t ColumnBytes(std::uint64_t cols) const { return cols / elements * block_bytes; }
  friend bool operator==(const ActivationLayout&, const ActivationLayout&) = default;
};

ActivationLayout ActivationsFor(const WeightLayout& layout, Dot dot);

/// Why the integer sums of a block can leave their 32 bits, or sums of a sub-block's activations their 16, in numbers;
/// empty: they can't. Integers wrap, so that only what a sum comes to counts, and not the way there.
std::string SumOverflow(const WeightLayout& layout);

/// Whether a geometry can run a layout of this many columns; the error says why not.
Result<void> CheckGeometry(const WeightLayout& layout, const GemvGeometry& geometry, std::uint64_t cols);

}  // namespace boltbeam::kernel
