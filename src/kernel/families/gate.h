// The activation of a feed-forward block: what becomes of a gate and an up value.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel/builder.h"

namespace boltbeam::kernel {

/// silu(x) = x / (1 + e^-x); gelu(x) in its form by tanh: x / (1 + e^(-2 sqrt(2 / pi) (x + 0.044715 x^3))).
enum class GateFunction : std::uint8_t { kSilu, kGelu };

std::string_view GateName(GateFunction function);

/// function(gate) * up.
Value Gated(Value gate, Value up, GateFunction function);

}  // namespace boltbeam::kernel
