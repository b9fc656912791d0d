// What a kernel is: a small loop program over 32-bit lanes.
//
// A program is one workgroup's work: on a CPU a thread's, whose lanes are a vector register. It receives buffers and a
// half-open range [begin, end) of work items, and it is the only thing that is printed, interpreted and lowered. The
// carrier is the 32-bit word: i32 and f32 vectors of any number of lanes, and 64-bit scalars for addresses. Narrow data
// are widened when loaded and narrowed when stored; bytes inside a word exist only for the dot products.
// Multiplication followed by addition is never fused: a fused multiply-add is its own operation. The order of every
// summation is written out, so a program gives the same result on every chip up to the rounding of exp-free arithmetic.
//
// Values are numbered in order of definition; each is defined once. Loops carry values explicitly.
//
// What an operation means where C leaves it open (the verifier or the interpreter refuses what is called illegal):
// integers wrap; kMin, kMax and kLess are signed; a shift by the width or more, a division by 0 or less, a loop step of
// 0 or less and a kTable16 byte above 15 are illegal. i64 values have one lane and take part in the integer operations,
// kLess (i32 result) and kSelect. kFMin is (a < b ? a : b) and kFMax (a > b ? a : b), so the second operand wins when
// either is NaN. kF32ToI32 of what does not fit is unspecified, and so are the payloads of NaNs. A memory operation
// may touch only bytes inside its buffer, at any alignment; a prefetch may point anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace boltbeam::kernel {

enum class Scalar : std::uint8_t { kI32, kF32, kI64 };

struct Type {
  Scalar scalar = Scalar::kI32;
  std::uint16_t lanes = 1;
  friend bool operator==(const Type&, const Type&) = default;
};

/// How a lane is stored in memory.
/// kU8, kS8 and kU16 are i32 lanes (loads extend, stores keep the low bits), kF16 and kBf16 are f32 lanes (loads are
/// exact; an f16 store rounds to nearest, ties to even; there is no bf16 store), kWord is 32 bits, i32 or f32.
enum class Memory : std::uint8_t { kU8, kS8, kU16, kF16, kBf16, kWord, kI64 };

enum class Op : std::uint8_t {
  // Constants and arguments
  kConstant,   // imm: the 32- or 64-bit pattern, in every lane
  kLaneIndex,  // 0, 1, 2, ... (i32)
  kBegin,
  kEnd,  // the range of work items (i64)
  // Memory. Operands: byte offset (i64) [, lane stride in bytes (i64)] [, value]; buffer and constant offset in the
  // fields
  kLoad,           // lanes contiguous
  kLoadStrided,    // lane l at offset + l * stride
  kLoadBroadcast,  // one element into every lane
  kStore,
  kStoreStrided,
  kPrefetch,  // operand: byte offset; imm 0: into every cache, 1: for one use (past the caches behind the first)
  // i32 lanes and i64 scalars
  kAdd,
  kSub,
  kMul,
  kAnd,
  kOr,
  kXor,
  kShl,
  kShr,
  kSar,
  kMin,
  kMax,
  kDivU,  // i64 only, by a value > 0
  // f32 lanes
  kFAdd,
  kFSub,
  kFMul,
  kFDiv,
  kFma,
  kFMin,
  kFMax,
  kFSqrt,
  kFAbs,
  kFRound,  // kFRound: to the nearest integer, ties to even
  // Conversions
  kI32ToF32,
  kF32ToI32,  // the latter rounds to nearest, ties to even
  kBitcast,   // i32 <-> f32
  kWiden,     // i32 scalar, signed -> i64
  kNarrow,    // i64 -> the low half as an i32 scalar
  kLess,
  kFLess,   // all ones or zero (i32)
  kSelect,  // mask (i32), a, b: a where the mask's sign bit is set
  // Inside a word: four bytes or two halves
  kDot4,        // acc + sum over the 4 bytes of unsigned(a) * signed(b)
  kDot4Signed,  // acc + sum over the 4 bytes of signed(a) * signed(b)
  kMaddBytes,   // two i16 per word: saturating sum of adjacent unsigned(a) * signed(b) bytes
  kMaddHalves,  // i32: sum of the two products of signed halves of a and b
  kAddHalves,   // two i16 per word, wrapping
  kTable16,     // every byte (< 16) replaced by the table's byte; the table is in `table`
  // Lanes
  kShuffle,  // result lane l = operand lane table[l]
  kExtract,  // lane `imm` as a scalar
  kSplat,    // scalar into every lane
  // Structure
  kLoop,  // from operand 0 to operand 1 (i64) in steps of operand 2; then the initial carried values
  kIf,    // when operand 0 (i32 scalar) is not 0; no results
};

using ValueId = std::uint32_t;

struct Region;

struct Instruction {
  Op op = Op::kConstant;
  Type type;  // of the result
  std::vector<ValueId> operands;
  std::vector<ValueId> results;  // one, none (stores), or a loop's carried values after the loop
  std::uint64_t imm = 0;
  std::int64_t offset = 0;  // constant part of an address, bytes
  std::uint32_t buffer = 0;
  Memory memory = Memory::kWord;
  bool ordered = false;             // a load that keeps its place in the stream of loads
  std::vector<std::int32_t> table;  // kShuffle, kTable16
  std::vector<Region> body;         // kLoop, kIf: one region
  std::string note;                 // for a person: what begins here; no part of the identity
  bool operator==(const Instruction& other) const;
};

struct Region {
  std::vector<ValueId> arguments;  // of a loop: the counter, then the carried values
  std::vector<Instruction> code;
  std::vector<ValueId> yields;  // the carried values' next
  friend bool operator==(const Region&, const Region&) = default;
};

inline bool Instruction::operator==(const Instruction& other) const = default;  // once regions can be compared

struct Buffer {
  std::string name;
  bool written = false;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// Where a program comes from: only these two may ship in a default plan.
enum class Provenance : std::uint8_t { kSearchGenerated, kCompilerGenerated, kHandWritten, kUnknown };

struct Program {
  std::string name;         // family and shape, such as "gemv.q4k.r16.c1": no name of a model
  std::string description;  // one line for a person
  Provenance provenance = Provenance::kCompilerGenerated;
  std::vector<Buffer> buffers;
  Region body;
  std::vector<Type> types;  // of every value

  [[nodiscard]] const Type& TypeOf(ValueId value) const { return types[value]; }
  friend bool operator==(const Program&, const Program&) = default;
};

/// The label of records: "compiler_generated".
std::string_view ProvenanceName(Provenance provenance);
std::string_view OpName(Op op);

/// Readable and canonical: equal programs with equal notes print equally.
std::string Print(const Program& program);
/// One instruction on one line, without its body: what errors name.
std::string PrintLine(const Program& program, const Instruction& instruction);
/// SHA-256 of the print without its notes.
std::string Identity(const Program& program);

}  // namespace boltbeam::kernel
