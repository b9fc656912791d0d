// Loads widen and stores narrow; every access may be unaligned.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/lowering.h"

namespace boltbeam::codegen {
namespace {

using kernel::Instruction;
using kernel::Memory;
using kernel::Op;
using kernel::Scalar;

const llvm::Align kUnaligned{1};

llvm::Type* ElementType(llvm::IRBuilder<>& ir, Memory memory, Scalar scalar) {
  switch (memory) {
    case Memory::kU8:
    case Memory::kS8:
      return ir.getInt8Ty();
    case Memory::kU16:
    case Memory::kF16:
    case Memory::kBf16:
      return ir.getInt16Ty();
    case Memory::kI64:
      return ir.getInt64Ty();
    case Memory::kWord:
      break;
  }
  return scalar == Scalar::kF32 ? ir.getFloatTy() : static_cast<llvm::Type*>(ir.getInt32Ty());
}

}  // namespace

Lowering::Value Lowering::Address(const Instruction& instruction) {
  Value address = ir_.CreateGEP(ir_.getInt8Ty(), buffers_.at(instruction.buffer), Operand(instruction, 0));
  if (instruction.offset == 0) return address;
  return ir_.CreateGEP(ir_.getInt8Ty(), address, ir_.getInt64(static_cast<std::uint64_t>(instruction.offset)));
}

/// The bits as they lie in memory. An ordered load is volatile: nothing else keeps LLVM's scheduler from changing the
/// order in which a stream is read, which costs up to two thirds of the memory's speed.
Lowering::Value Lowering::LoadRaw(const Instruction& instruction, Value address, unsigned lanes) {
  llvm::Type* type = WithLanes(ElementType(ir_, instruction.memory, instruction.type.scalar), lanes);
  return ir_.CreateAlignedLoad(type, address, kUnaligned, instruction.ordered);
}

Lowering::Value Lowering::FromMemory(Memory memory, Value raw, const kernel::Type& type) {
  switch (memory) {
    case Memory::kU8:
    case Memory::kU16:
      return ir_.CreateZExt(raw, Like(TypeOf({type.scalar, 1}), raw));
    case Memory::kS8:
      return ir_.CreateSExt(raw, Like(TypeOf({type.scalar, 1}), raw));
    case Memory::kF16:
      return HalfToFloat(raw);
    case Memory::kBf16:
      return Bfloat16ToFloat(raw);
    case Memory::kWord:
    case Memory::kI64:
      break;
  }
  return raw;
}

Lowering::Value Lowering::Load(const Instruction& instruction) {
  if (tiles_.contains(instruction.results.at(0))) return LoadTiled(instruction);
  const kernel::Type& type = instruction.type;
  Value address = Address(instruction);
  if (instruction.op == Op::kLoad) {
    return FromMemory(instruction.memory, LoadRaw(instruction, address, type.lanes), type);
  }
  if (instruction.op == Op::kLoadBroadcast) {
    Value one = FromMemory(instruction.memory, LoadRaw(instruction, address, 1), type);
    return type.lanes == 1 ? one : ir_.CreateVectorSplat(type.lanes, one);
  }
  Value stride = Operand(instruction, 1);
  if (type.lanes == 1) return FromMemory(instruction.memory, LoadRaw(instruction, address, 1), type);
  Value raw = llvm::PoisonValue::get(WithLanes(ElementType(ir_, instruction.memory, type.scalar), type.lanes));
  for (std::uint64_t lane = 0; lane < type.lanes; ++lane) {
    raw = ir_.CreateInsertElement(raw, LoadRaw(instruction, address, 1), lane);
    address = ir_.CreateGEP(ir_.getInt8Ty(), address, stride);
  }
  return FromMemory(instruction.memory, raw, type);
}

Lowering::Value Lowering::ToMemory(Memory memory, Value value, const kernel::Type& type) {
  llvm::Type* narrow = Like(ElementType(ir_, memory, type.scalar), value);
  switch (memory) {
    case Memory::kU8:
    case Memory::kS8:
    case Memory::kU16:
      return ir_.CreateTrunc(value, narrow);
    case Memory::kF16:
      return FloatToHalf(value);
    case Memory::kBf16:  // there is no such store
    case Memory::kWord:
    case Memory::kI64:
      break;
  }
  return value;
}

void Lowering::Store(const Instruction& instruction) {
  const bool strided = instruction.op == Op::kStoreStrided;
  const kernel::ValueId id = instruction.operands.at(strided ? 2 : 1);
  Value raw = ToMemory(instruction.memory, values_.at(id), program_.TypeOf(id));
  Value address = Address(instruction);
  if (!strided || Lanes(raw) == 1) {
    ir_.CreateAlignedStore(raw, address, kUnaligned);
    return;
  }
  for (std::uint64_t lane = 0; lane < Lanes(raw); ++lane) {
    ir_.CreateAlignedStore(ir_.CreateExtractElement(raw, lane), address, kUnaligned);
    address = ir_.CreateGEP(ir_.getInt8Ty(), address, Operand(instruction, 1));
  }
}

void Lowering::Prefetch(const Instruction& instruction) {
  Value address = Address(instruction);
  // For reading, data; into every level of cache or for one use.
  constexpr std::uint32_t kEveryLevel = 3, kOnce = 0;
  ir_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {address->getType()},
      {address, ir_.getInt32(0), ir_.getInt32(instruction.imm == 0 ? kEveryLevel : kOnce), ir_.getInt32(1)});
}

}  // namespace boltbeam::codegen
