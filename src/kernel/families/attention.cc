#include "kernel/families/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/families/ahead.h"
#include "kernel/families/cache_place.h"
#include "kernel/families/state.h"

namespace boltbeam::kernel {
namespace {

constexpr std::uint32_t kEvenBytes = 0x00FF00FF;
constexpr std::int32_t kQuad = 4;        // codes of a word
constexpr float kMostWeight = 32767;     // of a position, as a signed half
constexpr float kLeastLargest = 1e-30F;  // bounds the inverse of weights that are all 0

/// Nothing when both are f16.
std::string ElementNames(const AttentionShape& shape) {
  const auto name = [](const CacheElement& element) {
    if (element.IsCoded()) return fmt::format("e{}", element.block);
    return std::string(element.memory == Memory::kF16 ? "f16" : "f32");
  };
  const std::string key = name(shape.key), value = name(shape.value);
  if (key == "f16" && value == "f16") return "";
  return fmt::format(".{}.{}{}", key, value, shape.key.IsCoded() && shape.dot == Dot::kDot4 ? ".dot4" : "");
}

class Attention {
 public:
  explicit Attention(const AttentionShape& shape)
      : s_(shape),
        lanes_(shape.lanes),
        group_(shape.heads / shape.kv_heads),
        codes_(shape.key.IsCoded() ? shape.QueryCodes() : ActivationLayout()),
        query_bytes_(static_cast<std::int64_t>(codes_.ColumnBytes(shape.head_dim))),
        b_(fmt::format("attention.h{}.kv{}.d{}.chunk{}{}.l{}{}{}", shape.heads, shape.kv_heads, shape.head_dim,
                       shape.chunk, shape.window == 0 ? "" : fmt::format(".w{}", shape.window), shape.lanes,
                       ElementNames(shape), shape.prefetch_bytes == 0 ? "" : fmt::format(".p{}", shape.prefetch_bytes)),
           fmt::format("softmax(q k / scale) v over {} positions for the {} query heads of a KV head{}", shape.chunk,
                       group_, shape.window == 0 ? "" : fmt::format(", {} back", shape.window))) {
    query_ = b_.AddBuffer("query");
    keys_ = b_.AddBuffer("keys");
    values_ = b_.AddBuffer("values");
    state_ = b_.AddBuffer("state");
    partial_ = b_.AddBuffer("partial", true);
    scratch_ = b_.AddBuffer("scratch", true);
  }

  Program Build() && {
    const Value chunks = ChunksOf(b_, state_, s_);
    const Value skipped = s_.window == 0 ? b_.I64(0) : Widen(StateWord(b_, state_, kStateWindowFirst));
    const Value columns = Widen(StateWord(b_, state_, kStateColumns));
    const Value position = Widen(StateWord(b_, state_, kStatePosition));
    b_.Note("pairs of KV head and chunk");
    b_.Loop(b_.Begin(), b_.End(), b_.I64(1), {}, [&](Value item, auto) -> std::vector<Value> {
      const Value head = item / chunks;
      const Value chunk = item - head * chunks;
      const Value in_cache = s_.window == 0 ? chunk : chunk + skipped;
      const Value first = in_cache * s_.chunk;  // the chunk's first position
      b_.Loop(b_.I64(0), columns, b_.I64(1), {}, [&](Value column, auto) -> std::vector<Value> {
        const Value visible = position + column + 1 - first;
        const Value count = Max(b_.I64(0), Min(visible, b_.I64(s_.chunk)));
        begin_ =
            s_.window == 0 ? b_.I64(0) : Max(b_.I64(0), Min(visible + -static_cast<std::int64_t>(s_.window), count));
        const Value cache =
            head * static_cast<std::int64_t>(s_.HeadBytes()) + in_cache * static_cast<std::int64_t>(s_.ChunkBytes());
        Column(head, chunk, chunks, column, cache, count);
        return {};
      });
      return {};
    });
    return std::move(b_).Finish();
  }

 private:
  void Column(Value head, Value chunk, Value chunks, Value column, Value cache, Value count) {
    const std::int64_t stride = codes_.is_float ? static_cast<std::int64_t>(s_.QueryStride()) : query_bytes_ * s_.heads;
    const Value query = column * stride + head * (query_bytes_ * group_);
    const std::vector<Value> largest = Scores(query, cache, count);
    std::vector<Value> tops, sums;
    for (std::uint32_t g = 0; g < group_; ++g) tops.push_back(ReduceMax(largest[g]));
    sums = Softmax(tops, count);
    for (std::uint32_t g = 0; g < group_; ++g) {
      const Value row =
          ((column * s_.heads + head * group_ + g) * chunks + chunk) * static_cast<std::int64_t>(s_.PartialBytes());
      b_.Store(partial_, row, tops[g]);
      b_.Store(partial_, row, ReduceAdd(sums[g]), Memory::kWord, 4);
      rows_[g] = row;
    }
    if (s_.value.IsCoded()) {
      CodedSum(cache, count);
    } else {
      WeightedSum(cache, count);
    }
  }

  Type F() const { return {Scalar::kF32, lanes_}; }
  Type I() const { return {Scalar::kI32, lanes_}; }
  /// A load of so many bytes of the cache, in the order of the calls, and the fetch of what lies ahead.
  Value Ordered(std::uint32_t buffer, Type type, Memory memory, Value at, std::int64_t offset, std::int64_t bytes) {
    const Value loaded = b_.Load(buffer, type, memory, at, offset, true);
    FetchAhead(b_, buffer, at, offset, bytes, {s_.prefetch_bytes, false});
    return loaded;
  }
  std::int64_t ScratchRow(std::uint32_t g) const { return std::int64_t{g} * s_.chunk * 4; }

  /// Valid lanes of the vector that starts at position `at` of the chunk.
  Value Valid(Value at, Value count) {
    const Value before_end = Less(b_.LaneIndex(lanes_), Splat(Narrow(count - at), lanes_));
    if (s_.window == 0) return before_end;
    return before_end & Less(Splat(Narrow(begin_ - at + -1), lanes_), b_.LaneIndex(lanes_));
  }

  /// The first whole vector of positions with a visible one.
  Value FirstVector() { return s_.window == 0 ? begin_ : begin_ / lanes_ * lanes_; }

  /// Query heads times the keys of a vector of positions.
  std::vector<Value> Dots(Value query, Value keys) {
    const std::uint32_t unroll = LanesFor(s_.head_dim, 16);
    const std::uint32_t chains = std::min<std::uint32_t>(unroll, std::max<std::uint32_t>(1, 8 / group_));
    const auto vector_bytes = static_cast<std::int64_t>(s_.key.Bytes(lanes_));
    std::vector<Value> carried{keys};
    carried.resize(1 + std::size_t{group_} * chains, b_.F32(0, lanes_));
    const Value to = b_.I64(std::int64_t{s_.head_dim} * 4);
    carried = b_.Loop(b_.I64(0), to, b_.I64(4 * unroll), carried, [&](Value d, std::span<const Value> in) {
      std::vector<Value> next(in.begin(), in.end());
      for (std::uint32_t i = 0; i < unroll; ++i) {
        const Value key = Ordered(keys_, F(), s_.key.memory, in[0], i * vector_bytes, vector_bytes);
        for (std::uint32_t g = 0; g < group_; ++g) {
          Value& sum = next[1 + g * chains + i % chains];
          const std::int64_t element = g * query_bytes_ + std::int64_t{i} * 4;
          sum = Fma(key, b_.LoadBroadcast(query_, F(), Memory::kWord, query + d, element), sum);
        }
      }
      next[0] = in[0] + unroll * vector_bytes;
      return next;
    });
    std::vector<Value> dots;
    for (std::uint32_t g = 0; g < group_; ++g) {
      Value sum = carried[1 + g * chains];
      for (std::uint32_t chain = 1; chain < chains; ++chain) sum = sum + carried[1 + g * chains + chain];
      dots.push_back(sum);
    }
    return dots;
  }

  /// The same in codes: a block's dims are a sum of integers, then the two scales.
  std::vector<Value> CodedDots(Value query, Value keys) {
    const std::int64_t block = s_.key.block;
    const std::vector<Value> zeros(group_, b_.F32(0, lanes_));
    return b_.Loop(
        b_.I64(0), b_.I64(s_.head_dim / block), b_.I64(1), zeros, [&](Value index, std::span<const Value> in) {
          const Value codes = keys + index * (block * lanes_);
          const Value scales = keys + index * (std::int64_t{2} * lanes_);
          const Value own = query + index * std::int64_t{codes_.block_bytes};
          const auto broadcast = [&](Type type, std::uint32_t g, std::int64_t offset) {
            return b_.LoadBroadcast(query_, type, Memory::kWord, own, g * query_bytes_ + offset);
          };
          std::vector<Value> dots, next;
          for (std::uint32_t g = 0; g < group_; ++g) dots.push_back(broadcast(I(), g, codes_.sums_offset));
          for (std::int64_t at = 0; at < block; at += kQuad) {
            const Value words = Ordered(keys_, I(), Memory::kWord, codes, at * lanes_, kQuad * lanes_);
            if (s_.dot == Dot::kDot4) {
              for (std::uint32_t g = 0; g < group_; ++g) dots[g] = Dot4(dots[g], words, broadcast(I(), g, at));
              continue;
            }
            const auto [even, odd] = Halves(words);
            for (std::uint32_t g = 0; g < group_; ++g) {
              dots[g] = dots[g] + MaddHalves(even, broadcast(I(), g, at * 2));
              dots[g] = dots[g] + MaddHalves(odd, broadcast(I(), g, at * 2 + 4));
            }
          }
          const Value scale = b_.Load(keys_, F(), Memory::kF16, scales, std::int64_t{s_.head_dim} * lanes_, true);
          for (std::uint32_t g = 0; g < group_; ++g) {
            next.push_back(Fma(scale * broadcast(F(), g, codes_.scale_offset), ToF32(dots[g]), in[g]));
          }
          return next;
        });
  }

  /// Bytes 0 and 2 of every word, and bytes 1 and 3, as halves.
  static std::pair<Value, Value> Halves(Value words) {
    const Value mask = words.builder().U32(kEvenBytes, words.lanes());
    return {words & mask, Shr(words, 8) & mask};
  }

  /// Writes the chunk's scaled scores to scratch; returns for every query head the largest per lane.
  std::vector<Value> Scores(Value query, Value cache, Value count) {
    const std::vector<Value> lowest(group_, b_.F32(kMasked, lanes_));
    b_.Note(fmt::format("scores: {} positions at a time, one a lane", lanes_));
    return b_.Loop(FirstVector(), count, b_.I64(lanes_), lowest, [&](Value at, std::span<const Value> top) {
      const Value keys = cache + at * static_cast<std::int64_t>(s_.KeyBytes());
      const std::vector<Value> dots = s_.key.IsCoded() ? CodedDots(query, keys) : Dots(query, keys);
      const Value valid = Valid(at, count);
      const float scale = s_.key.IsCoded() ? s_.scale / static_cast<float>(s_.MixedDims()) : s_.scale;
      std::vector<Value> result;
      for (std::uint32_t g = 0; g < group_; ++g) {
        const Value score = Select(valid, dots[g] * b_.F32(scale, lanes_), b_.F32(kMasked, lanes_));
        b_.Store(scratch_, at * 4, score, Memory::kWord, ScratchRow(g));
        result.push_back(Max(top[g], score));
      }
      return result;
    });
  }

  /// Turns the scores in scratch into exp(score - largest); returns the sums per lane.
  std::vector<Value> Softmax(const std::vector<Value>& tops, Value count) {
    const std::vector<Value> zeros(group_, b_.F32(0, lanes_));
    b_.Note("weights: e^(score - largest), and their sum");
    return b_.Loop(FirstVector(), count, b_.I64(lanes_), zeros, [&](Value at, std::span<const Value> sums) {
      const Value valid = Valid(at, count);
      std::vector<Value> next;
      for (std::uint32_t g = 0; g < group_; ++g) {
        const Value score = b_.Load(scratch_, F(), Memory::kWord, at * 4, ScratchRow(g));
        const Value weight = Select(valid, Exp(score - Splat(tops[g], lanes_)), b_.F32(0, lanes_));
        b_.Store(scratch_, at * 4, weight, Memory::kWord, ScratchRow(g));
        next.push_back(sums[g] + weight);
      }
      return next;
    });
  }

  void WeightedSum(Value cache, Value count) {
    const std::uint16_t width = LanesFor(s_.head_dim, lanes_);
    const std::uint32_t vectors = s_.head_dim / width;
    std::uint32_t tile = vectors;
    while (tile > 1 && (tile * group_ > s_.registers * 3 / 4 || vectors % tile != 0)) --tile;
    const Type type{Scalar::kF32, width};
    const auto row_bytes = static_cast<std::int64_t>(s_.ValueBytes());
    for (std::uint32_t start = 0; start < vectors; start += tile) {
      const std::vector<Value> zeros(std::size_t{tile} * group_, b_.F32(0, width));
      b_.Note(fmt::format("values x weights, dimensions {} to {}", start * width, (start + tile) * width - 1));
      const std::vector<Value> sums =
          b_.Loop(begin_, count, b_.I64(1), zeros, [&](Value at, std::span<const Value> in) {
            std::vector<Value> next(in.begin(), in.end());
            std::vector<Value> weights;
            for (std::uint32_t g = 0; g < group_; ++g) {
              weights.push_back(b_.LoadBroadcast(scratch_, type, Memory::kWord, at * 4, ScratchRow(g)));
            }
            for (std::uint32_t v = 0; v < tile; ++v) {
              const auto offset = static_cast<std::int64_t>(s_.value.Bytes(std::uint64_t{start + v} * width));
              const Value value = Ordered(values_, type, s_.value.memory, cache + at * row_bytes, offset,
                                          static_cast<std::int64_t>(s_.value.Bytes(width)));
              for (std::uint32_t g = 0; g < group_; ++g)
                next[g * tile + v] = Fma(weights[g], value, next[g * tile + v]);
            }
            return next;
          });
      for (std::uint32_t g = 0; g < group_; ++g) {
        for (std::uint32_t v = 0; v < tile; ++v) {
          b_.Store(partial_, rows_[g], sums[g * tile + v], Memory::kWord, 64 + std::int64_t{start + v} * width * 4);
        }
      }
    }
  }

  std::int64_t WeightRow(std::uint32_t g) const { return ScratchRow(group_) + std::int64_t{g} * s_.chunk * 2; }

  /// What the weights of a head's positions in a block of dims became: halves in scratch, four positions in the order 0
  /// 2 1 3 as the products want them.
  struct BlockWeights {
    Value factor;     // f32: what one stands for
    Value minus_sum;  // i32: the sum times -kCodeBias
  };

  std::vector<BlockWeights> WeighBlock(Value area, Value count) {
    const auto weight = [&](Value at, Value scale, std::uint32_t g) {
      return b_.Load(scratch_, F(), Memory::kWord, at * 4, ScratchRow(g)) * scale;
    };
    const auto scales = [&](Value at) { return b_.Load(values_, F(), Memory::kF16, area + at * 2, 0, true); };
    b_.Note("the largest weight x scale of a block");
    const std::vector<Value> largest =
        b_.Loop(FirstVector(), count, b_.I64(lanes_), std::vector<Value>(group_, b_.F32(0, lanes_)),
                [&](Value at, std::span<const Value> in) {
                  const Value scale = scales(at);
                  std::vector<Value> next;
                  for (std::uint32_t g = 0; g < group_; ++g) next.push_back(Max(in[g], weight(at, scale, g)));
                  return next;
                });
    std::vector<BlockWeights> weights(group_);
    std::vector<Value> inverse;
    for (std::uint32_t g = 0; g < group_; ++g) {
      const Value top = Max(ReduceMax(largest[g]), b_.F32(kLeastLargest));
      weights[g].factor = top / b_.F32(kMostWeight);
      inverse.push_back(Splat(b_.F32(kMostWeight) / top, lanes_));
    }
    std::vector<std::int32_t> order;
    for (std::int32_t quad = 0; quad < lanes_; quad += kQuad) {
      for (const std::int32_t i : {0, 2, 1, 3}) order.push_back(quad + i);
    }
    b_.Note("weights x scales in 16 bits, and their sum");
    const std::vector<Value> sums =
        b_.Loop(FirstVector(), count, b_.I64(lanes_), std::vector<Value>(group_, b_.I32(0, lanes_)),
                [&](Value at, std::span<const Value> in) {
                  const Value scale = scales(at);
                  std::vector<Value> next;
                  for (std::uint32_t g = 0; g < group_; ++g) {
                    const Value halves = ToI32(weight(at, scale, g) * inverse[g]);
                    b_.Store(scratch_, at * 2, b_.Shuffle(halves, order), Memory::kU16, WeightRow(g));
                    next.push_back(in[g] + halves);
                  }
                  return next;
                });
    for (std::uint32_t g = 0; g < group_; ++g) weights[g].minus_sum = ReduceAdd(sums[g]) * -std::int64_t{kCodeBias};
    return weights;
  }

  /// Block after block of dims: weights with the block's scales in them, then codes x weights.
  void CodedSum(Value cache, Value count) {
    const std::uint32_t block = s_.value.block;
    const auto area_bytes = static_cast<std::int64_t>(s_.value.Bytes(block) * s_.chunk);
    b_.Note(fmt::format("values, {} dimensions at a time", block));
    b_.Loop(b_.I64(0), b_.I64(s_.head_dim / block), b_.I64(1), {}, [&](Value index, auto) -> std::vector<Value> {
      const Value area = cache + index * area_bytes;
      CodedBlock(area + (std::int64_t{s_.chunk} * 2), index * (std::int64_t{block} * 4), count,
                 WeighBlock(area, count));
      return {};
    });
  }

  void CodedBlock(Value codes, Value to, Value count, const std::vector<BlockWeights>& weights) {
    const std::uint32_t block = s_.value.block;
    const std::uint16_t width = LanesFor(block, lanes_);
    const std::uint32_t vectors = block / width;
    std::uint32_t tile = vectors;
    while (tile > 1 && (tile * group_ > s_.registers * 3 / 4 || vectors % tile != 0)) --tile;
    const Type type{Scalar::kI32, width};
    for (std::uint32_t start = 0; start < vectors; start += tile) {
      std::vector<Value> initial;
      for (const BlockWeights& own : weights) initial.resize(initial.size() + tile, Splat(own.minus_sum, width));
      const std::vector<Value> sums =
          b_.Loop(FirstVector(), count, b_.I64(kQuad), initial, [&](Value at, std::span<const Value> in) {
            std::vector<Value> next(in.begin(), in.end()), first, second;
            for (std::uint32_t g = 0; g < group_; ++g) {
              first.push_back(b_.LoadBroadcast(scratch_, type, Memory::kWord, at * 2, WeightRow(g)));
              second.push_back(b_.LoadBroadcast(scratch_, type, Memory::kWord, at * 2, WeightRow(g) + 4));
            }
            for (std::uint32_t v = 0; v < tile; ++v) {
              const std::int64_t offset = std::int64_t{start + v} * width * kQuad;
              const auto [even, odd] = Halves(
                  Ordered(values_, type, Memory::kWord, codes + at * std::int64_t{block}, offset, kQuad * width));
              for (std::uint32_t g = 0; g < group_; ++g) {
                Value& sum = next[g * tile + v];
                sum = sum + MaddHalves(even, first[g]);
                sum = sum + MaddHalves(odd, second[g]);
              }
            }
            return next;
          });
      for (std::uint32_t g = 0; g < group_; ++g) {
        for (std::uint32_t v = 0; v < tile; ++v) {
          b_.Store(partial_, rows_[g] + to, ToF32(sums[g * tile + v]) * Splat(weights[g].factor, width), Memory::kWord,
                   64 + std::int64_t{start + v} * width * 4);
        }
      }
    }
  }

  const AttentionShape& s_;
  const std::uint16_t lanes_;
  const std::uint32_t group_;       // query heads of a KV head
  const ActivationLayout codes_;    // of queries; floats when the keys are
  const std::int64_t query_bytes_;  // of a head
  Builder b_;
  std::uint32_t query_ = 0, keys_ = 0, values_ = 0, state_ = 0, partial_ = 0, scratch_ = 0;
  Value begin_;                                           // the first position of the chunk that the column sees
  std::vector<Value> rows_ = std::vector<Value>(group_);  // byte offset of each head's partial result
};

}  // namespace

ActivationLayout AttentionShape::QueryCodes() const {
  ActivationLayout layout;
  layout.is_float = false;
  layout.elements = key.block;
  layout.halves = dot == Dot::kMaddHalves;
  layout.sum_elements = key.block;
  layout.sums = ActivationLayout::Sums::kMinusBias;
  layout.bias = kCodeBias;
  layout.sums_offset = key.block * (layout.halves ? 2 : 1);
  layout.scale_offset = layout.sums_offset + 4;
  layout.block_bytes = layout.scale_offset + 4;
  return layout;
}

std::string SumOverflow(const AttentionShape& shape) {
  constexpr std::int64_t kMost32 = 2147483647;
  const std::int64_t sum = std::int64_t{shape.chunk} * static_cast<std::int64_t>(kMostWeight) * kCodeBias;
  if (!shape.value.IsCoded() || sum <= kMost32) return {};
  return fmt::format("{} values in codes of up to {} times weights of up to {} sum to {}: 32 bits hold {}", shape.chunk,
                     kCodeBias, kMostWeight, sum, kMost32);
}

Program BuildAttention(const AttentionShape& shape) { return Attention(shape).Build(); }

}  // namespace boltbeam::kernel
