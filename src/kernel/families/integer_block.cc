#include "kernel/families/integer_block.h"

#include <fmt/format.h>

namespace boltbeam::kernel {
namespace {

constexpr std::uint32_t kEvenBytes = 0x00FF00FF;

}  // namespace

IntegerBlock::IntegerBlock(Builder& builder, const WeightLayout& layout, const GemvGeometry& geometry, Unpack& unpack,
                           const Columns& columns)
    : b_(builder), layout_(layout), geometry_(geometry), unpack_(unpack), columns_(columns) {}

void IntegerBlock::AddTo(std::vector<Rows>& sums) {
  const std::vector<Rows> minimums = Minimums();
  unpack_.GatherScales();
  std::vector<Rows> total(columns_.count());
  for (std::uint32_t chunk = 0; chunk < layout_.chunks; ++chunk) Chunk(chunk, total);
  b_.Note(layout_.has_m ? "the block's scale and minimum" : "the block's scale");
  const Rows d = unpack_.D();
  Rows m;
  if (layout_.has_m) m = unpack_.M();
  for (std::uint16_t c = 0; c < columns_.count(); ++c) {
    b_.Note("column sum += scales x integer sums");
    // One statement an instruction: the order in which C++ evaluates operands must not show in the program.
    const Rows scale = columns_.Float(c, columns_.layout().scale_offset);
    const Rows products = total[c].scalar() == Scalar::kF32 ? total[c] : ToF32(total[c]);
    const Rows scales = d * scale;
    sums[c] = Fma(scales, products, sums[c]);
    if (layout_.has_minimums) {
      const Rows minimum = ToF32(minimums[c]);
      const Rows minimum_scale = m * scale;
      sums[c] = Fma(minimum_scale, minimum, sums[c]);
    } else if (layout_.has_m) {
      sums[c] = Fma(m, columns_.Float(c, columns_.layout().scale_offset + 4), sums[c]);
    }
  }
}

/// Per column: the sum over sub-blocks of minimum times the sum of its activations, exact.
std::vector<Rows> IntegerBlock::Minimums() {
  std::vector<Rows> sums(columns_.count());
  for (std::uint32_t word = 0; word < layout_.MinimumWords(); ++word) {
    const Unpack::MinimumPairs pairs = unpack_.Minimums(word);
    for (std::uint16_t c = 0; c < columns_.count(); ++c) {
      const std::int64_t at = columns_.layout().sums_offset + std::int64_t{word} * 8;
      const Rows first = MaddHalves(pairs.even, columns_.Word(c, at));
      sums[c] = word == 0 ? first : sums[c] + first;
      sums[c] = sums[c] + MaddHalves(pairs.odd, columns_.Word(c, at + 4));
    }
  }
  return sums;
}

void IntegerBlock::Chunk(std::uint32_t chunk, std::vector<Rows>& total) {
  unpack_.BeginChunk(chunk);
  for (std::uint32_t sub = 0; sub < layout_.SubsPerChunk(); ++sub) {
    const std::vector<Rows> dots = SubBlock(chunk, sub);
    for (std::uint16_t c = 0; c < columns_.count(); ++c) {
      Rows scaled = dots[c];
      if (layout_.has_scales) {
        const Rows& scale = unpack_.ScaleOf(sub);
        scaled = scale.scalar() == Scalar::kF32 ? ToF32(dots[c]) * scale : dots[c] * scale;
      }
      total[c] = chunk == 0 && sub == 0 ? scaled : total[c] + scaled;
    }
  }
}

std::vector<Rows> IntegerBlock::SubBlock(std::uint32_t chunk, std::uint32_t sub) {
  const std::uint32_t quads = layout_.scale_elements / 4;
  const std::uint32_t sub_index = chunk * layout_.SubsPerChunk() + sub;
  chains_.assign(columns_.count(), std::vector<Chain>(geometry_.chains));
  for (std::uint16_t c = 0; c < columns_.count(); ++c) {
    const Value zero = b_.I32(0, geometry_.lanes);
    for (Chain& chain : chains_[c]) chain.dot = zero;
    if (columns_.layout().bias == 0) continue;
    chains_[c][0].dot = columns_.Word(c, columns_.layout().sums_offset + std::int64_t{sub_index} * 4);
  }
  for (std::uint32_t quad = 0; quad < quads; ++quad) {
    const std::int64_t element = chunk * layout_.chunk_elements + (sub * quads + quad) * 4;
    b_.Note(fmt::format("{}codes of elements {} to {} x activations", unpack_.turn(), element, element + 3));
    const std::vector<Rows> factors = unpack_.Factors(sub * quads + quad);
    const std::uint32_t turn = quad / geometry_.chains;  // of its chain
    const bool is_last = quad + geometry_.chains >= quads || (turn + 1) % geometry_.depth == 0;
    const auto chain = static_cast<std::uint16_t>(quad % geometry_.chains);
    for (std::uint16_t c = 0; c < columns_.count(); ++c) {
      Product(factors, c, chain, element, {turn % geometry_.depth == 0, is_last});
    }
  }
  std::vector<Rows> dots;
  for (const std::vector<Chain>& chains : chains_) {
    Rows dot = chains[0].dot;
    for (std::size_t i = 1; i < chains.size(); ++i) dot = dot + chains[i].dot;
    dots.push_back(dot);
  }
  return dots;
}

void IntegerBlock::Product(const std::vector<Rows>& factors, std::uint16_t column, std::uint16_t chain,
                           std::int64_t element, Run run) {
  const Rows& codes = factors[0];
  Rows& dot = chains_[column][chain].dot;
  if (geometry_.dot == Dot::kDot4) {
    dot = Dot4(dot, codes, columns_.Word(column, element));
  } else if (geometry_.dot == Dot::kDot4Signed) {
    dot = Dot4Signed(dot, codes, columns_.Word(column, element));
  } else if (geometry_.dot == Dot::kMaddBytes) {
    const Rows activations = columns_.Word(column, element);
    for (std::size_t half = 0; half < factors.size(); ++half) {
      Rows& pairs = chains_[column][chain].pairs[half];
      const Rows products = MaddBytes(factors[half], activations);
      pairs = run.is_first ? products : AddHalves(pairs, products);
      const std::uint32_t weight = half == 0 ? 1 : kHalfBase;
      if (run.is_last) dot = dot + MaddHalves(pairs, b_.U32(weight << 16 | weight, geometry_.lanes));
    }
  } else {
    const Value mask = b_.U32(kEvenBytes, geometry_.lanes);
    const Value first = columns_.Word(column, element * 2);
    const Rows even = codes & mask;
    dot = dot + MaddHalves(even, first);
    const Value second = columns_.Word(column, element * 2 + 4);
    const Rows odd = Shr(codes, 8) & mask;
    dot = dot + MaddHalves(odd, second);
  }
}

}  // namespace boltbeam::kernel
