// RoPE, the KV cache, attention in chunks and their combination, against plain double arithmetic.
#include "kernel/families/attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "formats/format.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/state.h"
#include "runner.h"

namespace boltbeam::kernel_tests {
namespace {

using kernel::AttentionShape;

struct Case {
  const char* name;
  std::uint32_t heads, kv_heads, head_dim, rope_dims;
  bool neox, norm;
  kernel::CacheElement keys, values;
  std::uint16_t lanes;
  std::uint32_t columns, position;
  std::uint32_t window = 0;
  kernel::Dot dot = kernel::Dot::kMaddHalves;
};

constexpr kernel::CacheElement kHalf{kernel::Memory::kF16}, kFloat{kernel::Memory::kWord};
constexpr kernel::CacheElement kCoded16{kernel::Memory::kU8, 16}, kCoded32{kernel::Memory::kU8, 32};

std::vector<float> Normal(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

class AttentionTest : public testing::TestWithParam<Case> {
 protected:
  AttentionTest() {
    const Case& c = GetParam();
    s_.heads = c.heads;
    s_.kv_heads = c.kv_heads;
    s_.head_dim = c.head_dim;
    s_.rope_dims = c.rope_dims;
    s_.rope_neox = c.neox;
    s_.has_norm = c.norm;
    s_.epsilon = 1e-6F;
    s_.scale = 0.125F;
    s_.chunk = 32;
    s_.context = 96;
    s_.key = c.keys;
    s_.value = c.values;
    s_.dot = c.dot;
    s_.lanes = c.lanes;
    s_.window = c.window;
    state_[kernel::kStateColumns / 4] = static_cast<std::int32_t>(c.columns);
    state_[kernel::kStatePosition / 4] = static_cast<std::int32_t>(c.position);
    state_[kernel::kStateChunks / 4] = static_cast<std::int32_t>((c.position + c.columns + s_.chunk - 1) / s_.chunk);
    const std::uint32_t skipped = c.window == 0 || c.position < c.window ? 0 : (c.position + 1 - c.window) / s_.chunk;
    state_[kernel::kStateWindowFirst / 4] = static_cast<std::int32_t>(skipped);
    state_[kernel::kStateWindowChunks / 4] = state_[kernel::kStateChunks / 4] - static_cast<std::int32_t>(skipped);
    table_.resize(std::size_t{c.position + c.columns} * c.rope_dims);
    for (std::size_t i = 0; i < table_.size(); ++i) {
      const std::size_t position = i / c.rope_dims, pair = i % (c.rope_dims / 2);
      const double angle = static_cast<double>(position) * std::pow(1e4, -2.0 * pair / c.rope_dims);
      table_[i] = static_cast<float>(i % c.rope_dims < c.rope_dims / 2 ? std::cos(angle) : std::sin(angle));
    }
    norm_ = Normal(c.head_dim, 77);
  }

  std::size_t chunks() const {
    return static_cast<std::size_t>(state_[(s_.window == 0 ? kernel::kStateChunks : kernel::kStateWindowChunks) / 4]);
  }

  /// One head of one token normalised and rotated; terms: what the rounding errors are relative to.
  std::vector<std::pair<double, double>> Rotated(const float* x, std::size_t token) const {
    double factor = 1;
    if (s_.has_norm) {
      double squares = 0;
      for (std::uint32_t d = 0; d < s_.head_dim; ++d) squares += double{x[d]} * x[d];
      factor = 1 / std::sqrt(squares / s_.head_dim + double{s_.epsilon});
    }
    std::vector<double> v(s_.head_dim);
    for (std::uint32_t d = 0; d < s_.head_dim; ++d) v[d] = x[d] * factor * (s_.has_norm ? norm_[d] : 1);
    std::vector<std::pair<double, double>> out(s_.head_dim);
    for (std::uint32_t d = 0; d < s_.head_dim; ++d) out[d] = {v[d], std::abs(v[d])};
    const std::uint32_t half = s_.rope_dims / 2;
    for (std::uint32_t i = 0; i < half; ++i) {
      const std::uint32_t a = s_.rope_neox ? i : 2 * i, b = s_.rope_neox ? i + half : 2 * i + 1;
      const float* row = &table_[(GetParam().position + token) * s_.rope_dims];
      const double c = row[i], s = row[half + i];
      out[a] = {v[a] * c - v[b] * s, std::abs(v[a] * c) + std::abs(v[b] * s)};
      out[b] = {v[a] * s + v[b] * c, std::abs(v[a] * s) + std::abs(v[b] * c)};
    }
    if (s_.key.IsCoded()) Mix(out);
    return out;
  }

  void Mix(std::vector<std::pair<double, double>>& x) const {
    for (std::size_t first = 0; first < x.size(); first += s_.MixedDims()) {
      for (std::size_t step = 1; step < s_.MixedDims(); step *= 2) {
        for (std::size_t i = first; i < first + s_.MixedDims(); ++i) {
          if (((i - first) & step) != 0) continue;
          auto &a = x[i], &b = x[i + step];
          const double sum = a.first + b.first, difference = a.first - b.first;
          a.second = b.second = a.second + b.second;
          a.first = sum;
          b.first = difference;
        }
      }
    }
  }

  static double Element(const Bytes& cache, std::size_t at, kernel::Memory memory) {
    if (memory == kernel::Memory::kU8) return static_cast<double>(cache[at]) - kernel::kCodeBias;
    if (memory == kernel::Memory::kWord) {
      float value = 0;
      std::memcpy(&value, &cache[at], sizeof(value));
      return value;
    }
    std::uint16_t half = 0;
    std::memcpy(&half, &cache[at], sizeof(half));
    return formats::HalfToFloat(half);
  }
  double Key(const Bytes& cache, std::size_t head, std::size_t position, std::size_t d) const {
    const std::size_t lane = position % s_.lanes,
                      group = Place(head, position) + (InChunk(position) - lane) * s_.KeyBytes();
    if (!s_.key.IsCoded()) return Element(cache, group + s_.key.Bytes(d * s_.lanes + lane), s_.key.memory);
    const std::size_t scale = group + s_.head_dim * s_.lanes + (d / s_.key.block * s_.lanes + lane) * 2;
    const std::size_t code = group + (d / 4 * s_.lanes + lane) * 4 + d % 4;
    return Element(cache, scale, kernel::Memory::kF16) * Element(cache, code, kernel::Memory::kU8);
  }
  double ValueOf(const Bytes& cache, std::size_t head, std::size_t position, std::size_t d) const {
    const std::size_t place = Place(head, position), in_chunk = InChunk(position);
    if (!s_.value.IsCoded())
      return Element(cache, place + in_chunk * s_.ValueBytes() + s_.value.Bytes(d), s_.value.memory);
    const std::size_t block = s_.value.block, area = place + d / block * s_.value.Bytes(block) * s_.chunk;
    const std::size_t code = area + 2 * s_.chunk + in_chunk / 4 * 4 * block + d % block * 4 + in_chunk % 4;
    return Element(cache, area + 2 * in_chunk, kernel::Memory::kF16) * Element(cache, code, kernel::Memory::kU8);
  }
  /// The largest number that the value's scale allows: weights are rounded to 16 bits of the largest one x scale.
  double LargestOfBlock(const Bytes& cache, std::size_t head, std::size_t position, std::size_t d) const {
    const std::size_t area = Place(head, position) + d / s_.value.block * s_.value.Bytes(s_.value.block) * s_.chunk;
    return 128 * Element(cache, area + 2 * InChunk(position), kernel::Memory::kF16);
  }
  std::size_t InChunk(std::size_t position) const { return position % s_.chunk; }
  /// Where the keys of a position's chunk begin; in a buffer that begins behind the keys, its values.
  std::size_t Place(std::size_t head, std::size_t position) const {
    return head * s_.HeadBytes() + position / s_.chunk * s_.ChunkBytes();
  }

  /// A cache whose positions are all filled with something that an element can hold: any bytes will do as codes, and as
  /// scales when their halves are small positive numbers.
  Bytes RandomCache(const kernel::CacheElement& element, unsigned seed) const {
    const std::size_t bytes = s_.LayerCacheBytes();
    if (element.memory == kernel::Memory::kWord) return ToBytes(Normal(bytes / 4, seed));
    std::vector<std::uint16_t> halves;
    for (const float value : Normal(bytes / 2, seed)) halves.push_back(formats::FloatToHalf(value));
    if (element.IsCoded()) {
      std::mt19937 random(seed);
      for (std::uint16_t& half : halves)
        half = static_cast<std::uint16_t>(random() % 256 << 8 | random() % 256) & 0x2FFF;
    }
    return ToBytes(halves);
  }

  /// Of what goes into the cache, relative to the block's largest number where it is kept as codes.
  static double Rounding(const kernel::CacheElement& element) {
    if (element.IsCoded()) return 0.51 / 127;
    return element.memory == kernel::Memory::kF16 ? 1.0 / 2048 : 0;
  }

  struct WithKeys {
    std::string way;
    Bytes cache;
  };

  /// Keys rotated and put into the cache, in one program or in two.
  std::vector<WithKeys> AppendKeys(const std::vector<float>& keys, const Bytes& cache) const {
    std::vector<Bytes> buffers{ToBytes(keys), ToBytes(table_), ToBytes(state_)};
    if (!s_.key.IsCoded()) buffers.push_back(cache);
    if (s_.has_norm) buffers.push_back(ToBytes(norm_));
    const auto rotated = RunEverywhere(kernel::BuildRope(s_, true), buffers, 0, s_.kv_heads);
    std::vector<WithKeys> result;
    for (std::size_t way = 0; way < rotated.size(); ++way) {
      if (!s_.key.IsCoded()) {
        result.push_back({rotated[way].way, rotated[way].buffers[3]});
        continue;
      }
      const auto coded = RunEverywhere(kernel::BuildAppendKeyCodes(s_),
                                       {rotated[way].buffers[0], ToBytes(state_), cache}, 0, s_.kv_heads);
      result.push_back({coded[way].way, coded[way].buffers[2]});
    }
    return result;
  }

  /// Queries as attention reads them, one way or the other, and what they stand for.
  struct Query {
    Bytes bytes;
    std::vector<float> values;
  };
  std::vector<Query> QueriesOf(const std::vector<float>& queries) const {
    if (!s_.key.IsCoded()) return {{ToBytes(queries), queries}};
    const kernel::ActivationLayout codes = s_.QueryCodes();
    const std::uint64_t head_bytes = codes.ColumnBytes(s_.head_dim);
    const std::int64_t heads = std::int64_t{GetParam().columns} * s_.heads;
    std::vector<Query> result;
    for (const Outcome& way :
         RunEverywhere(kernel::BuildQuantize({s_.head_dim, std::uint64_t{s_.head_dim} * 4, 0, s_.lanes}, codes),
                       {ToBytes(queries), Bytes(static_cast<std::size_t>(heads) * head_bytes)}, 0, heads)) {
      result.push_back({way.buffers[1], {}});
      for (std::size_t i = 0; i < queries.size(); ++i) {
        static constexpr std::size_t kPlace[] = {0, 2, 1, 3};
        const std::size_t in_block = i % codes.elements, at = i / codes.elements * codes.block_bytes;
        float scale = 0;
        std::memcpy(&scale, &result.back().bytes[at + codes.scale_offset], sizeof(scale));
        int code = static_cast<std::int8_t>(result.back().bytes[at + in_block]);
        if (codes.halves) {
          std::int16_t half = 0;
          std::memcpy(&half, &result.back().bytes[at + (in_block / 4 * 4 + kPlace[in_block % 4]) * 2], sizeof(half));
          code = half;
        }
        result.back().values.push_back(scale * static_cast<float>(code));
      }
    }
    return result;
  }

  AttentionShape s_;
  std::vector<std::int32_t> state_ = std::vector<std::int32_t>(kernel::kStateBytes / 4);
  std::vector<float> table_, norm_;
};

TEST_P(AttentionTest, RopeRotatesQueriesAndAppendsKeysAndValues) {
  const Case& c = GetParam();
  const std::size_t query_stride = s_.QueryStride() / 4, key_stride = s_.KeyStride() / 4;
  const auto queries = Normal(c.columns * query_stride, 1);
  std::vector<Bytes> buffers{ToBytes(queries), ToBytes(table_), ToBytes(state_)};
  if (c.norm) buffers.push_back(ToBytes(norm_));
  Agreement agreement;
  for (const Outcome& outcome : RunEverywhere(kernel::BuildRope(s_, false), buffers, 0, c.heads)) {
    const auto rotated = FromBytes<float>(outcome.buffers[0]);
    for (std::size_t token = 0; token < c.columns; ++token) {
      for (std::size_t head = 0; head < c.heads; ++head) {
        const std::size_t at = token * query_stride + head * c.head_dim;
        const auto expected = Rotated(&queries[at], token);
        for (std::size_t d = 0; d < c.head_dim; ++d)
          agreement.Add(rotated[at + d], expected[d].first, expected[d].second,
                        fmt::format("{} query {} of token {} dim {}", outcome.way, head, token, d));
      }
    }
  }
  EXPECT_TRUE(agreement.Within(1e-5)) << agreement.worst << " " << agreement.where;

  const auto keys = Normal(c.columns * key_stride, 2);
  const Bytes key_cache = RandomCache(s_.key, 3), value_cache = RandomCache(s_.value, 3);
  const auto with_keys = AppendKeys(keys, key_cache);
  const auto with_values =
      RunEverywhere(kernel::BuildAppendValues(s_), {ToBytes(keys), ToBytes(state_), value_cache}, 0, c.kv_heads);
  Agreement stored_keys, stored_values;
  for (std::size_t way = 0; way < with_keys.size(); ++way) {
    for (std::size_t head = 0; head < c.kv_heads; ++head) {
      for (std::size_t position = 0; position < s_.context; ++position) {
        const bool is_new = position >= c.position && position < c.position + c.columns;
        const std::size_t token = is_new ? position - c.position : 0;
        const float* x = &keys[token * key_stride + head * c.head_dim];
        const auto expected = Rotated(x, token);
        for (std::size_t d = 0; d < c.head_dim; ++d) {
          const std::string place = fmt::format("{} head {} position {} dim {}", with_keys[way].way, head, position, d);
          const double key = Key(with_keys[way].cache, head, position, d);
          const double value = ValueOf(with_values[way].buffers[2], head, position, d);
          // A code is off by a share of the largest number of its block.
          double key_terms = expected[d].second, value_terms = std::abs(x[d]);
          for (std::size_t i = 0; s_.key.IsCoded() && i < s_.key.block; ++i)
            key_terms = std::max(key_terms, expected[d / s_.key.block * s_.key.block + i].second);
          for (std::size_t i = 0; s_.value.IsCoded() && i < s_.value.block; ++i)
            value_terms = std::max<double>(value_terms, std::abs(x[d / s_.value.block * s_.value.block + i]));
          stored_keys.Add(key, is_new ? expected[d].first : Key(key_cache, head, position, d), is_new ? key_terms : 0,
                          "key " + place);
          stored_values.Add(value, is_new ? x[d] : ValueOf(value_cache, head, position, d), is_new ? value_terms : 0,
                            "value " + place);
        }
      }
    }
  }
  EXPECT_TRUE(stored_keys.Within(1e-5 + Rounding(s_.key))) << stored_keys.worst << " " << stored_keys.where;
  EXPECT_TRUE(stored_values.Within(1e-5 + Rounding(s_.value))) << stored_values.worst << " " << stored_values.where;
}

TEST_P(AttentionTest, ChunksGiveTheSoftmaxOfThePositionsThatAreVisible) {
  const Case& c = GetParam();
  const std::size_t query_stride = s_.QueryStride() / 4;
  const Query query = QueriesOf(Normal(c.columns * query_stride, 4)).front();
  const std::vector<float>& queries = query.values;
  const Bytes keys = RandomCache(s_.key, 5), values = RandomCache(s_.value, 6);
  const Bytes partial(c.columns * c.heads * chunks() * s_.PartialBytes());
  const std::size_t output_floats = std::size_t{c.columns} * c.heads * c.head_dim;
  Agreement agreement;
  const auto attended = RunEverywhere(kernel::BuildAttention(s_),
                                      {query.bytes, keys, values, ToBytes(state_), partial, Bytes(s_.ScratchBytes())},
                                      0, static_cast<std::int64_t>(c.kv_heads * chunks()));
  const kernel::Program combine = kernel::BuildCombine(s_);
  for (std::size_t way = 0; way < attended.size(); ++way) {
    const auto combined = RunEverywhere(combine, {attended[way].buffers[4], ToBytes(state_), Bytes(output_floats * 4)},
                                        0, std::int64_t{c.columns} * c.heads);
    const auto output = FromBytes<float>(combined.at(way).buffers[2]);
    for (std::size_t column = 0; column < c.columns; ++column) {
      for (std::size_t head = 0; head < c.heads; ++head) {
        const std::size_t kv = head / (c.heads / c.kv_heads);
        std::vector<double> weights(c.position + column + 1);
        double total = 0;
        const std::size_t first = c.window == 0 || weights.size() < c.window ? 0 : weights.size() - c.window;
        for (std::size_t p = first; p < weights.size(); ++p) {
          double score = 0;
          for (std::size_t d = 0; d < c.head_dim; ++d)
            score += queries[column * query_stride + head * c.head_dim + d] * Key(keys, kv, p, d);
          if (s_.key.IsCoded()) score /= s_.MixedDims();
          total += weights[p] = std::exp(score * double{s_.scale});
        }
        for (std::size_t d = 0; d < c.head_dim; ++d) {
          double expected = 0, terms = 0, most = 0;
          for (std::size_t p = 0; p < weights.size(); ++p) {
            expected += weights[p] / total * ValueOf(values, kv, p, d);
            terms += weights[p] / total * std::abs(ValueOf(values, kv, p, d));
            if (s_.value.IsCoded()) most = std::max(most, weights[p] / total * LargestOfBlock(values, kv, p, d));
          }
          agreement.Add(output[(column * c.heads + head) * c.head_dim + d], expected, terms + most,
                        fmt::format("{} column {} head {} dim {}", combined[way].way, column, head, d));
        }
      }
    }
  }
  EXPECT_TRUE(agreement.Within(s_.value.IsCoded() ? 1e-4 : 1e-5)) << agreement.worst << " " << agreement.where;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Values(Case{"FirstToken", 3, 1, 64, 64, false, false, kHalf, kHalf, 8, 1, 0},
                    Case{"NeoxWithNorm", 4, 2, 32, 32, true, true, kHalf, kHalf, 16, 1, 63},
                    Case{"PromptAcrossChunks", 4, 2, 32, 32, true, false, kFloat, kFloat, 8, 5, 30},
                    Case{"PartlyRotated", 2, 2, 24, 16, false, false, kFloat, kFloat, 8, 2, 40},
                    Case{"PartlyRotatedNeox", 6, 2, 48, 32, true, true, kHalf, kHalf, 8, 1, 95},
                    Case{"WindowNotYetFull", 4, 1, 32, 32, true, true, kHalf, kHalf, 8, 3, 10, 20},
                    Case{"WindowInOneChunk", 4, 1, 32, 32, true, true, kHalf, kHalf, 16, 1, 90, 11},
                    Case{"WindowAcrossChunks", 4, 2, 32, 32, true, true, kFloat, kFloat, 8, 9, 60, 40},
                    Case{"WindowOfOne", 2, 2, 32, 32, true, false, kFloat, kFloat, 8, 5, 62, 1},
                    Case{"Codes", 4, 2, 64, 64, true, true, kCoded32, kCoded32, 16, 1, 63},
                    Case{"CodesByDot4", 6, 2, 64, 64, true, false, kCoded32, kCoded32, 8, 5, 30, 0, kernel::Dot::kDot4},
                    Case{"CodesInShortBlocks", 5, 1, 48, 32, true, true, kCoded16, kCoded16, 8, 2, 77},
                    Case{"CodesInAWindow", 4, 1, 32, 32, true, true, kCoded32, kCoded32, 16, 3, 60, 37},
                    Case{"KeysInCodes", 2, 2, 32, 32, false, false, kCoded32, kHalf, 4, 1, 50, 0, kernel::Dot::kDot4},
                    Case{"ValuesInCodes", 3, 1, 96, 64, true, false, kFloat, kCoded32, 16, 1, 95}),
    [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace boltbeam::kernel_tests
