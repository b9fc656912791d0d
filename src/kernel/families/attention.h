// Attention over a KV cache, and what fills the cache.
//
// The cache of one layer lies head after head, a head's chunk after chunk, and of a chunk the keys before the values:
// [KV head][chunk][keys, values][positions of a chunk], so that a thread that works through its heads reads memory in
// ascending order. Keys lie in groups of `lanes` positions, [position
// group][head_dim][lanes], so that scores need no horizontal sum; values lie [position][head_dim]. Long contexts are
// cut into chunks of a fixed number of positions, whatever the number of threads, and the chunks' results are combined
// in order: the same plan gives the same numbers on any number of threads (online softmax, after Milakov and
// Gimelshein, arXiv 1805.02867; the split, Flash-Decoding, Dao et al. 2023).
//
// Keys and values that are kept as codes have 8 bits and an f16 scale for every block of dims, and lie so that both
// sums are sums of integers. Few dims of keys are far larger than the others, and would take the precision of all that
// share a scale with them: keys and queries are mixed before they become codes (a Walsh-Hadamard transform of every
// MixedDims() of a head, which leaves their products as they are but for that factor). Keys: [position group]{[head_dim
// / 4][lanes][4 codes], scales [block][lanes]}, times a query in codes. Values: [block]{scales [position], [position /
// 4][dim of the block][4 codes]}, times e^(score - largest) x scale in 16 bits, so that four positions add up in a
// lane.
#pragma once

#include <cstdint>
#include <string>

#include "kernel/program.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

/// How keys or values are kept: as floats, or as codes of 8 bits that share an f16 scale among `block` dims.
struct CacheElement {
  Memory memory = Memory::kF16;  // kF16, kWord; kU8: codes, stored with kCodeBias added
  std::uint32_t block = 0;       // of kU8: a multiple of 16 that divides head_dim

  [[nodiscard]] bool IsCoded() const { return memory == Memory::kU8; }
  [[nodiscard]] std::uint64_t Bytes(std::uint64_t dims) const {
    if (IsCoded()) return dims + dims / block * 2;
    return dims * (memory == Memory::kF16 ? 2 : 4);
  }
};
inline constexpr std::int32_t kCodeBias = 128;

struct AttentionShape {
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  std::uint32_t rope_dims = 0;   // the first dims of a head that are rotated
  bool rope_neox = false;        // pairs (i, i + rope_dims / 2) instead of (2i, 2i + 1)
  bool has_norm = false;         // RMSNorm over the head before the rotation
  float epsilon = 0, scale = 1;  // scale: of the scores
  std::uint64_t context = 0;     // positions of the cache, a multiple of chunk
  std::uint32_t chunk = 128;     // positions
  std::uint64_t window = 0;      // positions that a query sees, its own included; 0: all
  CacheElement key, value;
  Dot dot = Dot::kMaddHalves;  // of keys in codes: this or kDot4
  std::uint16_t lanes = 8;
  std::uint32_t registers = 16;      // vector registers: bounds the accumulators
  std::uint32_t prefetch_bytes = 0;  // how far ahead of its reads the cache is fetched; 0: not

  [[nodiscard]] std::uint64_t KeyBytes() const { return key.Bytes(head_dim); }      // of a head's position
  [[nodiscard]] std::uint64_t ValueBytes() const { return value.Bytes(head_dim); }  // of a head's position
  [[nodiscard]] std::uint64_t KeysBytes() const { return chunk * KeyBytes(); }      // of a chunk; then its values
  [[nodiscard]] std::uint64_t ChunkBytes() const { return KeysBytes() + chunk * ValueBytes(); }  // of a head
  [[nodiscard]] std::uint64_t HeadBytes() const { return context / chunk * ChunkBytes(); }
  [[nodiscard]] std::uint64_t LayerCacheBytes() const { return kv_heads * HeadBytes(); }         // keys and values
  [[nodiscard]] std::uint64_t PartialBytes() const { return 64 + std::uint64_t{head_dim} * 4; }  // one head, one chunk
  [[nodiscard]] std::uint64_t ScratchBytes() const {
    return std::uint64_t{heads / kv_heads} * chunk * (value.IsCoded() ? 6 : 4);
  }
  [[nodiscard]] std::uint64_t QueryStride() const { return (std::uint64_t{heads} * head_dim + 15) / 16 * 64; }
  [[nodiscard]] std::uint64_t KeyStride() const { return (std::uint64_t{kv_heads} * head_dim + 15) / 16 * 64; }

  /// Dims of a head that are mixed where keys are codes: a power of two.
  [[nodiscard]] std::uint32_t MixedDims() const { return head_dim & -head_dim; }
  /// Of a query that is multiplied by keys in codes: 8-bit codes, a scale for each of the keys' blocks.
  [[nodiscard]] ActivationLayout QueryCodes() const;
};

/// Why the sum of a chunk's values in codes times their weights can leave its 32 bits; empty: it can't.
std::string SumOverflow(const AttentionShape& shape);

/// Work items are heads. The table holds, for every position, rope_dims / 2 cosines and then as many sines.
/// Buffers of keys begin with the cache, those of values KeysBytes behind.
/// Queries in place: buffers vector (written), table, state, [norm].
/// Keys into the cache: buffers vector, table, state, cache (written), [norm]; keys in codes are rotated in place
/// and mixed, and so are their queries.
Program BuildRope(const AttentionShape& shape, bool keys);

/// Values, or keys in codes that have been rotated, into the cache. Work items are KV heads. Buffers: vector, state,
/// cache (written). The scale of a block is its largest magnitude / 127 in f16, codes are rounded to nearest even.
Program BuildAppendValues(const AttentionShape& shape);
Program BuildAppendKeyCodes(const AttentionShape& shape);

/// Scores, softmax and weighted sum of one chunk for all query heads of one KV head. With a window only the chunks that
/// this pass can see take part, from kStateWindowFirst on. Work items: KV head * chunks + chunk. Buffers: query (f32,
/// or column after column of QueryCodes), keys, values, state, partial (written: [column][head][chunk] of {largest,
/// sum, pad to 64 B, output}), scratch (written, of one thread).
Program BuildAttention(const AttentionShape& shape);

/// The chunks of a head brought together. Work items: column * heads + head. Buffers: partial, state, output (f32).
Program BuildCombine(const AttentionShape& shape);

}  // namespace boltbeam::kernel
