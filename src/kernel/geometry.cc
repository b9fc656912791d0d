#include "kernel/geometry.h"

#include <algorithm>

namespace boltbeam::kernel {
namespace {

constexpr std::uint16_t kFloatChains = 4;        // so that one addition need not wait for the last
constexpr std::uint32_t kElementsPerTurn = 128;  // enough loads in flight per turn of the loop, without spills
constexpr std::uint32_t kManyRegisters = 32;     // hold two super-blocks, if lines are fetched ahead

}  // namespace

VectorFacts VectorFactsOf(const chip::Chip& chip) {
  VectorFacts facts;
  const bool wide = chip.Has("avx512f") && chip.Has("avx512bw") && chip.Has("avx512vl") && chip.Has("avx512dq");
  if (wide) {
    facts = {.lanes = 16, .registers = 32, .has_dot4 = chip.Has("avx512_vnni"), .has_madd_bytes = true};
  } else if (chip.Has("avx2") && chip.Has("fma") && chip.Has("f16c")) {
    facts = {.lanes = 8, .registers = 16, .has_dot4 = chip.Has("avx_vnni"), .has_madd_bytes = true};
  } else if (chip.Has("asimd")) {  // arm64: 128 bits, 32 registers
    facts = {.lanes = 4, .registers = 32, .has_dot4 = chip.Has("i8mm"), .has_dot4_signed = chip.Has("asimddp")};
  }
  facts.prefetch_bytes = static_cast<std::uint32_t>(chip.Get("prefetch_bytes").value_or(0));
  return facts;
}

GemvGeometry DefaultGeometry(const formats::Format& format, const VectorFacts& facts, bool many_columns) {
  GemvGeometry geometry;
  geometry.lanes = facts.lanes;
  // A column needs three registers in the inner loop (dot, block sum, total) and one for minimums.
  geometry.columns = many_columns ? static_cast<std::uint16_t>(std::max<std::uint32_t>(1, facts.registers / 8)) : 1;
  const formats::Format& plain = format.Plain();
  const bool is_float = plain.layout && plain.layout->encoding;
  geometry.dot = is_float                ? Dot::kFloat
                 : facts.has_dot4        ? Dot::kDot4
                 : facts.has_dot4_signed ? Dot::kDot4Signed
                 : facts.has_madd_bytes  ? Dot::kMaddBytes
                                         : Dot::kMaddHalves;
  const bool is_long = !many_columns && facts.prefetch_bytes > 0 && facts.registers >= kManyRegisters;
  const std::uint32_t least_blocks = is_long ? 2 : 1;
  geometry.unroll =
      is_float ? 8 : static_cast<std::uint16_t>(std::max(least_blocks, kElementsPerTurn / format.elements));
  geometry.chains = is_float && !many_columns ? kFloatChains : 1;
  if (!many_columns) geometry.prefetch_bytes = facts.prefetch_bytes;
  const auto layout = LayoutFor(format, facts.lanes);
  if (!layout) return geometry;
  if (layout->IsSplit(geometry.dot)) {
    if (plain.layout->codebook.empty()) {
      geometry.dot = Dot::kMaddHalves;
    } else {
      geometry.unroll = 1;  // two tables and two sums leave no registers for a second block
    }
  }
  geometry.depth = static_cast<std::uint16_t>(layout->PairDepth(geometry.dot));
  return geometry;
}

GemvGeometry DefaultGeometry(const formats::Format& format, std::uint64_t cols, const VectorFacts& facts) {
  GemvGeometry geometry = DefaultGeometry(format, facts, false);
  const std::uint64_t blocks = std::max<std::uint64_t>(1, cols / format.elements);
  geometry.unroll = static_cast<std::uint16_t>(std::min<std::uint64_t>(geometry.unroll, blocks));
  return geometry;
}

GemvGeometry PromptGeometry(const formats::Format& format, const VectorFacts& facts, const GemvGeometry& decode) {
  GemvGeometry geometry = DefaultGeometry(format, facts, true);
  geometry.lanes = decode.lanes;
  geometry.vectors = decode.vectors;
  geometry.scales = decode.scales;
  return geometry;
}

}  // namespace boltbeam::kernel
