#include "kernel/families/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/families/state.h"

namespace boltbeam::kernel {
namespace {

constexpr float kMasked = -1.0e30F;

/// Chunks that this pass attends to.
Value ChunksOf(Builder& b, std::uint32_t state, const AttentionShape& shape) {
  return Widen(StateWord(b, state, shape.window == 0 ? kStateChunks : kStateWindowChunks));
}

class Attention {
 public:
  explicit Attention(const AttentionShape& shape)
      : s_(shape),
        lanes_(shape.lanes),
        group_(shape.heads / shape.kv_heads),
        b_(fmt::format("attention.h{}.kv{}.d{}.chunk{}{}.l{}{}", shape.heads, shape.kv_heads, shape.head_dim,
                       shape.chunk, shape.window == 0 ? "" : fmt::format(".w{}", shape.window), shape.lanes,
                       shape.kv == Memory::kF16 ? "" : ".f32"),
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
    const Value query =
        column * static_cast<std::int64_t>(s_.QueryStride()) + head * (std::int64_t{group_} * s_.head_dim * 4);
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
    WeightedSum(cache, count);
  }

  std::int64_t RowBytes() const { return static_cast<std::int64_t>(s_.PositionBytes()); }
  Type F() const { return {Scalar::kF32, lanes_}; }
  std::int64_t ScratchRow(std::uint32_t g) const { return std::int64_t{g} * s_.chunk * 4; }

  /// Valid lanes of the vector that starts at position `at` of the chunk.
  Value Valid(Value at, Value count) {
    const Value before_end = Less(b_.LaneIndex(lanes_), Splat(Narrow(count - at), lanes_));
    if (s_.window == 0) return before_end;
    return before_end & Less(Splat(Narrow(begin_ - at + -1), lanes_), b_.LaneIndex(lanes_));
  }

  /// The first whole vector of positions with a visible one.
  Value FirstVector() { return s_.window == 0 ? begin_ : begin_ / lanes_ * lanes_; }

  /// Writes the chunk's scaled scores to scratch; returns for every query head the largest per lane.
  std::vector<Value> Scores(Value query, Value cache, Value count) {
    const std::uint32_t unroll = LanesFor(s_.head_dim, 16);
    const std::uint32_t chains = std::min<std::uint32_t>(unroll, std::max<std::uint32_t>(1, 8 / group_));
    const std::vector<Value> lowest(group_, b_.F32(kMasked, lanes_));
    b_.Note(fmt::format("scores: {} positions at a time, one a lane", lanes_));
    return b_.Loop(FirstVector(), count, b_.I64(lanes_), lowest, [&](Value at, std::span<const Value> top) {
      const Value keys = cache + at * RowBytes();
      std::vector<Value> carried{keys};
      carried.resize(1 + std::size_t{group_} * chains, b_.F32(0, lanes_));
      const Value to = b_.I64(std::int64_t{s_.head_dim} * 4);
      carried = b_.Loop(b_.I64(0), to, b_.I64(4 * unroll), carried, [&](Value d, std::span<const Value> in) {
        std::vector<Value> next(in.begin(), in.end());
        for (std::uint32_t i = 0; i < unroll; ++i) {
          const std::int64_t vector = std::int64_t{i} * lanes_ * s_.KvElementBytes();
          const Value key = b_.Load(keys_, F(), s_.kv, in[0], vector, true);
          for (std::uint32_t g = 0; g < group_; ++g) {
            Value& sum = next[1 + g * chains + i % chains];
            const std::int64_t element = (std::int64_t{g} * s_.head_dim + i) * 4;
            sum = Fma(key, b_.LoadBroadcast(query_, F(), Memory::kWord, query + d, element), sum);
          }
        }
        next[0] = in[0] + std::int64_t{unroll} * lanes_ * s_.KvElementBytes();
        return next;
      });
      const Value valid = Valid(at, count);
      std::vector<Value> result;
      for (std::uint32_t g = 0; g < group_; ++g) {
        Value score = carried[1 + g * chains];
        for (std::uint32_t chain = 1; chain < chains; ++chain) score = score + carried[1 + g * chains + chain];
        score = Select(valid, score * b_.F32(s_.scale, lanes_), b_.F32(kMasked, lanes_));
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
              const std::int64_t offset = std::int64_t{start + v} * width * s_.KvElementBytes();
              const Value value = b_.Load(values_, type, s_.kv, cache + at * RowBytes(), offset, true);
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

  const AttentionShape& s_;
  const std::uint16_t lanes_;
  const std::uint32_t group_;  // query heads of a KV head
  Builder b_;
  std::uint32_t query_ = 0, keys_ = 0, values_ = 0, state_ = 0, partial_ = 0, scratch_ = 0;
  Value begin_;                                           // the first position of the chunk that the column sees
  std::vector<Value> rows_ = std::vector<Value>(group_);  // byte offset of each head's partial result
};

}  // namespace

Program BuildAttention(const AttentionShape& shape) { return Attention(shape).Build(); }

Program BuildCombine(const AttentionShape& shape) {
  const std::uint16_t lanes = LanesFor(shape.head_dim, shape.lanes);
  const auto partial_bytes = static_cast<std::int64_t>(shape.PartialBytes());
  Builder b(fmt::format("attention_combine.d{}{}.l{}", shape.head_dim, shape.window == 0 ? "" : ".window", lanes),
            fmt::format("the chunks of a head brought together over {} dimensions", shape.head_dim));
  const auto partial = b.AddBuffer("partial");
  const auto state = b.AddBuffer("state");
  const auto output = b.AddBuffer("output", true);
  const Value chunks = ChunksOf(b, state, shape);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value item, auto) -> std::vector<Value> {
    const Value from = item * chunks * partial_bytes;
    const Value to = from + chunks * partial_bytes;
    const Value step = b.I64(partial_bytes);
    b.Note("the largest score of all chunks");
    const Value top =
        b.Loop(from, to, step, {b.F32(kMasked)}, [&](Value at, std::span<const Value> in) -> std::vector<Value> {
          return {Max(in[0], b.LoadF32(partial, 1, at))};
        })[0];
    b.Note("the sum of all weights, from that score on");
    const Value sum =
        b.Loop(from, to, step, {b.F32(0)}, [&](Value at, std::span<const Value> in) -> std::vector<Value> {
          return {Fma(Exp(b.LoadF32(partial, 1, at) - top), b.LoadF32(partial, 1, at, 4), in[0])};
        })[0];
    const Value inverse = Splat(b.F32(1) / sum, lanes);
    for (std::uint32_t d = 0; d < shape.head_dim; d += lanes) {
      b.Note(fmt::format("weighted mean of dimensions {} to {}", d, d + lanes - 1));
      const Value total =
          b.Loop(from, to, step, {b.F32(0, lanes)}, [&](Value at, std::span<const Value> in) -> std::vector<Value> {
            const Value factor = Splat(Exp(b.LoadF32(partial, 1, at) - top), lanes);
            return {Fma(factor, b.LoadF32(partial, lanes, at, 64 + std::int64_t{d} * 4), in[0])};
          })[0];
      b.Store(output, item * (std::int64_t{shape.head_dim} * 4), total * inverse, Memory::kWord, std::int64_t{d} * 4);
    }
    return {};
  });
  return std::move(b).Finish();
}

}  // namespace boltbeam::kernel
