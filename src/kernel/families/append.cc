// What a pass adds to the cache: values as they are, and keys and values as codes.
#include <fmt/format.h>

#include "kernel/families/attention.h"
#include "kernel/families/cache_place.h"
#include "kernel/families/state.h"

namespace boltbeam::kernel {
namespace {

constexpr float kMostCode = 127;
constexpr float kLeastScale = 0x1p-24F;  // the smallest f16 above 0: bounds codes whose scale has become 0
constexpr std::int32_t kQuad = 4;        // codes of a word

class Append {
 public:
  Append(const AttentionShape& shape, bool keys)
      : s_(shape),
        is_keys_(keys),
        element_(keys ? shape.key : shape.value),
        width_(LanesFor(element_.IsCoded() ? element_.block : shape.head_dim, shape.lanes)),
        b_(fmt::format("append_{}.{}x{}{}.l{}", keys ? "keys" : "values", shape.kv_heads, shape.head_dim,
                       element_.IsCoded() ? fmt::format(".e{}", element_.block) : "", width_),
           fmt::format("{} into the cache{}", keys ? "keys" : "values", element_.IsCoded() ? " as 8-bit codes" : "")) {
    vector_ = b_.AddBuffer("vector");
    state_ = b_.AddBuffer("state");
    cache_ = b_.AddBuffer("cache", true);
    const Value columns = Widen(StateWord(b_, state_, kStateColumns));
    const Value position = Widen(StateWord(b_, state_, kStatePosition));
    b_.Loop(b_.I64(0), columns, b_.I64(1), {}, [&](Value column, auto) -> std::vector<Value> {
      b_.Loop(b_.Begin(), b_.End(), b_.I64(1), {}, [&](Value head, auto) -> std::vector<Value> {
        const Value from = column * static_cast<std::int64_t>(s_.KeyStride()) + head * (std::int64_t{s_.head_dim} * 4);
        Head(from, PlaceInCache(s_, head, position + column));
        return {};
      });
      return {};
    });
  }

  Program Build() && { return std::move(b_).Finish(); }

 private:
  void Head(Value from, const CachePlace& place) {
    if (!element_.IsCoded()) {
      const Value to = place.head + place.position * static_cast<std::int64_t>(s_.ValueBytes());
      for (std::uint32_t d = 0; d < s_.head_dim; d += width_) {
        b_.Store(cache_, to, b_.LoadF32(vector_, width_, from, d * 4), element_.memory,
                 static_cast<std::int64_t>(element_.Bytes(d)));
      }
      return;
    }
    const Value group = place.position / s_.lanes * s_.lanes;
    const Value lane = place.position - group;
    const Value quad = place.position / kQuad * kQuad;
    b_.Loop(b_.I64(0), b_.I64(s_.head_dim / element_.block), b_.I64(1), {},
            [&](Value index, auto) -> std::vector<Value> {
              const Value x = from + index * (std::int64_t{element_.block} * 4);
              if (is_keys_) {
                const Value base = place.head + group * static_cast<std::int64_t>(s_.KeyBytes());
                const Value scales = base + std::int64_t{s_.head_dim} * s_.lanes;
                Block(x, scales + index * (2 * s_.lanes) + lane * 2,
                      base + index * (std::int64_t{element_.block} * s_.lanes) + lane * kQuad);
              } else {
                const auto area = static_cast<std::int64_t>(element_.Bytes(element_.block) * s_.chunk);
                const Value scales = place.head + index * area;
                Block(x, scales + place.position * 2,
                      scales + (std::int64_t{s_.chunk} * 2) + quad * element_.block + (place.position - quad));
              }
              return {};
            });
  }

  void Block(Value from, Value scale_at, Value to) {
    std::vector<Value> x;
    Value largest;
    b_.Note("a block's largest magnitude");
    for (std::uint32_t d = 0; d < element_.block; d += width_) {
      x.push_back(b_.LoadF32(vector_, width_, from, d * 4));
      largest = d == 0 ? Abs(x[0]) : Max(largest, Abs(x.back()));
    }
    b_.Note("its scale as it is stored: codes follow what f16 made of it");
    b_.Store(cache_, scale_at, ReduceMax(largest) / b_.F32(kMostCode), Memory::kF16);
    const Value scale = b_.Load(cache_, {Scalar::kF32, 1}, Memory::kF16, scale_at);
    const Value inverse = Splat(b_.F32(1) / Max(scale, b_.F32(kLeastScale)), width_);
    const auto most = static_cast<std::int32_t>(kMostCode);
    for (std::uint32_t i = 0; i < x.size(); ++i) {
      const Value code = Max(Min(ToI32(x[i] * inverse), b_.I32(most, width_)), b_.I32(-most, width_)) + kCodeBias;
      if (is_keys_) {
        b_.StoreStrided(cache_, to, b_.I64(kQuad * s_.lanes), Packed(code), Memory::kWord,
                        std::int64_t{i} * width_ * s_.lanes);
      } else {
        b_.StoreStrided(cache_, to, b_.I64(kQuad), code, Memory::kU8, std::int64_t{i} * width_ * kQuad);
      }
    }
  }

  /// Four codes to a word.
  Value Packed(Value codes) {
    Value words;
    for (std::int32_t byte = 0; byte < kQuad; ++byte) {
      std::vector<std::int32_t> from;
      for (std::int32_t quad = 0; quad < codes.lanes() / kQuad; ++quad) from.push_back(quad * kQuad + byte);
      const Value bytes = Shl(b_.Shuffle(codes, std::move(from)), 8 * byte);
      words = byte == 0 ? bytes : words | bytes;
    }
    return words;
  }

  const AttentionShape& s_;
  const bool is_keys_;
  const CacheElement element_;
  const std::uint16_t width_;
  Builder b_;
  std::uint32_t vector_ = 0, state_ = 0, cache_ = 0;
};

}  // namespace

Program BuildAppendValues(const AttentionShape& shape) { return Append(shape, false).Build(); }
Program BuildAppendKeyCodes(const AttentionShape& shape) { return Append(shape, true).Build(); }

}  // namespace boltbeam::kernel
