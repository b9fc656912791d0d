// The kernels that measure a chip: written as loop programs like every other kernel, so that what measures the roof
// goes through the same generator as what is measured against it.
//
// Every program consumes what it computes: it stores a vector that depends on all of it to the buffer `out`.
#pragma once

#include <cstdint>

#include "kernel/program.h"

namespace boltbeam::measure {

/// One way to read memory as a stream.
struct StreamShape {
  std::uint16_t lanes = 8;           // 32-bit lanes of a load
  std::uint32_t loads = 8;           // loads of one step of the loop
  std::uint32_t accumulators = 4;    // independent sums
  std::uint32_t prefetch_bytes = 0;  // how far ahead; 0: none

  [[nodiscard]] std::uint64_t StepBytes() const { return std::uint64_t{4} * lanes * loads; }
  friend bool operator==(const StreamShape&, const StreamShape&) = default;
};

/// Buffers: data, out. Work items are steps of StepBytes() bytes.
kernel::Program StreamProgram(const StreamShape& shape);

/// Buffers: in (one vector of factors, one of addends), out. A work item multiplies and adds once in every lane of
/// every accumulator: 2 x lanes x accumulators floating-point operations.
kernel::Program FmaProgram(std::uint16_t lanes, std::uint32_t accumulators);

/// Buffers: in (one vector of signed bytes), out. A work item: one dot product of four bytes in every lane of every
/// accumulator, 8 x lanes x accumulators operations. The unsigned side is the sum itself, so that no part of the
/// product can be moved out of the loop.
kernel::Program DotProgram(std::uint16_t lanes, std::uint32_t accumulators);

/// The same of signed bytes with signed bytes.
kernel::Program SignedDotProgram(std::uint16_t lanes, std::uint32_t accumulators);

/// Buffers as of DotProgram. A work item: in every lane of every accumulator four products of bytes, added in pairs of
/// halves and to the halves there: what an instruction set without a four-way product makes of it, but for the widening
/// that a sum of many needs now and then. 8 x lanes x accumulators operations.
kernel::Program MaddBytesProgram(std::uint16_t lanes, std::uint32_t accumulators);

/// Buffers: in (one vector of signed halves), out. A work item: two products of halves and a sum in every lane of every
/// accumulator, 4 x lanes x accumulators operations.
kernel::Program MaddHalvesProgram(std::uint16_t lanes, std::uint32_t accumulators);

/// Buffers: in (not read), out. A work item: one integer addition in every accumulator, a vector instruction of the
/// kind that most units can do.
kernel::Program SimpleProgram(std::uint16_t lanes, std::uint32_t accumulators);

/// Buffers: source, target. Work items are grains of so many bytes, copied.
kernel::Program CopyProgram(std::uint16_t lanes, std::uint64_t grain_bytes);

/// Buffers: target. Work items are grains of so many bytes, overwritten.
kernel::Program WriteProgram(std::uint16_t lanes, std::uint64_t grain_bytes);

/// Buffers: chain (at the offset 0 the offset of the next load, there that of the one after, ...), out (the last
/// offset). A work item is one load.
kernel::Program ChaseProgram();

/// Buffers: none. Does nothing.
kernel::Program EmptyProgram();

}  // namespace boltbeam::measure
