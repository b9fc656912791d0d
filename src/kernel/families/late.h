// For tests of accounts and of the judge: what makes a kernel slower inside its generated code and changes no result.
#pragma once

#include <cstdint>

#include "kernel/builder.h"

namespace boltbeam::kernel {

/// A scalar 0 (f32), late: a chain of so many dependent operations, some 4 cycles each, that no compiler may shorten.
inline Value LateZero(Builder& b, std::uint32_t turns) {
  const Value one = b.F32(1);
  const Value half = b.F32(0.5F);
  const std::vector<Value> late =
      b.Loop(b.I64(0), b.I64(turns), b.I64(1), {one},
             [&](Value, std::span<const Value> v) -> std::vector<Value> { return {Fma(v[0], half, one)}; });
  return late[0] * b.F32(0);
}

}  // namespace boltbeam::kernel
