// The small families against plain double arithmetic, at lengths that no vector divides.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "kernel/builder.h"
#include "kernel/families/elementwise.h"
#include "runner.h"

namespace boltbeam::kernel_tests {
namespace {

constexpr double kLimit = 1e-5;

std::vector<float> Normal(std::size_t count, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

kernel::VectorShape Shape(std::uint64_t elements, std::uint16_t lanes) {
  kernel::VectorShape shape;
  shape.elements = elements;
  shape.in_stride = elements * 4 + 64;  // columns need not touch
  shape.out_stride = elements * 4;
  shape.lanes = lanes;
  return shape;
}

class LengthTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  std::uint64_t elements() const { return GetParam(); }
  std::size_t in(std::size_t column, std::size_t i) const { return column * (elements() + 16) + i; }
  std::size_t out(std::size_t column, std::size_t i) const { return column * elements() + i; }
  static constexpr std::size_t kColumns = 3;
};

TEST_P(LengthTest, RmsNorm) {
  const float epsilon = 1e-5F;
  const auto x = Normal(kColumns * (elements() + 16), 1, 3);
  const auto w = Normal(elements(), 2);
  for (const std::uint16_t lanes : {8, 16}) {
    const auto outcomes = RunEverywhere(kernel::BuildRmsNorm(Shape(elements(), lanes), epsilon),
                                        {ToBytes(x), ToBytes(w), Bytes(kColumns * elements() * 4)}, 0, kColumns);
    Agreement agreement;
    for (const Outcome& outcome : outcomes) {
      const auto y = FromBytes<float>(outcome.buffers[2]);
      for (std::size_t c = 0; c < kColumns; ++c) {
        double squares = 0;
        for (std::size_t i = 0; i < elements(); ++i) squares += double{x[in(c, i)]} * x[in(c, i)];
        const double factor = 1 / std::sqrt(squares / static_cast<double>(elements()) + double{epsilon});
        for (std::size_t i = 0; i < elements(); ++i) {
          const double expected = x[in(c, i)] * factor * w[i];
          agreement.Add(y[out(c, i)], expected, std::abs(expected), outcome.way);
        }
      }
    }
    EXPECT_TRUE(agreement.Within(kLimit)) << agreement.worst << " " << agreement.where;
  }
}

TEST_P(LengthTest, RmsNormIsAddedToTheStream) {
  const float epsilon = 1e-5F;
  const auto x = Normal(kColumns * (elements() + 16), 1, 3);
  const auto w = Normal(elements(), 2);
  const auto stream = Normal(kColumns * elements(), 6);
  const auto outcomes = RunEverywhere(kernel::BuildRmsNormAdd(Shape(elements(), 16), epsilon),
                                      {ToBytes(x), ToBytes(w), ToBytes(stream)}, 0, kColumns);
  Agreement agreement;
  for (const Outcome& outcome : outcomes) {
    const auto y = FromBytes<float>(outcome.buffers[2]);
    for (std::size_t c = 0; c < kColumns; ++c) {
      double squares = 0;
      for (std::size_t i = 0; i < elements(); ++i) squares += double{x[in(c, i)]} * x[in(c, i)];
      const double factor = 1 / std::sqrt(squares / static_cast<double>(elements()) + double{epsilon});
      for (std::size_t i = 0; i < elements(); ++i) {
        const double added = x[in(c, i)] * factor * w[i], before = stream[out(c, i)];
        agreement.Add(y[out(c, i)], before + added, std::abs(before) + std::abs(added), outcome.way);
      }
    }
  }
  EXPECT_TRUE(agreement.Within(kLimit)) << agreement.worst << " " << agreement.where;
}

/// function(gate) * up, where `expected` says what the gate's own number becomes.
void ExpectGate(std::uint64_t elements, kernel::GateFunction function, double (*expected)(double gate),
                double (*terms)(double gate, double result)) {
  constexpr std::size_t kColumns = 3;
  const std::size_t stride = elements + 16;
  auto gate = Normal(kColumns * stride, 3, 4);
  gate[0] = 200;  // beyond what exp can hold
  gate[1] = -200;
  const auto up = Normal(gate.size(), 4);
  const auto outcomes = RunEverywhere(kernel::BuildGate(Shape(elements, 16), function),
                                      {ToBytes(gate), ToBytes(up), Bytes(kColumns * elements * 4)}, 0, kColumns);
  Agreement agreement;
  for (const Outcome& outcome : outcomes) {
    const auto y = FromBytes<float>(outcome.buffers[2]);
    for (std::size_t c = 0; c < kColumns; ++c) {
      for (std::size_t i = 0; i < elements; ++i) {
        const double g = gate[c * stride + i], u = up[c * stride + i];
        agreement.Add(y[c * elements + i], expected(g) * u, terms(g * u, expected(g) * u), outcome.way);
      }
    }
  }
  EXPECT_TRUE(agreement.Within(kLimit)) << agreement.worst << " " << agreement.where;
}

TEST_P(LengthTest, GeluGate) {
  ExpectGate(
      elements(), kernel::GateFunction::kGelu,
      [](double g) {
        const double inner = std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g);
        return 0.5 * g * (1 + std::tanh(inner));
      },
      [](double product, double) { return std::abs(product); });
}

TEST_P(LengthTest, SiluGate) {
  // Near 0 the result is far below one unit of what enters.
  ExpectGate(
      elements(), kernel::GateFunction::kSilu, [](double g) { return g / (1 + std::exp(-g)); },
      [](double, double result) { return std::max(std::abs(result), 1e-25); });
}

INSTANTIATE_TEST_SUITE_P(Lengths, LengthTest, testing::Values(24, 37, 64, 576));

TEST(ArgmaxTest, TheFirstOfTheLargestWins) {
  for (const std::uint64_t elements : {std::uint64_t{5}, std::uint64_t{2048}, std::uint64_t{5003}}) {
    for (const std::uint64_t best : {std::uint64_t{0}, elements / 2, elements - 1}) {
      auto logits = Normal(elements + 32, 5);
      for (std::size_t i = elements; i < logits.size(); ++i) logits[i] = 1000;  // padding must not win
      logits[best] = 100;
      if (best > 0 && best + 1 < elements) logits[best + 1] = 100;  // a tie
      const std::uint64_t runs = (elements + kernel::kArgmaxChunk - 1) / kernel::kArgmaxChunk;
      const auto partial = RunEverywhere(kernel::BuildArgmaxPartial(elements, 8), {ToBytes(logits), Bytes(runs * 8)}, 0,
                                         static_cast<std::int64_t>(runs));
      for (const Outcome& first : partial) {
        const auto final = RunEverywhere(kernel::BuildArgmaxFinal(runs), {first.buffers[1], Bytes(4)}, 0, 1);
        for (const Outcome& second : final) {
          EXPECT_EQ(FromBytes<std::uint32_t>(second.buffers[1])[0], best) << first.way << ", " << second.way;
        }
      }
    }
  }
}

TEST(ExpTest, IsRightToTheLastBitsAndStaysFinite) {
  constexpr std::size_t kCount = 8192;
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < kCount; ++i) x[i] = -87 + 175.0F * static_cast<float>(i) / (kCount - 1);
  x[0] = -1e30F;  // beyond: the value at the bound
  x[kCount - 1] = 1e30F;
  kernel::Builder b("exp", "e^x");
  const auto in = b.AddBuffer("in");
  const auto out = b.AddBuffer("out", true);
  b.Loop(b.I64(0), b.I64(4 * kCount), b.I64(64), {}, [&](kernel::Value at, auto) -> std::vector<kernel::Value> {
    b.Store(out, at, kernel::Exp(b.LoadF32(in, 16, at)));
    return {};
  });
  for (const Outcome& outcome : RunEverywhere(std::move(b).Finish(), {ToBytes(x), Bytes(4 * kCount)}, 0, 0)) {
    const auto y = FromBytes<float>(outcome.buffers[1]);
    Agreement agreement;
    for (std::size_t i = 1; i + 1 < kCount; ++i) {
      const double expected = std::exp(double{x[i]});
      agreement.Add(y[i], expected, expected, fmt::format("{} e^{}", outcome.way, x[i]));
    }
    EXPECT_TRUE(agreement.Within(3e-7)) << agreement.worst << " " << agreement.where;
    EXPECT_TRUE(std::isfinite(y.front()) && y.front() >= 0 && std::isfinite(y.back()));
  }
}

class RowTest : public testing::TestWithParam<const char*> {};

TEST_P(RowTest, DequantisedRow) {
  const formats::Format* format = formats::FindFormat(GetParam());
  ASSERT_NE(format, nullptr);
  const std::uint64_t cols = format->elements == 1 ? 48 : std::uint64_t{2} * format->elements;
  constexpr std::uint64_t kRows = 3;
  std::vector<std::uint8_t> file(kRows * cols / format->elements * format->bytes);
  std::mt19937 random(9);
  for (auto& byte : file) byte = static_cast<std::uint8_t>(random() % 0x58);  // no infinity in any half
  std::vector<double> expected(kRows * cols);
  ASSERT_TRUE(formats::Dequantize(*format, std::as_bytes(std::span(file)), expected));
  kernel::VectorShape shape;
  shape.elements = cols;
  Bytes rows = ToBytes(file);
  if (format->coding) {
    rows.resize(kRows * cols / format->elements * format->plain->bytes);
    ASSERT_TRUE(formats::ToPlain(*format, std::as_bytes(std::span(file)), rows));
  }
  shape.in_stride = rows.size() / kRows;
  shape.out_stride = cols * 4;
  const float scale = GetParam() == std::string("Q4_K") || format->elements == 1 ? 3 : 1;
  const auto program = kernel::BuildDequantizeRow(*format, shape, scale);
  ASSERT_TRUE(program) << program.error().Message();
  Agreement agreement;
  for (const Outcome& outcome : RunEverywhere(*program, {rows, Bytes(kRows * cols * 4)}, 0, kRows)) {
    const auto row = FromBytes<float>(outcome.buffers[1]);
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value) * scale);
    for (std::size_t i = 0; i < row.size(); ++i) {
      agreement.Add(row[i], expected[i] * scale, largest, fmt::format("{} element {}", outcome.way, i));
    }
  }
  EXPECT_TRUE(agreement.Within(1e-6)) << agreement.worst << " " << agreement.where;
}

INSTANTIATE_TEST_SUITE_P(Formats, RowTest,
                         testing::Values("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K",
                                         "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4", "TQ1_0", "TQ2_0",
                                         "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"),
                         [](const auto& format) { return std::string(format.param); });

}  // namespace
}  // namespace boltbeam::kernel_tests
