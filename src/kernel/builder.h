// Writes loop programs: values with operators, so that a family reads like the arithmetic it generates.
//
//   Builder b("axpy", "y += a * x over 16 lanes");
//   const auto x = b.AddBuffer("x");
//   const auto y = b.AddBuffer("y", true);
//   b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
//     Value at = i * 64;
//     b.Store(y, at, Fma(b.F32(2, 16), b.LoadF32(x, 16, at), b.LoadF32(y, 16, at)));
//     return {};
//   });
//   Program program = std::move(b).Finish();
//
// A misuse (mixed types, a value of another builder) is our own bug and is caught by Verify, not here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/program.h"

namespace boltbeam::kernel {

class Builder;

class Value {
 public:
  Value() = default;
  Value(Builder* builder, ValueId id) : builder_(builder), id_(id) {}
  [[nodiscard]] ValueId id() const { return id_; }
  [[nodiscard]] Builder& builder() const { return *builder_; }
  [[nodiscard]] Type type() const;
  [[nodiscard]] std::uint16_t lanes() const { return type().lanes; }

 private:
  Builder* builder_ = nullptr;
  ValueId id_ = 0;
};

class Builder {
 public:
  using LoopBody = std::function<std::vector<Value>(Value counter, std::span<const Value> carried)>;

  Builder(std::string name, std::string description);

  std::uint32_t AddBuffer(std::string name, bool written = false);

  // Constants are kept once, at the start of the program.
  Value I32(std::int32_t value, std::uint16_t lanes = 1);
  Value U32(std::uint32_t value, std::uint16_t lanes = 1) { return I32(static_cast<std::int32_t>(value), lanes); }
  Value F32(float value, std::uint16_t lanes = 1);
  Value I64(std::int64_t value);
  Value LaneIndex(std::uint16_t lanes);
  Value Begin();
  Value End();

  Value Load(std::uint32_t buffer, Type type, Memory memory, Value offset, std::int64_t constant = 0,
             bool ordered = false);
  Value LoadF32(std::uint32_t buffer, std::uint16_t lanes, Value offset, std::int64_t constant = 0) {
    return Load(buffer, {Scalar::kF32, lanes}, Memory::kWord, offset, constant);
  }
  Value LoadI32(std::uint32_t buffer, std::uint16_t lanes, Value offset, std::int64_t constant = 0) {
    return Load(buffer, {Scalar::kI32, lanes}, Memory::kWord, offset, constant);
  }
  Value LoadStrided(std::uint32_t buffer, Type type, Memory memory, Value offset, Value stride,
                    std::int64_t constant = 0);
  Value LoadBroadcast(std::uint32_t buffer, Type type, Memory memory, Value offset, std::int64_t constant = 0);
  void Store(std::uint32_t buffer, Value offset, Value value, Memory memory = Memory::kWord, std::int64_t constant = 0);
  void StoreStrided(std::uint32_t buffer, Value offset, Value stride, Value value, Memory memory = Memory::kWord,
                    std::int64_t constant = 0);
  /// `once`: what comes is used once and need not stay in a cache.
  void Prefetch(std::uint32_t buffer, Value offset, std::int64_t constant = 0, bool once = false);

  Value Shuffle(Value value, std::vector<std::int32_t> lanes);
  Value Extract(Value value, std::uint32_t lane);
  Value Table16(Value bytes, std::vector<std::int32_t> table);

  /// Runs body for counter = from, from + step, ... while counter < to. Returns the carried values after the last run.
  std::vector<Value> Loop(Value from, Value to, Value step, const std::vector<Value>& initial, const LoopBody& body);
  void If(Value condition, const std::function<void()>& body);

  /// Says, for a person who reads the print, what the next instruction begins.
  void Note(std::string text) { note_ = std::move(text); }

  /// The general form that the operators use.
  Value Emit(Op op, Type type, const std::vector<Value>& operands);

  [[nodiscard]] Type TypeOf(ValueId id) const { return program_.types[id]; }
  Program Finish() &&;

 private:
  Value Define(Type type);
  Value Constant(Type type, std::uint64_t bits);
  Instruction& Append(Instruction instruction);
  Value AppendWithResult(Instruction instruction, Type type);
  static Instruction Access(Op op, std::uint32_t buffer, Memory memory, std::int64_t constant,
                            const std::vector<Value>& operands);

  Program program_;
  std::vector<Region> open_;            // the regions being written, innermost last
  std::vector<Instruction> constants_;  // moved to the front by Finish
  std::map<std::tuple<Scalar, std::uint16_t, std::uint64_t>, ValueId> constant_ids_;
  std::string note_;  // of the next instruction
};

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);  // f32, or i64 by a value > 0
Value operator&(Value a, Value b);
Value operator|(Value a, Value b);
Value operator^(Value a, Value b);
// With a constant: of the other operand's type.
Value operator+(Value a, std::int64_t b);
Value operator-(Value a, std::int64_t b);
Value operator*(Value a, std::int64_t b);
Value operator/(Value a, std::int64_t b);

Value Shl(Value a, std::int32_t bits);
Value Shr(Value a, std::int32_t bits);
Value Sar(Value a, std::int32_t bits);
Value Min(Value a, Value b);  // by type: signed integers or floats
Value Max(Value a, Value b);
Value Fma(Value a, Value b, Value c);
Value Sqrt(Value a);
Value Abs(Value a);
Value Round(Value a);
Value ToF32(Value a);
Value ToI32(Value a);
Value AsF32(Value a);
Value AsI32(Value a);
Value Widen(Value a);
Value Narrow(Value a);
Value Less(Value a, Value b);
Value Select(Value mask, Value a, Value b);
Value Splat(Value scalar, std::uint16_t lanes);
Value Dot4(Value acc, Value unsigned_bytes, Value signed_bytes);
Value Dot4Signed(Value acc, Value a, Value b);
Value MaddBytes(Value unsigned_bytes, Value signed_bytes);
Value MaddHalves(Value a, Value b);
Value AddHalves(Value a, Value b);

/// All lanes combined pairwise (l with l + lanes/2, and so on): a fixed order. The result is a scalar.
Value ReduceAdd(Value a);
Value ReduceMax(Value a);

/// e^x to about one unit in the last place of f32 for x in [-87, 88]; beyond, the value at the bound.
/// Range reduction by ln 2 in two parts and a polynomial of degree 6 (Cephes, expf).
Value Exp(Value x);

}  // namespace boltbeam::kernel
