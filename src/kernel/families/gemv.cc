#include "kernel/families/gemv.h"

#include <fmt/format.h>

#include "kernel/builder.h"
#include "kernel/families/ahead.h"
#include "kernel/families/best.h"
#include "kernel/families/columns.h"
#include "kernel/families/integer_block.h"
#include "kernel/families/late.h"
#include "kernel/families/state.h"
#include "kernel/families/unpack.h"
#include "kernel/rows.h"

namespace boltbeam::kernel {
namespace {

std::string_view DotName(Dot dot) {
  switch (dot) {
    case Dot::kDot4:
      return "dot4";
    case Dot::kDot4Signed:
      return "dot4signed";
    case Dot::kMaddBytes:
      return "maddbytes";
    case Dot::kMaddHalves:
      return "maddhalves";
    case Dot::kFloat:
      return "fma";
  }
  return "";
}

/// The loops over row groups, tiles of columns and blocks.
class Gemv {
 public:
  Gemv(const WeightLayout& layout, const GemvGeometry& geometry, const GemvShape& shape)
      : layout_(layout),
        geometry_(geometry),
        shape_(shape),
        lanes_(geometry.lanes),
        b_(Name(), Description()),
        weights_(b_.AddBuffer("weights")),
        columns_(Activations(ActivationsFor(layout, geometry.dot))),
        epilogue_(b_, shape.epilogue),
        unpack_(b_, layout, geometry, weights_),
        block_(b_, layout, geometry, unpack_, columns_) {
    if (shape.best) best_ = b_.AddBuffer("best", true);
    if (geometry.columns > 1 || shape.best) state_ = b_.AddBuffer("state");
  }

  Program Build() && {
    const Value begin = b_.Begin();
    const Value end = b_.End();
    if (shape_.best) {
      GroupsWithBest(begin, end);
    } else {
      Groups(begin, end);
    }
    return std::move(b_).Finish();
  }

 private:
  /// What is not as usual shows in the name.
  std::string Name() const {
    const GemvGeometry& g = geometry_;
    std::string name = fmt::format("gemv.{}x{}.b{}.r{}", shape_.rows, shape_.cols, layout_.block_bytes, g.lanes);
    if (g.vectors > 1) name += fmt::format("x{}", g.vectors);
    name += fmt::format(".c{}.u{}.{}", g.columns, g.unroll, DotName(g.dot));
    if (g.chains > 1) name += fmt::format(".a{}", g.chains);
    if (g.dot == Dot::kMaddBytes) name += fmt::format(".d{}", g.depth);
    if (!g.ordered) name += ".free";
    if (g.prefetch_bytes > 0) name += fmt::format(".p{}{}", g.prefetch_bytes, g.prefetch_once ? "once" : "");
    if (g.prefetch_every > 1) name += fmt::format(".e{}", g.prefetch_every);
    name += EpilogueSuffix(shape_.epilogue);
    if (shape_.gate) name += fmt::format(".{}", GateName(*shape_.gate));
    if (shape_.best) name += ".best";
    if (shape_.group_bytes != 0) name += fmt::format(".s{}", shape_.group_bytes);
    return name;
  }
  std::string Description() const {
    return fmt::format(
        "[{} x {}] table times {} column(s), {} rows side by side, {} elements and {} B a block of a group",
        shape_.rows, shape_.cols, geometry_.columns, layout_.lanes, layout_.elements, layout_.block_bytes);
  }

  Columns Activations(const ActivationLayout& layout) {
    return {b_, layout, geometry_, b_.AddBuffer("activations"),
            static_cast<std::int64_t>(layout.ColumnBytes(shape_.cols))};
  }
  std::int64_t OutStride() const { return static_cast<std::int64_t>(OutputStride(shape_.rows)); }

  void Groups(Value begin, Value end) {
    b_.Note(fmt::format("row groups: {} rows, one a lane", layout_.lanes));
    b_.Loop(begin, end, b_.I64(1), {}, [&](Value group, auto) -> std::vector<Value> {
      const Value at = group * GroupStride();
      const Value out = group * std::int64_t{4 * layout_.lanes};
      if (geometry_.columns == 1) {
        Tile(at, b_.I64(0), out, out);
        return {};
      }
      b_.Note(fmt::format("tiles of {} columns", geometry_.columns));
      const Value tiles = Widen(StateWord(b_, state_, kStateTiles));
      b_.Loop(b_.I64(0), tiles, b_.I64(1), {}, [&](Value tile, auto) -> std::vector<Value> {
        Tile(at, tile * (geometry_.columns * columns_.stride()), out + tile * (geometry_.columns * OutStride()), out);
        return {};
      });
      return {};
    });
  }

  std::int64_t GroupBytes() const { return static_cast<std::int64_t>(layout_.GroupBytes(shape_.cols)); }
  std::int64_t GroupStride() const {
    if (shape_.group_bytes != 0) return static_cast<std::int64_t>(shape_.group_bytes);
    return shape_.gate ? 2 * GroupBytes() : GroupBytes();
  }

  /// The largest result so far and its row go along from group to group, one for every lane.
  void GroupsWithBest(Value begin, Value end) {
    const std::int64_t rows = layout_.lanes;
    const std::int64_t registers = rows / lanes_;
    std::vector<Value> start;
    for (std::int64_t i = 0; i < registers; ++i) {
      start.push_back(b_.F32(kLowest, lanes_));
      start.push_back(b_.I32(0, lanes_));
    }
    const Value keep = StateWord(b_, state_, kStateKeepLogits);
    const std::vector<Value> all = b_.Loop(begin, end, b_.I64(1), start, [&](Value group, std::span<const Value> c) {
      const Rows sums = Sums(group * GroupStride(), b_.I64(0)).front();
      std::vector<Value> next;
      b_.Note("the largest so far");
      for (std::int64_t i = 0; i < registers; ++i) {
        const auto place = static_cast<std::size_t>(i);
        const Value row = Splat(Narrow(group * rows + i * lanes_), lanes_) + b_.LaneIndex(lanes_);
        const Best better = Improved({c[2 * place], c[2 * place + 1]}, OfRows(sums.at(place), row), row);
        next.insert(next.end(), {better.value, better.index});
      }
      b_.If(keep, [&] { epilogue_.Write(sums, group * (4 * rows), 0, group * (4 * rows)); });
      return next;
    });
    Best best{all[0], all[1]};
    for (std::size_t i = 2; i < all.size(); i += 2) best = Better(best, {all[i], all[i + 1]});
    const Value earlier = b_.LoadF32(best_, 1, b_.I64(0));
    const Value earlier_row = b_.LoadI32(best_, 1, b_.I64(0), 4);
    best = Better({earlier, earlier_row}, ReduceBest(best));
    b_.Store(best_, b_.I64(0), best.value);
    b_.Store(best_, b_.I64(0), best.index, Memory::kWord, 4);
  }

  /// Rows that only pad the last group never win.
  Value OfRows(Value sum, Value row) {
    if (shape_.rows % layout_.lanes == 0) return sum;
    const Value inside = Less(row, b_.I32(static_cast<std::int32_t>(shape_.rows), lanes_));
    return Select(inside, sum, b_.F32(kLowest, lanes_));
  }

  /// One row group times one tile of columns.
  void Tile(Value weights, Value input, Value out, Value group_out) {
    std::vector<Rows> sums = Sums(weights, input);
    if (shape_.gate) {
      b_.Note("the other table's group");
      const std::vector<Rows> others = Sums(weights + GroupBytes(), input);
      const auto gated = [&](Value gate, Value up) { return Gated(gate, up, *shape_.gate); };
      for (std::size_t c = 0; c < sums.size(); ++c) sums[c] = EachRegister(gated, sums[c], others[c]);
    }
    for (std::uint16_t c = 0; c < geometry_.columns; ++c) {
      b_.Note(geometry_.columns == 1 ? "the rows' results" : fmt::format("the rows' results of column {}", c));
      epilogue_.Write(sums[c], out, c * OutStride(), group_out);
    }
  }

  /// By column.
  std::vector<Rows> Sums(Value weights, Value input) {
    const std::uint32_t sums = geometry_.columns * Chains() * geometry_.vectors;
    std::vector<Value> carried{input};
    const bool is_late = shape_.delay_turns > 0;
    for (std::uint32_t i = 0; i < sums; ++i) {
      carried.push_back(is_late ? Splat(LateZero(b_, shape_.delay_turns), lanes_) : b_.F32(0, lanes_));
    }
    const std::int64_t blocks = static_cast<std::int64_t>(shape_.cols / layout_.elements);
    const std::int64_t turns = blocks / geometry_.unroll;
    const std::int64_t step = geometry_.unroll * std::int64_t{layout_.block_bytes};
    const Value middle = weights + turns * step;
    if (turns > 0) {
      b_.Note(fmt::format("{} turns of {} block(s) of {} elements", turns, geometry_.unroll, layout_.elements));
      carried = b_.Loop(weights, middle, b_.I64(step), carried, [&](Value at, std::span<const Value> values) {
        return Blocks(at, {values.begin(), values.end()}, geometry_.unroll);
      });
    }
    carried = Blocks(middle, std::move(carried), static_cast<std::uint16_t>(blocks - turns * geometry_.unroll));
    return Joined(carried);
  }

  /// The chains of each column's sum put together, pair by pair.
  std::vector<Rows> Joined(const std::vector<Value>& carried) const {
    const std::vector<Rows> all = CarriedSums(carried);
    std::vector<Rows> sums;
    for (auto first = all.begin(); first != all.end(); first += Chains()) {
      std::vector<Rows> chains(first, first + Chains());
      while (chains.size() > 1) {
        std::vector<Rows> joined;
        for (std::size_t i = 0; i + 1 < chains.size(); i += 2) joined.push_back(chains[i] + chains[i + 1]);
        if (chains.size() % 2 != 0) joined.push_back(chains.back());
        chains = std::move(joined);
      }
      sums.push_back(chains[0]);
    }
    return sums;
  }

  /// Chain by chain, column by column.
  std::vector<Rows> CarriedSums(const std::vector<Value>& carried) const {
    std::vector<Rows> sums;
    for (auto first = carried.begin() + 1; first != carried.end(); first += geometry_.vectors) {
      sums.emplace_back(std::vector<Value>(first, first + geometry_.vectors));
    }
    return sums;
  }

  /// Of a column's sum. Integer blocks have their chains inside.
  std::uint16_t Chains() const { return layout_.is_float ? geometry_.chains : 1; }

  /// The carried values are the place in the columns and the sums.
  std::vector<Value> Blocks(Value weights, std::vector<Value> carried, std::uint16_t count) {
    const Value input = carried[0];
    const std::int64_t block_bytes = columns_.layout().block_bytes;
    std::vector<Rows> sums = CarriedSums(carried);
    for (std::uint16_t block = 0; block < count; ++block) {
      const std::int64_t at = std::int64_t{block} * layout_.block_bytes;
      columns_.BeginBlock(input, block * block_bytes);
      if (layout_.is_float) {
        FloatElement(weights, at, sums, block);
        continue;
      }
      unpack_.BeginBlock(weights, at, count > 1 ? fmt::format("block {} of {}: ", block + 1, count) : "");
      block_.AddTo(sums);
    }
    if (count == 0) return carried;
    carried = {input + count * block_bytes};
    for (const Rows& rows : sums) carried.insert(carried.end(), rows.registers().begin(), rows.registers().end());
    return carried;
  }

  void FloatElement(Value weights, std::int64_t at, std::vector<Rows>& sums, std::uint16_t element) {
    std::vector<Value> registers;
    const std::uint32_t row_bytes = layout_.block_bytes / layout_.lanes;
    for (std::uint32_t row = 0; row < layout_.lanes; row += lanes_) {
      registers.push_back(b_.Load(weights_, {Scalar::kF32, lanes_}, layout_.float_memory, weights,
                                  at + std::int64_t{row} * row_bytes, geometry_.ordered));
      FetchAhead(b_, weights_, weights, at + std::int64_t{row} * row_bytes, std::int64_t{lanes_} * row_bytes,
                 {geometry_.prefetch_bytes, geometry_.prefetch_once, geometry_.prefetch_every});
    }
    const Rows w(std::move(registers));
    for (std::uint16_t c = 0; c < geometry_.columns; ++c) {
      Rows& sum = sums[c * Chains() + element % Chains()];
      sum = Fma(w, columns_.Float(c, 0), sum);
    }
  }

  const WeightLayout& layout_;
  const GemvGeometry& geometry_;
  const GemvShape& shape_;
  const std::uint16_t lanes_;
  Builder b_;
  const std::uint32_t weights_;
  Columns columns_;
  GemvEpilogue epilogue_;
  Unpack unpack_;
  IntegerBlock block_;
  std::uint32_t state_ = 0, best_ = 0;
};

}  // namespace

Result<Program> BuildGemv(const WeightLayout& layout, const GemvGeometry& geometry, const GemvShape& shape) {
  BOLTBEAM_TRY(CheckGeometry(layout, geometry, shape.cols));
  if (!HasRoomForGroups(shape.rows, layout.lanes)) {
    return Fail(Code::kKernelIllegal, layout.format->name,
                fmt::format("{} rows in groups of {}", shape.rows, layout.lanes), "groups that end with the rows");
  }
  if (shape.best && (geometry.columns != 1 || shape.gate)) {
    return Fail(Code::kKernelIllegal, layout.format->name,
                fmt::format("the largest result of {} columns", geometry.columns), "one column of plain results");
  }
  return Gemv(layout, geometry, shape).Build();
}

}  // namespace boltbeam::kernel
