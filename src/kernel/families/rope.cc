#include <fmt/format.h>

#include <algorithm>

#include "kernel/families/attention.h"
#include "kernel/families/cache_place.h"
#include "kernel/families/state.h"

namespace boltbeam::kernel {
namespace {

/// Where a position's key lies: from `base` on, `stride` bytes from dimension to dimension.
struct KeyPlace {
  Value base;
  std::int64_t stride = 0;
};

KeyPlace PlaceOfKey(const AttentionShape& shape, Value head, Value position) {
  const CachePlace place = PlaceInCache(shape, head, position);
  const auto element = static_cast<std::int64_t>(shape.key.Bytes(1));
  const Value group = place.position / shape.lanes;
  const Value lane = place.position - group * shape.lanes;
  return {place.head + group * (static_cast<std::int64_t>(shape.KeyBytes()) * shape.lanes) + lane * element,
          shape.lanes * element};
}

class Rope {
 public:
  Rope(const AttentionShape& shape, bool keys)
      : s_(shape),
        appends_(keys && !shape.key.IsCoded()),
        b_(fmt::format("rope_{}.{}x{}.r{}{}{}{}.l{}",
                       !keys      ? "queries"
                       : appends_ ? "append_keys"
                                  : "keys",
                       keys ? shape.kv_heads : shape.heads, shape.head_dim, shape.rope_dims,
                       shape.rope_neox ? ".neox" : ".norm", shape.has_norm ? ".rms" : "",
                       shape.key.IsCoded() ? ".mixed" : "", shape.lanes),
           appends_ ? "rotated keys into the cache"
           : keys   ? "keys rotated in place"
                    : "queries rotated in place") {
    vector_ = b_.AddBuffer("vector", !appends_);
    table_ = b_.AddBuffer("table");
    state_ = b_.AddBuffer("state");
    if (appends_) cache_ = b_.AddBuffer("cache", true);
    if (shape.has_norm) norm_ = b_.AddBuffer("norm");
    lanes_ = LanesFor(shape.rope_dims / 2, shape.lanes);
    const auto column_stride = static_cast<std::int64_t>(keys ? shape.KeyStride() : shape.QueryStride());
    const Value columns = Widen(StateWord(b_, state_, kStateColumns));
    const Value position = Widen(StateWord(b_, state_, kStatePosition));
    b_.Loop(b_.I64(0), columns, b_.I64(1), {}, [&](Value column, auto) -> std::vector<Value> {
      const Value table = (position + column) * (std::int64_t{shape.rope_dims} * 4);
      b_.Loop(b_.Begin(), b_.End(), b_.I64(1), {}, [&](Value head, auto) -> std::vector<Value> {
        if (appends_) place_ = PlaceOfKey(shape, head, position + column);
        const Value vector = column * column_stride + head * (std::int64_t{shape.head_dim} * 4);
        Head(vector, table);
        if (shape.key.IsCoded()) Mix(vector);
        return {};
      });
      return {};
    });
  }

  Program Build() && { return std::move(b_).Finish(); }

 private:
  /// 1 / root mean square of the head; 1 without a norm.
  Value Factor(Value vector) {
    const std::uint16_t lanes = LanesFor(s_.head_dim, s_.lanes);
    const Value sum = b_.Loop(b_.I64(0), b_.I64(std::int64_t{s_.head_dim} * 4), b_.I64(4 * lanes), {b_.F32(0, lanes)},
                              [&](Value at, std::span<const Value> in) -> std::vector<Value> {
                                const Value x = b_.LoadF32(vector_, lanes, vector + at);
                                return {Fma(x, x, in[0])};
                              })[0];
    const Value mean = ReduceAdd(sum) / b_.F32(static_cast<float>(s_.head_dim));
    return b_.F32(1) / Sqrt(mean + b_.F32(s_.epsilon));
  }

  /// Elements first, first + step, ... of the head, normalised.
  Value Read(Value vector, std::uint32_t first, std::uint32_t step, std::uint16_t lanes) {
    const auto load = [&](std::uint32_t buffer, Value at) {
      if (step == 1) return b_.LoadF32(buffer, lanes, at, first * 4);
      return b_.LoadStrided(buffer, {Scalar::kF32, lanes}, Memory::kWord, at, b_.I64(4 * step), first * 4);
    };
    const Value x = load(vector_, vector);
    return s_.has_norm ? x * Splat(factor_, lanes) * load(norm_, b_.I64(0)) : x;
  }

  void Write(Value vector, std::uint32_t first, std::uint32_t step, Value value) {
    if (appends_) {
      b_.StoreStrided(cache_, place_.base, b_.I64(place_.stride * step), value, s_.key.memory, place_.stride * first);
    } else if (step == 1) {
      b_.Store(vector_, vector, value, Memory::kWord, first * 4);
    } else {
      b_.StoreStrided(vector_, vector, b_.I64(4 * step), value, Memory::kWord, first * 4);
    }
  }

  void Head(Value vector, Value table) {
    if (s_.has_norm) factor_ = Factor(vector);
    const std::uint32_t half = s_.rope_dims / 2;
    const std::uint32_t step = s_.rope_neox ? 1 : 2;
    for (std::uint32_t i = 0; i < half; i += lanes_) {
      const std::uint32_t first = s_.rope_neox ? i : 2 * i;
      const std::uint32_t second = s_.rope_neox ? i + half : 2 * i + 1;
      b_.Note(fmt::format("rotate {} pairs, the first of elements {} and {}", lanes_, first, second));
      const Value x0 = Read(vector, first, step, lanes_);
      const Value x1 = Read(vector, second, step, lanes_);
      const Value cosine = b_.LoadF32(table_, lanes_, table, i * 4);
      const Value sine = b_.LoadF32(table_, lanes_, table, (half + i) * 4);
      Write(vector, first, step, x0 * cosine - x1 * sine);
      Write(vector, second, step, x0 * sine + x1 * cosine);
    }
    const std::uint16_t rest = LanesFor(s_.head_dim - s_.rope_dims, s_.lanes);
    for (std::uint32_t i = s_.rope_dims; i < s_.head_dim; i += rest) Write(vector, i, 1, Read(vector, i, 1, rest));
  }

  /// Sums and differences of the head's elements 1, 2, 4, ... apart, step after step.
  void Mix(Value vector) {
    const std::uint32_t count = s_.MixedDims();
    const std::uint16_t width = LanesFor(count, s_.lanes);
    for (std::uint32_t first = 0; first < s_.head_dim; first += count) {
      b_.Note(fmt::format("mix elements {} to {}", first, first + count - 1));
      std::vector<Value> x;
      for (std::uint32_t i = first; i < first + count; i += width)
        x.push_back(b_.LoadF32(vector_, width, vector, i * 4));
      for (std::uint16_t step = 1; step < width; step *= 2) {
        const Value is_second = Min(b_.LaneIndex(width) & b_.I32(step, width), b_.I32(1, width));
        const Value sign = ToF32(b_.I32(1, width) - Shl(is_second, 1));
        std::vector<std::int32_t> partner;
        for (std::int32_t lane = 0; lane < width; ++lane) partner.push_back(lane ^ step);
        for (Value& v : x) v = Fma(v, sign, b_.Shuffle(v, partner));
      }
      for (std::size_t step = 1; step < x.size(); step *= 2) {
        for (std::size_t i = 0; i < x.size(); ++i) {
          if ((i & step) != 0) continue;
          const Value sum = x[i] + x[i + step];
          x[i + step] = x[i] - x[i + step];
          x[i] = sum;
        }
      }
      for (std::uint32_t i = 0; i < x.size(); ++i) {
        b_.Store(vector_, vector, x[i], Memory::kWord, std::int64_t{first + i * width} * 4);
      }
    }
  }

  const AttentionShape& s_;
  const bool appends_;
  Builder b_;
  std::uint32_t vector_ = 0, table_ = 0, state_ = 0, cache_ = 0, norm_ = 0;
  std::uint16_t lanes_ = 1;
  KeyPlace place_;
  Value factor_;
};

}  // namespace

Program BuildRope(const AttentionShape& shape, bool keys) { return Rope(shape, keys).Build(); }

}  // namespace boltbeam::kernel
