#include "kernel/instruction_count.h"

#include <algorithm>

#include "kernel/families/gemv.h"
#include "kernel/program_cost.h"

namespace boltbeam::kernel {
namespace {

/// The code of the loop that holds no other.
const Region& Innermost(const Region& region) {
  for (const Instruction& instruction : region.code) {
    if (!instruction.body.empty()) return Innermost(instruction.body.front());
  }
  return region;
}

}  // namespace

Result<double> InstructionsPerWeight(const formats::Format& format, const VectorFacts& facts) {
  return InstructionsPerWeight(format, DefaultGeometry(format, facts, false));
}

Result<double> InstructionsPerWeight(const formats::Format& format, const GemvGeometry& geometry) {
  BOLTBEAM_ASSIGN(const WeightLayout layout, LayoutFor(format, geometry));
  const std::uint64_t turn = std::uint64_t{layout.elements} * geometry.unroll;  // elements of each row
  BOLTBEAM_ASSIGN(const Program program, BuildGemv(layout, geometry, {.rows = layout.lanes, .cols = 2 * turn}));
  const auto count = std::ranges::count_if(Innermost(program.body).code, IsVectorArithmetic);
  return static_cast<double>(count) / static_cast<double>(turn * layout.lanes);
}

}  // namespace boltbeam::kernel
