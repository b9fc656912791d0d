// The default geometry: a formula over declared chip facts. A search may do better.
#pragma once

#include <cstdint>

#include "chip/facts.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

/// What the families need to know of a chip.
struct VectorFacts {
  std::uint16_t lanes = 4;       // 32-bit lanes of the widest vector register
  std::uint32_t registers = 16;  // vector registers
  bool has_dot4 = false;         // u8 x s8 four-way dot product at that width
  bool has_madd_bytes = false;   // u8 x s8 pairs at that width
  bool has_dot4_signed = false;  // s8 x s8
  // Further ahead than the loads that a core has under way by itself; 0: these suffice.
  std::uint32_t prefetch_bytes = 0;

  [[nodiscard]] std::uint32_t bits() const { return std::uint32_t{lanes} * 32; }
};

VectorFacts VectorFactsOf(const chip::Chip& chip);

/// For one column (decode) or as many as the registers hold (prompts).
GemvGeometry DefaultGeometry(const formats::Format& format, const VectorFacts& facts, bool many_columns);

/// For one column of a table with rows of so many elements: no more blocks a turn than a row has.
GemvGeometry DefaultGeometry(const formats::Format& format, std::uint64_t cols, const VectorFacts& facts);

/// For many columns of a table that is laid out for `decode`.
GemvGeometry PromptGeometry(const formats::Format& format, const VectorFacts& facts, const GemvGeometry& decode);

}  // namespace boltbeam::kernel
