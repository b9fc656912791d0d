#include "kernel/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "kernel/knobs.h"

namespace boltbeam::kernel {
namespace {

constexpr std::uint32_t kLeastLanes = 4;           // of a vector register anywhere
constexpr std::uint32_t kMostInstructions = 3072;  // of a turn: some 20 KB, well within any first cache of code

bool IsFloat(const formats::Format& format) { return format.Plain().layout && format.Plain().layout->encoding; }

/// Instructions of a turn, roughly: every piece of a code is shifted, masked and joined for each four codes.
std::uint64_t RoughInstructions(const WeightLayout& layout, const GemvGeometry& point) {
  if (layout.is_float) return std::uint64_t{point.unroll} * point.vectors * (1 + point.columns);
  const std::uint64_t quads = layout.elements / 4;
  std::uint64_t pieces = 0;  // of all quads
  for (const std::vector<CodePiece>& quad : layout.quads) pieces += layout.chunks * quad.size();
  const std::uint64_t subs = layout.elements / layout.scale_elements;
  const bool is_split = layout.IsSplit(point.dot);
  const std::uint64_t split = is_split ? 3 : 0;
  const std::uint64_t codebook = layout.format->layout->codebook.empty() ? split : is_split ? 2 : 1;
  const std::uint64_t multiply = point.dot == Dot::kDot4 || point.dot == Dot::kDot4Signed ? 2
                                 : point.dot == Dot::kMaddBytes                           ? 3
                                                                                          : 6;
  const std::uint64_t block =
      3 * pieces + quads * (codebook + multiply * point.columns) + subs * (3 + 2 * std::uint64_t{point.columns});
  return block * point.vectors * point.unroll;
}

/// Collects the reasons against one point.
class Judge {
 public:
  Judge(const GemvGeometry& point, const formats::Format& format, const GemvShape& shape, const SpaceFacts& facts)
      : point_(point), format_(format), shape_(shape), facts_(facts) {}

  std::vector<Reason> Run() && {
    if (point_.lanes == 0 || point_.vectors == 0 || point_.columns == 0 || point_.unroll == 0 || point_.chains == 0 ||
        point_.depth == 0) {
      Refuse(Refusal::kNoMeaning, "a knob at 0 makes no product");
      return std::move(reasons_);
    }
    Width();
    Instruction();
    const auto layout = LayoutFor(format_, point_);
    if (!layout) {
      Refuse(Refusal::kFormat, layout.error().found);
      return std::move(reasons_);
    }
    Format(*layout);
    Division(*layout);
    Prefetching(*layout);
    if (layout->is_float == (point_.dot == Dot::kFloat)) Size(*layout);
    return std::move(reasons_);
  }

 private:
  void Refuse(Refusal refusal, std::string evidence) { reasons_.push_back({refusal, std::move(evidence)}); }

  void Width() {
    if (!facts_.lanes) {
      Refuse(Refusal::kMissingFact, "the width of vector registers is not known");
    } else if (point_.lanes > *facts_.lanes) {
      Refuse(Refusal::kInstruction,
             fmt::format("registers of {} bits needed, {} there", 32 * point_.lanes, 32 * *facts_.lanes));
    }
    if (point_.lanes < kLeastLanes || !std::has_single_bit(point_.lanes)) {
      Refuse(Refusal::kDivisibility, fmt::format("{} lanes fill no vector register", point_.lanes));
    }
  }

  void Instruction() {
    const auto need = [&](std::optional<bool> fact, std::string_view what) {
      if (!fact) Refuse(Refusal::kMissingFact, fmt::format("whether there is {} is not known", what));
      if (fact && !*fact) Refuse(Refusal::kInstruction, fmt::format("{} needed, none there", what));
    };
    if (point_.dot == Dot::kDot4) need(facts_.has_dot4, "a four-way dot product of bytes");
    if (point_.dot == Dot::kDot4Signed) need(facts_.has_dot4_signed, "a four-way dot product of signed bytes");
    if (point_.dot == Dot::kMaddBytes) need(facts_.has_madd_bytes, "a product of pairs of bytes");
  }

  void Format(const WeightLayout& layout) {
    if (layout.is_float != (point_.dot == Dot::kFloat)) {
      Refuse(Refusal::kFormat, "float weights take float products, and only they");
      return;
    }
    if (layout.bias != layout.Recentred(point_.dot) && layout.has_minimums)
      Refuse(Refusal::kFormat, "a bias and minimums together");
    if (std::string overflow = SumOverflow(layout); !overflow.empty()) {
      Refuse(Refusal::kOverflow, std::move(overflow));
    }
    const bool has_form = !layout.is_float && layout.scales == point_.scales;
    if (point_.scales != ScaleForm::kPacked && !has_form) {
      Refuse(Refusal::kNoMeaning, "no block has a scale");
    } else if (point_.scales == ScaleForm::kBytes && IsPackedAsBytes()) {
      Refuse(Refusal::kNoMeaning, "scales are bytes already");
    }
    Depth(layout);
  }

  bool IsPackedAsBytes() const {
    const auto packed = LayoutFor(format_, point_.rows());
    return packed && packed->scale_place == ScalePlace::kBytes;
  }

  void Depth(const WeightLayout& layout) {
    if (point_.depth == 1) return;
    if (point_.dot != Dot::kMaddBytes) return Refuse(Refusal::kNoMeaning, "only pairs of bytes are added in 16 bits");
    const std::uint32_t quads = layout.scale_elements / 4;
    if (std::uint32_t{point_.depth} * point_.chains > quads) {
      return Refuse(Refusal::kNoMeaning,
                    fmt::format("{} chains of {} pairs: a sub-block has {}", point_.chains, point_.depth, quads));
    }
    if (point_.depth > layout.PairDepth(point_.dot)) {
      Refuse(Refusal::kOverflow,
             fmt::format("{} pairs in 16 bits: {} fit", point_.depth, layout.PairDepth(point_.dot)));
    }
  }

  void Division(const WeightLayout& layout) {
    if (shape_.cols == 0 || shape_.cols % layout.elements != 0) {
      Refuse(Refusal::kDivisibility, fmt::format("{} columns, blocks of {}", shape_.cols, layout.elements));
    }
    const std::uint64_t blocks = shape_.cols / layout.elements;
    if (point_.unroll > std::max<std::uint64_t>(1, blocks)) {
      Refuse(Refusal::kDivisibility, fmt::format("{} blocks a turn, a row has {}", point_.unroll, blocks));
    }
    const std::uint32_t most = layout.is_float ? point_.unroll : layout.scale_elements / 4;
    if (point_.chains > most || most % point_.chains != 0) {
      Refuse(Refusal::kDivisibility, fmt::format("{} chains for {} products", point_.chains, most));
    }
    if (!HasRoomForGroups(shape_.rows, point_.rows())) {
      Refuse(Refusal::kDivisibility, fmt::format("groups of {} rows, {} rows", point_.rows(), shape_.rows));
    }
  }

  void Prefetching(const WeightLayout& layout) {
    if (point_.prefetch_once && point_.prefetch_bytes == 0)
      Refuse(Refusal::kNoMeaning, "a hint, but nothing is fetched");
    if (point_.prefetch_every > 1 && point_.prefetch_bytes == 0) Refuse(Refusal::kNoMeaning, "some lines of none");
    const std::uint64_t lines = CeilDiv(point_.unroll * std::uint64_t{layout.block_bytes}, std::uint64_t{kLineBytes});
    if (point_.prefetch_every > 1 && point_.prefetch_every >= 2 * lines)
      Refuse(Refusal::kNoMeaning, fmt::format("one line of {}: a turn has {}", point_.prefetch_every, lines));
  }

  void Size(const WeightLayout& layout) {
    const std::uint32_t needed = RegistersNeeded(layout, point_);
    if (!facts_.registers) {
      Refuse(Refusal::kMissingFact, "the number of vector registers is not known");
    } else if (needed > *facts_.registers) {
      Refuse(Refusal::kRegisters, fmt::format("{} vector registers at least, {} there", needed, *facts_.registers));
    }
    const std::uint64_t instructions = RoughInstructions(layout, point_);
    if (instructions > kMostInstructions && point_.unroll * point_.vectors > 1) {
      Refuse(Refusal::kCodeSize,
             fmt::format("some {} instructions a turn, {} allowed", instructions, kMostInstructions));
    }
  }

  const GemvGeometry& point_;
  const formats::Format& format_;
  const GemvShape& shape_;
  const SpaceFacts& facts_;
  std::vector<Reason> reasons_;
};

/// Knob after knob: a branch ends where it is refused.
class Enumeration {
 public:
  Enumeration(const formats::Format& format, const GemvShape& shape, const SpaceFacts& facts)
      : format_(format), shape_(shape), facts_(facts) {
    GemvGeometry first;
    for (const Knob& knob : GemvKnobs()) knob.set(first, knob.values.front());
    first.dot = IsFloat(format) ? Dot::kFloat : Dot::kMaddHalves;
    first.scales = ScaleForm::kPacked;
    Turn(first, 0, FreeProduct());
    std::ranges::stable_sort(space.refused, std::ranges::greater{}, &RefusedPoints::points);
  }

  Space space;

 private:
  /// The knobs' order is such that those not turned yet stand at their least demanding value: what is refused now, no
  /// later knob can mend.
  void Turn(GemvGeometry point, std::size_t index, std::uint64_t branch) {
    const auto knobs = GemvKnobs();
    if (index == knobs.size()) {
      space.points.push_back(point);
      return;
    }
    branch /= knobs[index].values.size();
    for (const std::uint32_t value : knobs[index].values) {
      knobs[index].set(point, value);
      const std::vector<Reason> reasons = Refusals(point, format_, shape_, facts_);
      if (reasons.empty()) {
        Turn(point, index + 1, branch);
      } else {
        Count(reasons.front(), branch);
      }
    }
  }

  void Count(const Reason& reason, std::uint64_t points) {
    const auto known = std::ranges::find_if(space.refused, [&](const RefusedPoints& one) {
      return one.refusal == reason.refusal && one.evidence == reason.evidence;
    });
    if (known != space.refused.end()) {
      known->points += points;
    } else {
      space.refused.push_back({reason.refusal, reason.evidence, points});
    }
  }

  const formats::Format& format_;
  const GemvShape& shape_;
  const SpaceFacts& facts_;
};

}  // namespace

SpaceFacts SpaceFactsOf(const chip::Chip& chip) {
  if (chip.backend != "cpu" || chip.features.empty()) return {};
  return SpaceFactsOf(VectorFactsOf(chip));
}

SpaceFacts SpaceFactsOf(const VectorFacts& facts) {
  return {facts.lanes, facts.registers, facts.has_dot4, facts.has_madd_bytes, facts.has_dot4_signed};
}

std::string_view RefusalName(Refusal refusal) {
  switch (refusal) {
    case Refusal::kMissingFact:
      return "missing-fact";
    case Refusal::kInstruction:
      return "instruction";
    case Refusal::kRegisters:
      return "registers";
    case Refusal::kDivisibility:
      return "divisibility";
    case Refusal::kOverflow:
      return "overflow";
    case Refusal::kCodeSize:
      return "code-size";
    case Refusal::kFormat:
      return "format";
    case Refusal::kNoMeaning:
      return "no-meaning";
  }
  return "";
}

std::vector<Reason> Refusals(const GemvGeometry& point, const formats::Format& format, const GemvShape& shape,
                             const SpaceFacts& facts) {
  return Judge(point, format, shape, facts).Run();
}

Space SpaceOf(const formats::Format& format, const GemvShape& shape, const SpaceFacts& facts) {
  return std::move(Enumeration(format, shape, facts).space);
}

std::vector<GemvGeometry> LegalPoints(const formats::Format& format, const GemvShape& shape, const SpaceFacts& facts) {
  return SpaceOf(format, shape, facts).points;
}

std::uint64_t FreeProduct() {
  std::uint64_t product = 1;
  for (const Knob& knob : GemvKnobs()) product *= knob.values.size();
  return product;
}

std::uint32_t RegistersNeeded(const WeightLayout& layout, const GemvGeometry& point) {
  const std::uint32_t broadcast = point.columns * point.vectors > 1 ? 1 : 0;  // else an operand in memory
  if (layout.is_float) return point.vectors * (std::uint32_t{point.columns} * point.chains + 1) + broadcast;
  const bool is_split = layout.IsSplit(point.dot);
  const std::uint32_t halves = point.dot == Dot::kMaddBytes ? is_split ? 2 : 1 : 0;
  const bool has_total = layout.has_scales || layout.chunks > 1;
  const std::uint32_t sums = 1 + (has_total ? 1 : 0) + (layout.has_minimums ? 1 : 0) + point.chains * (1 + halves);
  const bool holds_scales = layout.scale_place == ScalePlace::kHalves || layout.scale_place == ScalePlace::kSpread;
  std::size_t words = 1;  // from which a code is put together
  for (const std::vector<CodePiece>& quad : layout.quads) words = std::max(words, quad.size());
  const std::uint32_t codes = 1 + (is_split ? 1 : 0);
  const std::uint32_t tables = layout.format->layout->codebook.empty() ? 0 : is_split ? 2 : 1;
  return point.vectors * (point.columns * sums + static_cast<std::uint32_t>(words) + codes +
                          (holds_scales ? layout.MinimumWords() : 0)) +
         tables + broadcast;
}

}  // namespace boltbeam::kernel
