// The geometries of a product that a chip can run: which points are legal, and why the others are not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chip/facts.h"
#include "kernel/families/gemv.h"
#include "kernel/geometry.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

/// What legality asks of a chip. A fact that is not known refuses whatever needs it.
struct SpaceFacts {
  std::optional<std::uint32_t> lanes;      // 32-bit lanes of the widest vector register
  std::optional<std::uint32_t> registers;  // vector registers
  std::optional<bool> has_dot4;            // u8 x s8 four-way dot product at every width up to it
  std::optional<bool> has_madd_bytes;      // u8 x s8 pairs
  std::optional<bool> has_dot4_signed;     // s8 x s8 four-way dot product
};

/// Unknown for a chip of which no instruction sets are declared, and where no CPU is meant.
SpaceFacts SpaceFactsOf(const chip::Chip& chip);
/// All known.
SpaceFacts SpaceFactsOf(const VectorFacts& facts);

enum class Refusal : std::uint8_t {
  kMissingFact,   // of the chip
  kInstruction,   // that the chip lacks
  kRegisters,     // too few
  kDivisibility,  // of shape, block and knobs
  kOverflow,      // of 16 or 32 bits
  kCodeSize,      // more instructions a turn than are worth compiling
  kFormat,        // can't be had with this instruction, or at all
  kNoMeaning,     // the same program as another point
};

/// "registers"
std::string_view RefusalName(Refusal refusal);

struct Reason {
  Refusal refusal;
  std::string evidence;  // in numbers: "33 vector registers at least, 32 there"
};

/// Every reason why a point is not legal; none: it is. Shape is what a table's products share: rows and columns.
std::vector<Reason> Refusals(const GemvGeometry& point, const formats::Format& format, const GemvShape& shape,
                             const SpaceFacts& facts);

/// Points of the free product that were turned away together: the branch of knobs below the first that was refused.
struct RefusedPoints {
  Refusal refusal;
  std::string evidence;
  std::uint64_t points = 0;
};

/// The legal points of one column, and what became of all others: together they are the free product.
struct Space {
  std::vector<GemvGeometry> points;
  std::vector<RefusedPoints> refused;  // most points first
};

/// Built knob by knob from what the facts allow, always in the same order. A branch counts for the first of its
/// reasons.
Space SpaceOf(const formats::Format& format, const GemvShape& shape, const SpaceFacts& facts);

/// The points of SpaceOf.
std::vector<GemvGeometry> LegalPoints(const formats::Format& format, const GemvShape& shape, const SpaceFacts& facts);

/// How many points the knobs' values make together.
std::uint64_t FreeProduct();

/// Vector registers that a turn of the loop holds at once, at the least: sums, words and codes of all rows. Constants
/// may come from memory.
std::uint32_t RegistersNeeded(const WeightLayout& layout, const GemvGeometry& point);

}  // namespace boltbeam::kernel
