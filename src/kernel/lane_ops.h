// What each operation of a loop program computes, in plain C++: one function over the lanes.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel/program.h"

namespace boltbeam::kernel {

/// The operands' 32-bit patterns, one pointer each.
using LaneOperands = const std::uint32_t* const*;

/// Computes an operation on 32-bit lanes (i32 arithmetic, f32 arithmetic, conversions, bytes inside words, lanes) into
/// out. Empty, or what is illegal about the operands' values.
std::string_view EvaluateLanes(const Instruction& instruction, LaneOperands operands, std::uint32_t* out);

/// The same for i64: kAdd to kDivU.
std::string_view EvaluateScalar(Op op, std::int64_t a, std::int64_t b, std::int64_t& out);

}  // namespace boltbeam::kernel
