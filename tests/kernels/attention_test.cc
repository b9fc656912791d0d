// RoPE, the KV cache, attention in chunks and their combination, against plain double arithmetic.
#include "kernel/families/attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "formats/format.h"
#include "kernel/families/state.h"
#include "runner.h"

namespace boltbeam::kernel_tests {
namespace {

using kernel::AttentionShape;

struct Case {
  const char* name;
  std::uint32_t heads, kv_heads, head_dim, rope_dims;
  bool neox, norm, f16;
  std::uint16_t lanes;
  std::uint32_t columns, position;
  std::uint32_t window = 0;
};

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
    s_.kv = c.f16 ? kernel::Memory::kF16 : kernel::Memory::kWord;
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
    return out;
  }

  double Element(const Bytes& cache, std::size_t index) const {
    if (s_.kv == kernel::Memory::kWord) {
      float value = 0;
      std::memcpy(&value, &cache[index * 4], sizeof(value));
      return value;
    }
    std::uint16_t half = 0;
    std::memcpy(&half, &cache[index * 2], sizeof(half));
    return formats::HalfToFloat(half);
  }
  double Key(const Bytes& cache, std::size_t head, std::size_t position, std::size_t d) const {
    const std::size_t lane = position % s_.lanes;
    return Element(cache, (Row(head, position) - lane) * s_.head_dim + d * s_.lanes + lane);
  }
  double ValueOf(const Bytes& cache, std::size_t head, std::size_t position, std::size_t d) const {
    return Element(cache, Row(head, position) * s_.head_dim + d);
  }
  /// Rows of head_dim elements before this one: [head][chunk][keys or values][position in the chunk].
  std::size_t Row(std::size_t head, std::size_t position) const {
    return 2 * head * s_.context + 2 * (position / s_.chunk) * s_.chunk + position % s_.chunk;
  }

  /// A cache whose positions are all filled with something.
  Bytes RandomCache(unsigned seed) const {
    const auto floats = Normal(s_.LayerCacheBytes() / s_.KvElementBytes(), seed);
    if (s_.kv == kernel::Memory::kWord) return ToBytes(floats);
    std::vector<std::uint16_t> halves;
    for (const float value : floats) halves.push_back(formats::FloatToHalf(value));
    return ToBytes(halves);
  }

  double CacheRounding() const { return s_.kv == kernel::Memory::kF16 ? 1.0 / 2048 : 0; }

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
  const Bytes cache = RandomCache(3);
  buffers = {ToBytes(keys), ToBytes(table_), ToBytes(state_), cache};
  if (c.norm) buffers.push_back(ToBytes(norm_));
  const auto with_keys = RunEverywhere(kernel::BuildRope(s_, true), buffers, 0, c.kv_heads);
  const auto with_values =
      RunEverywhere(kernel::BuildAppendValues(s_), {ToBytes(keys), ToBytes(state_), cache}, 0, c.kv_heads);
  Agreement stored;
  for (std::size_t way = 0; way < with_keys.size(); ++way) {
    for (std::size_t head = 0; head < c.kv_heads; ++head) {
      for (std::size_t position = 0; position < s_.context; ++position) {
        const bool is_new = position >= c.position && position < c.position + c.columns;
        const std::size_t token = is_new ? position - c.position : 0;
        const float* x = &keys[token * key_stride + head * c.head_dim];
        const auto expected = Rotated(x, token);
        for (std::size_t d = 0; d < c.head_dim; ++d) {
          const std::string place = fmt::format("{} head {} position {} dim {}", with_keys[way].way, head, position, d);
          const double key = Key(with_keys[way].buffers[3], head, position, d);
          const double value = ValueOf(with_values[way].buffers[2], head, position, d);
          stored.Add(key, is_new ? expected[d].first : Key(cache, head, position, d), is_new ? expected[d].second : 0,
                     "key " + place);
          stored.Add(value, is_new ? x[d] : ValueOf(cache, head, position, d), is_new ? std::abs(x[d]) : 0,
                     "value " + place);
        }
      }
    }
  }
  EXPECT_TRUE(stored.Within(1e-5 + CacheRounding())) << stored.worst << " " << stored.where;
}

TEST_P(AttentionTest, ChunksGiveTheSoftmaxOfThePositionsThatAreVisible) {
  const Case& c = GetParam();
  const std::size_t query_stride = s_.QueryStride() / 4;
  const auto queries = Normal(c.columns * query_stride, 4);
  const Bytes keys = RandomCache(5), values = RandomCache(6);
  const Bytes partial(c.columns * c.heads * chunks() * s_.PartialBytes());
  const std::size_t output_floats = std::size_t{c.columns} * c.heads * c.head_dim;
  Agreement agreement;
  const auto attended = RunEverywhere(
      kernel::BuildAttention(s_), {ToBytes(queries), keys, values, ToBytes(state_), partial, Bytes(s_.ScratchBytes())},
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
          total += weights[p] = std::exp(score * double{s_.scale});
        }
        for (std::size_t d = 0; d < c.head_dim; ++d) {
          double expected = 0, terms = 0;
          for (std::size_t p = 0; p < weights.size(); ++p) {
            expected += weights[p] / total * ValueOf(values, kv, p, d);
            terms += weights[p] / total * std::abs(ValueOf(values, kv, p, d));
          }
          agreement.Add(output[(column * c.heads + head) * c.head_dim + d], expected, terms,
                        fmt::format("{} column {} head {} dim {}", combined[way].way, column, head, d));
        }
      }
    }
  }
  EXPECT_TRUE(agreement.Within(1e-5)) << agreement.worst << " " << agreement.where;
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest,
                         testing::Values(Case{"FirstToken", 3, 1, 64, 64, false, false, true, 8, 1, 0},
                                         Case{"NeoxWithNorm", 4, 2, 32, 32, true, true, true, 16, 1, 63},
                                         Case{"PromptAcrossChunks", 4, 2, 32, 32, true, false, false, 8, 5, 30},
                                         Case{"PartlyRotated", 2, 2, 24, 16, false, false, false, 8, 2, 40},
                                         Case{"PartlyRotatedNeox", 6, 2, 48, 32, true, true, true, 8, 1, 95},
                                         Case{"WindowNotYetFull", 4, 1, 32, 32, true, true, true, 8, 3, 10, 20},
                                         Case{"WindowInOneChunk", 4, 1, 32, 32, true, true, true, 16, 1, 90, 11},
                                         Case{"WindowAcrossChunks", 4, 2, 32, 32, true, true, false, 8, 9, 60, 40},
                                         Case{"WindowOfOne", 2, 2, 32, 32, true, false, false, 8, 5, 62, 1}),
                         [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace boltbeam::kernel_tests
