// Products with more than a store at their end are the same to the last bit as the kernels that they stand for.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "formats/format.h"
#include "kernel/families/best.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/gemv.h"
#include "kernel/families/state.h"
#include "runner.h"

namespace boltbeam::kernel_tests {
namespace {

using kernel::GemvGeometry;
using kernel::GemvShape;
using kernel::WeightLayout;

std::vector<float> Normal(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// Numbers in place of weights as they lie rearranged: floats, so that any bits are as good as any others.
struct Fused {
  const formats::Format* format = formats::FindFormat("F32");
  GemvGeometry geometry{.lanes = 8, .dot = kernel::Dot::kFloat, .unroll = 4};
  WeightLayout layout = kernel::LayoutFor(*format, geometry).value();
  std::uint64_t rows = 43, cols = 96;

  [[nodiscard]] std::int64_t groups() const { return static_cast<std::int64_t>((rows + 7) / 8); }
  [[nodiscard]] std::size_t floats() const { return static_cast<std::size_t>(groups()) * 8 * cols; }
  /// Results by way of running.
  [[nodiscard]] std::vector<Outcome> Run(const GemvShape& shape, std::vector<Bytes> buffers) const {
    const auto program = kernel::BuildGemv(layout, geometry, shape);
    EXPECT_TRUE(program) << program.error().Message();
    return RunEverywhere(*program, buffers, 0, groups());
  }
  [[nodiscard]] Bytes Output() const { return Bytes(kernel::OutputStride(rows)); }
};

TEST(FusedTest, PairsAreGatedAsAKernelOfTheirOwnWould) {
  const Fused fused;
  const std::vector<float> gate = Normal(fused.floats(), 1), up = Normal(fused.floats(), 2);
  const Bytes input = ToBytes(Normal(fused.cols, 3));
  const std::size_t group = 8 * fused.cols;
  std::vector<float> pairs;
  for (std::size_t at = 0; at < gate.size(); at += group) {
    pairs.insert(pairs.end(), gate.begin() + static_cast<std::ptrdiff_t>(at),
                 gate.begin() + static_cast<std::ptrdiff_t>(at + group));
    pairs.insert(pairs.end(), up.begin() + static_cast<std::ptrdiff_t>(at),
                 up.begin() + static_cast<std::ptrdiff_t>(at + group));
  }
  GemvShape shape{.rows = fused.rows, .cols = fused.cols};
  const auto gates = fused.Run(shape, {ToBytes(gate), input, fused.Output()});
  const auto ups = fused.Run(shape, {ToBytes(up), input, fused.Output()});
  for (const kernel::GateFunction function : {kernel::GateFunction::kSilu, kernel::GateFunction::kGelu}) {
    shape.gate = function;
    const auto together = fused.Run(shape, {ToBytes(pairs), input, fused.Output()});
    for (std::size_t way = 0; way < together.size(); ++way) {
      const auto apart = RunEverywhere(kernel::BuildGate({fused.rows, 0, 0, 1}, function),
                                       {gates[way].buffers[2], ups[way].buffers[2], Bytes(fused.rows * 4)}, 0, 1);
      ASSERT_EQ(apart[way].way, together[way].way);
      const auto expected = FromBytes<float>(apart[way].buffers[2]);
      const auto found = FromBytes<float>(together[way].buffers[2]);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.begin())) << together[way].way;
    }
  }
}

TEST(FusedTest, GroupsMayLieApart) {
  const Fused fused;
  const std::vector<float> table = Normal(fused.floats(), 4);
  const Bytes input = ToBytes(Normal(fused.cols, 5));
  const std::size_t group = 8 * fused.cols;
  std::vector<float> apart;
  for (std::size_t at = 0; at < table.size(); at += group) {
    apart.insert(apart.end(), table.begin() + static_cast<std::ptrdiff_t>(at),
                 table.begin() + static_cast<std::ptrdiff_t>(at + group));
    apart.resize(apart.size() + group, 1e30F);  // what another table has there
  }
  GemvShape shape{.rows = fused.rows, .cols = fused.cols};
  const auto expected = fused.Run(shape, {ToBytes(table), input, fused.Output()});
  shape.group_bytes = 2 * group * 4;
  const auto found = fused.Run(shape, {ToBytes(apart), input, fused.Output()});
  for (std::size_t way = 0; way < found.size(); ++way) {
    EXPECT_EQ(found[way].buffers[2], expected[way].buffers[2]) << found[way].way;
  }
}

struct BestCase {
  bool keep = true;
  float earlier = kernel::kLowest;
};

TEST(FusedTest, TheLargestResultIsFoundOnTheWay) {
  Fused fused;
  std::vector<float> table = Normal(fused.floats(), 6);
  for (std::size_t i = 0; i < 8 * fused.cols; ++i) {
    table[2 * 8 * fused.cols + i] = table[4 * 8 * fused.cols + i];  // rows 16 to 23 are rows 32 to 39: equals
  }
  const Bytes input = ToBytes(Normal(fused.cols, 7));
  GemvShape shape{.rows = fused.rows, .cols = fused.cols};
  const auto plain = fused.Run(shape, {ToBytes(table), input, fused.Output()});
  shape.best = true;
  for (const BestCase& one : {BestCase{}, BestCase{false}, BestCase{true, 1e9F}}) {
    std::vector<std::int32_t> state(kernel::kStateBytes / 4);
    state[kernel::kStateKeepLogits / 4] = one.keep ? 1 : 0;
    const auto found = fused.Run(
        shape, {ToBytes(table), input, fused.Output(), ToBytes(std::vector<float>{one.earlier, 0}), ToBytes(state)});
    for (std::size_t way = 0; way < found.size(); ++way) {
      const auto results = FromBytes<float>(plain[way].buffers[2]);
      const auto best = std::max_element(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(fused.rows));
      const auto value = FromBytes<float>(found[way].buffers[3])[0];
      const auto row = FromBytes<std::int32_t>(found[way].buffers[3])[1];
      const bool is_earlier = one.earlier > *best;
      EXPECT_EQ(value, is_earlier ? one.earlier : *best) << found[way].way;
      EXPECT_EQ(row, is_earlier ? 0 : best - results.begin()) << found[way].way;
      EXPECT_EQ(found[way].buffers[2], one.keep ? plain[way].buffers[2] : fused.Output()) << found[way].way;
    }
  }
}

TEST(FusedTest, RowsThatPadTheLastGroupNeverWin) {
  const Fused fused;
  std::vector<float> table(fused.floats(), -1);
  for (std::size_t k = 0; k < fused.cols; ++k) {
    for (std::size_t row = 3; row < 8; ++row) table[5 * 8 * fused.cols + k * 8 + row] = 1;  // behind row 42
  }
  const GemvShape shape{.rows = fused.rows, .cols = fused.cols, .best = true};
  const auto found = fused.Run(shape, {ToBytes(table), ToBytes(std::vector<float>(fused.cols, 1)), fused.Output(),
                                       ToBytes(std::vector<float>{kernel::kLowest, 0}), Bytes(kernel::kStateBytes)});
  for (const Outcome& outcome : found) {
    EXPECT_EQ(FromBytes<float>(outcome.buffers[3])[0], -96.0F) << outcome.way;
    EXPECT_EQ(FromBytes<std::int32_t>(outcome.buffers[3])[1], 0) << outcome.way;
  }
}

TEST(FusedTest, TheLargestOfSeveralColumnsIsRefused) {
  Fused fused;
  fused.geometry.columns = 2;
  const auto built = kernel::BuildGemv(fused.layout, fused.geometry, {.rows = 8, .cols = 96, .best = true});
  EXPECT_EQ(built.error().code, Code::kKernelIllegal);
}

TEST(FusedTest, TheBestOfTheThreadsIsTakenAndForgotten) {
  const std::vector<float> values{3, 7, 7, kernel::kLowest};
  const std::vector<std::int32_t> rows{5, 900, 30, 0};
  std::vector<float> partial;
  for (std::size_t i = 0; i < values.size(); ++i) {
    partial.push_back(values[i]);
    partial.push_back(std::bit_cast<float>(rows[i]));
  }
  for (const Outcome& outcome : RunEverywhere(kernel::BuildArgmaxFinal(4, true), {ToBytes(partial), Bytes(64)}, 0, 1)) {
    EXPECT_EQ(FromBytes<std::int32_t>(outcome.buffers[1])[0], 30) << outcome.way;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(FromBytes<float>(outcome.buffers[0])[2 * i], kernel::kLowest) << outcome.way;
    }
  }
}

}  // namespace
}  // namespace boltbeam::kernel_tests
