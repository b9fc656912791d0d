#include "kernel/builder.h"

#include <bit>
#include <tuple>

namespace boltbeam::kernel {

Type Value::type() const { return builder_->TypeOf(id_); }

Builder::Builder(std::string name, std::string description) {
  program_.name = std::move(name);
  program_.description = std::move(description);
  open_.emplace_back();
}

std::uint32_t Builder::AddBuffer(std::string name, bool written) {
  program_.buffers.push_back({std::move(name), written});
  return static_cast<std::uint32_t>(program_.buffers.size() - 1);
}

Value Builder::Define(Type type) {
  program_.types.push_back(type);
  return {this, static_cast<ValueId>(program_.types.size() - 1)};
}

Instruction& Builder::Append(Instruction instruction) {
  if (instruction.note.empty()) instruction.note = std::exchange(note_, {});
  open_.back().code.push_back(std::move(instruction));
  return open_.back().code.back();
}

Value Builder::AppendWithResult(Instruction instruction, Type type) {
  const Value result = Define(type);
  instruction.type = type;
  instruction.results = {result.id()};
  Append(std::move(instruction));
  return result;
}

Value Builder::Constant(Type type, std::uint64_t bits) {
  const auto [place, is_new] = constant_ids_.try_emplace(std::tuple(type.scalar, type.lanes, bits), 0);
  if (is_new) {
    const Value value = Define(type);
    place->second = value.id();
    Instruction constant;
    constant.op = Op::kConstant;
    constant.type = type;
    constant.imm = bits;
    constant.results = {value.id()};
    constants_.push_back(std::move(constant));
  }
  return {this, place->second};
}

Value Builder::I32(std::int32_t value, std::uint16_t lanes) {
  return Constant({Scalar::kI32, lanes}, static_cast<std::uint32_t>(value));
}
Value Builder::F32(float value, std::uint16_t lanes) {
  return Constant({Scalar::kF32, lanes}, std::bit_cast<std::uint32_t>(value));
}
Value Builder::I64(std::int64_t value) { return Constant({Scalar::kI64, 1}, static_cast<std::uint64_t>(value)); }

Value Builder::LaneIndex(std::uint16_t lanes) { return Emit(Op::kLaneIndex, {Scalar::kI32, lanes}, {}); }
Value Builder::Begin() { return Emit(Op::kBegin, {Scalar::kI64, 1}, {}); }
Value Builder::End() { return Emit(Op::kEnd, {Scalar::kI64, 1}, {}); }

Value Builder::Emit(Op op, Type type, const std::vector<Value>& operands) {
  Instruction instruction;
  instruction.op = op;
  for (const Value operand : operands) instruction.operands.push_back(operand.id());
  return AppendWithResult(std::move(instruction), type);
}

Instruction Builder::Access(Op op, std::uint32_t buffer, Memory memory, std::int64_t constant,
                            const std::vector<Value>& operands) {
  Instruction access;
  access.op = op;
  for (const Value operand : operands) access.operands.push_back(operand.id());
  access.buffer = buffer;
  access.memory = memory;
  access.offset = constant;
  return access;
}

Value Builder::Load(std::uint32_t buffer, Type type, Memory memory, Value offset, std::int64_t constant, bool ordered) {
  Instruction load = Access(Op::kLoad, buffer, memory, constant, {offset});
  load.ordered = ordered;
  return AppendWithResult(std::move(load), type);
}

Value Builder::LoadStrided(std::uint32_t buffer, Type type, Memory memory, Value offset, Value stride,
                           std::int64_t constant) {
  return AppendWithResult(Access(Op::kLoadStrided, buffer, memory, constant, {offset, stride}), type);
}

Value Builder::LoadBroadcast(std::uint32_t buffer, Type type, Memory memory, Value offset, std::int64_t constant) {
  return AppendWithResult(Access(Op::kLoadBroadcast, buffer, memory, constant, {offset}), type);
}

void Builder::Store(std::uint32_t buffer, Value offset, Value value, Memory memory, std::int64_t constant) {
  Instruction store = Access(Op::kStore, buffer, memory, constant, {offset, value});
  store.type = value.type();
  Append(std::move(store));
}

void Builder::StoreStrided(std::uint32_t buffer, Value offset, Value stride, Value value, Memory memory,
                           std::int64_t constant) {
  Instruction store = Access(Op::kStoreStrided, buffer, memory, constant, {offset, stride, value});
  store.type = value.type();
  Append(std::move(store));
}

void Builder::Prefetch(std::uint32_t buffer, Value offset, std::int64_t constant, bool once) {
  Instruction prefetch = Access(Op::kPrefetch, buffer, Memory::kWord, constant, {offset});
  prefetch.imm = once ? 1 : 0;
  Append(std::move(prefetch));
}

Value Builder::Shuffle(Value value, std::vector<std::int32_t> lanes) {
  Instruction shuffle;
  shuffle.op = Op::kShuffle;
  shuffle.operands = {value.id()};
  const Type type{value.type().scalar, static_cast<std::uint16_t>(lanes.size())};
  shuffle.table = std::move(lanes);
  return AppendWithResult(std::move(shuffle), type);
}

Value Builder::Extract(Value value, std::uint32_t lane) {
  Instruction extract;
  extract.op = Op::kExtract;
  extract.operands = {value.id()};
  extract.imm = lane;
  return AppendWithResult(std::move(extract), {value.type().scalar, 1});
}

Value Builder::Table16(Value bytes, std::vector<std::int32_t> table) {
  Instruction lookup;
  lookup.op = Op::kTable16;
  lookup.operands = {bytes.id()};
  lookup.table = std::move(table);
  return AppendWithResult(std::move(lookup), bytes.type());
}

std::vector<Value> Builder::Loop(Value from, Value to, Value step, const std::vector<Value>& initial,
                                 const LoopBody& body) {
  Instruction loop;
  loop.op = Op::kLoop;
  loop.note = std::exchange(note_, {});
  loop.operands = {from.id(), to.id(), step.id()};
  Region region;
  const Value counter = Define({Scalar::kI64, 1});
  region.arguments.push_back(counter.id());
  std::vector<Value> carried;
  for (const Value value : initial) {
    loop.operands.push_back(value.id());
    carried.push_back(Define(value.type()));
    region.arguments.push_back(carried.back().id());
  }
  open_.push_back(std::move(region));
  for (const Value value : body(counter, carried)) open_.back().yields.push_back(value.id());
  loop.body.push_back(std::move(open_.back()));
  open_.pop_back();
  std::vector<Value> results;
  for (const Value value : initial) {
    results.push_back(Define(value.type()));
    loop.results.push_back(results.back().id());
  }
  Append(std::move(loop));
  return results;
}

void Builder::If(Value condition, const std::function<void()>& body) {
  Instruction branch;
  branch.op = Op::kIf;
  branch.note = std::exchange(note_, {});
  branch.operands = {condition.id()};
  open_.emplace_back();
  body();
  branch.body.push_back(std::move(open_.back()));
  open_.pop_back();
  Append(std::move(branch));
}

Program Builder::Finish() && {
  program_.body = std::move(open_.front());
  program_.body.code.insert(program_.body.code.begin(), std::make_move_iterator(constants_.begin()),
                            std::make_move_iterator(constants_.end()));
  return std::move(program_);
}

namespace {

Value Binary(Op integer, Op floating, Value a, Value b) {
  const bool is_float = a.type().scalar == Scalar::kF32;
  return a.builder().Emit(is_float ? floating : integer, a.type(), {a, b});
}

Value ConstantLike(Value like, std::int64_t value) {
  Builder& b = like.builder();
  switch (like.type().scalar) {
    case Scalar::kI64:
      return b.I64(value);
    case Scalar::kF32:
      return b.F32(static_cast<float>(value), like.lanes());
    case Scalar::kI32:
      break;
  }
  return b.I32(static_cast<std::int32_t>(value), like.lanes());
}

Value Unary(Op op, Value a) { return a.builder().Emit(op, a.type(), {a}); }
Value WithScalar(Op op, Value a, Scalar scalar) { return a.builder().Emit(op, {scalar, a.lanes()}, {a}); }

template <typename Combine>
Value ReduceLanes(Value a, Combine combine) {
  for (std::int32_t half = a.lanes() / 2; half >= 1; half /= 2) {
    std::vector<std::int32_t> low, high;
    for (std::int32_t lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(lane + half);
    }
    a = combine(a.builder().Shuffle(a, low), a.builder().Shuffle(a, high));
  }
  return a;
}

}  // namespace

Value operator+(Value a, Value b) { return Binary(Op::kAdd, Op::kFAdd, a, b); }
Value operator-(Value a, Value b) { return Binary(Op::kSub, Op::kFSub, a, b); }
Value operator*(Value a, Value b) { return Binary(Op::kMul, Op::kFMul, a, b); }
Value operator/(Value a, Value b) { return Binary(Op::kDivU, Op::kFDiv, a, b); }
Value operator&(Value a, Value b) { return a.builder().Emit(Op::kAnd, a.type(), {a, b}); }
Value operator|(Value a, Value b) { return a.builder().Emit(Op::kOr, a.type(), {a, b}); }
Value operator^(Value a, Value b) { return a.builder().Emit(Op::kXor, a.type(), {a, b}); }
Value operator+(Value a, std::int64_t b) { return b == 0 ? a : a + ConstantLike(a, b); }
Value operator-(Value a, std::int64_t b) { return b == 0 ? a : a - ConstantLike(a, b); }
Value operator*(Value a, std::int64_t b) { return b == 1 ? a : a * ConstantLike(a, b); }
Value operator/(Value a, std::int64_t b) { return b == 1 ? a : a / ConstantLike(a, b); }

Value Shl(Value a, std::int32_t bits) {
  return bits == 0 ? a : a.builder().Emit(Op::kShl, a.type(), {a, ConstantLike(a, bits)});
}
Value Shr(Value a, std::int32_t bits) {
  return bits == 0 ? a : a.builder().Emit(Op::kShr, a.type(), {a, ConstantLike(a, bits)});
}
Value Sar(Value a, std::int32_t bits) {
  return bits == 0 ? a : a.builder().Emit(Op::kSar, a.type(), {a, ConstantLike(a, bits)});
}
Value Min(Value a, Value b) { return Binary(Op::kMin, Op::kFMin, a, b); }
Value Max(Value a, Value b) { return Binary(Op::kMax, Op::kFMax, a, b); }
Value Fma(Value a, Value b, Value c) { return a.builder().Emit(Op::kFma, a.type(), {a, b, c}); }
Value Sqrt(Value a) { return Unary(Op::kFSqrt, a); }
Value Abs(Value a) { return Unary(Op::kFAbs, a); }
Value Round(Value a) { return Unary(Op::kFRound, a); }
Value ToF32(Value a) { return WithScalar(Op::kI32ToF32, a, Scalar::kF32); }
Value ToI32(Value a) { return WithScalar(Op::kF32ToI32, a, Scalar::kI32); }
Value AsF32(Value a) { return WithScalar(Op::kBitcast, a, Scalar::kF32); }
Value AsI32(Value a) { return WithScalar(Op::kBitcast, a, Scalar::kI32); }
Value Widen(Value a) { return a.builder().Emit(Op::kWiden, {Scalar::kI64, 1}, {a}); }
Value Narrow(Value a) { return a.builder().Emit(Op::kNarrow, {Scalar::kI32, 1}, {a}); }
Value Less(Value a, Value b) {
  const Op op = a.type().scalar == Scalar::kF32 ? Op::kFLess : Op::kLess;
  return a.builder().Emit(op, {Scalar::kI32, a.lanes()}, {a, b});
}
Value Select(Value mask, Value a, Value b) { return a.builder().Emit(Op::kSelect, a.type(), {mask, a, b}); }
Value Splat(Value scalar, std::uint16_t lanes) {
  if (lanes == 1) return scalar;
  return scalar.builder().Emit(Op::kSplat, {scalar.type().scalar, lanes}, {scalar});
}
Value Dot4(Value acc, Value unsigned_bytes, Value signed_bytes) {
  return acc.builder().Emit(Op::kDot4, acc.type(), {acc, unsigned_bytes, signed_bytes});
}
Value Dot4Signed(Value acc, Value a, Value b) { return acc.builder().Emit(Op::kDot4Signed, acc.type(), {acc, a, b}); }
Value MaddBytes(Value unsigned_bytes, Value signed_bytes) {
  return unsigned_bytes.builder().Emit(Op::kMaddBytes, unsigned_bytes.type(), {unsigned_bytes, signed_bytes});
}
Value MaddHalves(Value a, Value b) { return a.builder().Emit(Op::kMaddHalves, a.type(), {a, b}); }
Value AddHalves(Value a, Value b) { return a.builder().Emit(Op::kAddHalves, a.type(), {a, b}); }

Value ReduceAdd(Value a) {
  return ReduceLanes(a, [](Value x, Value y) { return x + y; });
}
Value ReduceMax(Value a) {
  return ReduceLanes(a, [](Value x, Value y) { return Max(x, y); });
}

Value Exp(Value x) {
  Builder& b = x.builder();
  const std::uint16_t lanes = x.lanes();
  const auto f = [&](float value) { return b.F32(value, lanes); };
  x = Min(Max(x, f(-87.0F)), f(88.0F));
  const Value n = Round(x * f(1.44269504088896341F));
  Value r = Fma(n, f(-0.693359375F), x);
  r = Fma(n, f(2.12194440e-4F), r);
  Value p = f(1.9875691500e-4F);
  for (const float coefficient :
       {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F}) {
    p = Fma(p, r, f(coefficient));
  }
  p = Fma(p, r * r, r) + f(1.0F);
  const Value exponent = Shl(ToI32(n) + 127, 23);
  return p * AsF32(exponent);
}

}  // namespace boltbeam::kernel
