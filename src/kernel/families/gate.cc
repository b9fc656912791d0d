#include "kernel/families/gate.h"

namespace boltbeam::kernel {
namespace {

/// The exponent e of x / (1 + exp(e)).
Value GateExponent(Value x, GateFunction function) {
  Builder& b = x.builder();
  const std::uint16_t lanes = x.lanes();
  if (function == GateFunction::kSilu) return b.F32(0, lanes) - x;
  constexpr float kLinear = -1.5957691216F;  // -2 sqrt(2 / pi)
  constexpr float kCubic = 0.044715F * kLinear;
  return x * Fma(x * x, b.F32(kCubic, lanes), b.F32(kLinear, lanes));
}

}  // namespace

std::string_view GateName(GateFunction function) { return function == GateFunction::kSilu ? "silu" : "gelu"; }

Value Gated(Value gate, Value up, GateFunction function) {
  const Value active = gate / (gate.builder().F32(1, gate.lanes()) + Exp(GateExponent(gate, function)));
  return active * up;
}

}  // namespace boltbeam::kernel
