// The walk over the program, and the operations that are one operation of LLVM's.
#include "codegen/llvm/lowering.h"

#include <fmt/format.h>
#include <llvm/IR/Intrinsics.h>

namespace boltbeam::codegen {

using kernel::Instruction;
using kernel::Op;
using kernel::Region;
using kernel::Scalar;

Lowering::Lowering(const kernel::Program& program, const Isa& isa, llvm::Module& module, bool name_values)
    : program_(program), isa_(isa), module_(module), ir_(module.getContext()), name_values_(name_values) {
  values_.resize(program.types.size());
}

void Lowering::Run() {
  llvm::Type* pointer = ir_.getPtrTy();
  auto* type = llvm::FunctionType::get(ir_.getVoidTy(), {pointer, ir_.getInt64Ty(), ir_.getInt64Ty()}, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "kernel", module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr("no-builtins");
  function_->getArg(0)->setName("buffers");
  function_->getArg(1)->setName("begin");
  function_->getArg(2)->setName("end");
  ir_.SetInsertPoint(NewBlock("entry"));
  for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
    Value slot = ir_.CreateConstInBoundsGEP1_64(pointer, function_->getArg(0), i);
    auto* load = ir_.CreateLoad(pointer, slot, name_values_ ? program_.buffers[i].name : "");
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module_.getContext(), {}));
    buffers_.push_back(load);
  }
  LowerRegion(program_.body);
  ir_.CreateRetVoid();
}

llvm::BasicBlock* Lowering::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(module_.getContext(), name, function_);
}

llvm::Type* Lowering::WithLanes(llvm::Type* scalar, unsigned lanes) const {
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
}

llvm::Type* Lowering::TypeOf(const kernel::Type& type) const {
  llvm::LLVMContext& context = module_.getContext();
  switch (type.scalar) {
    case Scalar::kF32:
      return WithLanes(llvm::Type::getFloatTy(context), type.lanes);
    case Scalar::kI64:
      return WithLanes(llvm::Type::getInt64Ty(context), type.lanes);
    case Scalar::kI32:
      break;
  }
  return WithLanes(llvm::Type::getInt32Ty(context), type.lanes);
}

unsigned Lowering::Lanes(Value value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector == nullptr ? 1 : vector->getNumElements();
}

void Lowering::Define(kernel::ValueId id, Value value) {
  if (name_values_ && !llvm::isa<llvm::Constant>(value) && !value->hasName()) value->setName(fmt::format("v{}", id));
  values_.at(id) = value;
}

Lowering::Value Lowering::Operand(const Instruction& instruction, std::size_t index) const {
  return values_.at(instruction.operands.at(index));
}

void Lowering::LowerRegion(const Region& region) {
  FindTiles(region);
  for (const Instruction& instruction : region.code) LowerInstruction(instruction);
}

void Lowering::LowerInstruction(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kStore:
    case Op::kStoreStrided:
      return Store(instruction);
    case Op::kPrefetch:
      return Prefetch(instruction);
    case Op::kLoop:
      return LowerLoop(instruction);
    case Op::kIf:
      return LowerIf(instruction);
    default:
      break;
  }
  Value result = nullptr;
  if (instruction.op <= Op::kEnd) {
    result = LowerConstant(instruction);
  } else if (instruction.op <= Op::kPrefetch) {
    result = Load(instruction);
  } else if (instruction.op <= Op::kDivU) {
    result = LowerInteger(instruction);
  } else if (instruction.op <= Op::kFRound) {
    result = LowerFloat(instruction);
  } else if (instruction.op <= Op::kSelect) {
    result = LowerConversion(instruction);
  } else {
    result = LowerLanes(instruction);
  }
  Define(instruction.results.at(0), result);
}

/// Tested before the first turn and at the end of each: one branch per turn.
void Lowering::LowerLoop(const Instruction& instruction) {
  const Region& body = instruction.body.at(0);
  Value begin = Operand(instruction, 0);
  Value end = Operand(instruction, 1);
  Value step = Operand(instruction, 2);
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  llvm::BasicBlock* turn = NewBlock("loop");
  llvm::BasicBlock* after = NewBlock("done");
  ir_.CreateCondBr(ir_.CreateICmpSLT(begin, end), turn, after);

  ir_.SetInsertPoint(turn);
  auto* counter = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  counter->addIncoming(begin, before);
  Define(body.arguments.at(0), counter);
  std::vector<llvm::PHINode*> carried;
  for (std::size_t i = 1; i < body.arguments.size(); ++i) {
    Value initial = Operand(instruction, i + 2);
    carried.push_back(ir_.CreatePHI(initial->getType(), 2));
    carried.back()->addIncoming(initial, before);
    Define(body.arguments[i], carried.back());
  }
  LowerRegion(body);
  llvm::BasicBlock* last = ir_.GetInsertBlock();
  Value next = ir_.CreateAdd(counter, step);
  counter->addIncoming(next, last);
  for (std::size_t i = 0; i < carried.size(); ++i) carried[i]->addIncoming(values_.at(body.yields.at(i)), last);
  ir_.CreateCondBr(ir_.CreateICmpSLT(next, end), turn, after);

  after->moveAfter(last);
  ir_.SetInsertPoint(after);
  for (std::size_t i = 0; i < carried.size(); ++i) {
    auto* result = ir_.CreatePHI(carried[i]->getType(), 2);
    result->addIncoming(Operand(instruction, i + 3), before);
    result->addIncoming(values_.at(body.yields.at(i)), last);
    Define(instruction.results.at(i), result);
  }
}

void Lowering::LowerIf(const Instruction& instruction) {
  Value condition = Operand(instruction, 0);
  llvm::BasicBlock* then = NewBlock("then");
  llvm::BasicBlock* after = NewBlock("fi");
  ir_.CreateCondBr(ir_.CreateICmpNE(condition, Bits(condition, 0)), then, after);
  ir_.SetInsertPoint(then);
  LowerRegion(instruction.body.at(0));
  after->moveAfter(ir_.GetInsertBlock());
  ir_.CreateBr(after);
  ir_.SetInsertPoint(after);
}

Lowering::Value Lowering::LowerConstant(const Instruction& instruction) {
  const kernel::Type& type = instruction.type;
  switch (instruction.op) {
    case Op::kBegin:
      return function_->getArg(1);
    case Op::kEnd:
      return function_->getArg(2);
    case Op::kLaneIndex: {
      if (type.lanes == 1) return ir_.getInt32(0);
      std::vector<llvm::Constant*> lanes;
      for (std::uint32_t i = 0; i < type.lanes; ++i) lanes.push_back(ir_.getInt32(i));
      return llvm::ConstantVector::get(lanes);
    }
    default:
      break;
  }
  if (type.scalar == Scalar::kI64) return ir_.getInt64(instruction.imm);
  const auto word = static_cast<std::uint32_t>(instruction.imm);
  if (type.scalar == Scalar::kI32) return llvm::ConstantInt::get(TypeOf(type), word);
  return llvm::ConstantFP::get(TypeOf(type), llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, word)));
}

Lowering::Value Lowering::LowerInteger(const Instruction& instruction) {
  Value a = Operand(instruction, 0);
  Value b = Operand(instruction, 1);
  switch (instruction.op) {
    case Op::kAdd:
      return ir_.CreateAdd(a, b);
    case Op::kSub:
      return ir_.CreateSub(a, b);
    case Op::kMul:
      return ir_.CreateMul(a, b);
    case Op::kAnd:
      return ir_.CreateAnd(a, b);
    case Op::kOr:
      return ir_.CreateOr(a, b);
    case Op::kXor:
      return ir_.CreateXor(a, b);
    case Op::kShl:
      return ir_.CreateShl(a, b);
    case Op::kShr:
      return ir_.CreateLShr(a, b);
    case Op::kSar:
      return ir_.CreateAShr(a, b);
    case Op::kMin:
      return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
    case Op::kMax:
      return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
    default:  // kDivU
      return ir_.CreateUDiv(a, b);
  }
}

Lowering::Value Lowering::LowerFloat(const Instruction& instruction) {
  Value a = Operand(instruction, 0);
  Value b = instruction.operands.size() > 1 ? Operand(instruction, 1) : nullptr;
  switch (instruction.op) {
    case Op::kFAdd:
      return ir_.CreateFAdd(a, b);
    case Op::kFSub:
      return ir_.CreateFSub(a, b);
    case Op::kFMul:
      return ir_.CreateFMul(a, b);
    case Op::kFDiv:
      return ir_.CreateFDiv(a, b);
    case Op::kFma:
      // Without the instruction LLVM would call fmaf of the C library.
      if (!isa_.fma) return ir_.CreateFAdd(ir_.CreateFMul(a, b), Operand(instruction, 2));
      return ir_.CreateIntrinsic(a->getType(), llvm::Intrinsic::fma, {a, b, Operand(instruction, 2)});
    case Op::kFMin:
      return ir_.CreateSelect(ir_.CreateFCmpOLT(a, b), a, b);
    case Op::kFMax:
      return ir_.CreateSelect(ir_.CreateFCmpOGT(a, b), a, b);
    case Op::kFSqrt:
      return ir_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Op::kFAbs:
      return ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
    default:  // kFRound
      return Round(a);
  }
}

Lowering::Value Lowering::Round(Value value) {
  if (isa_.sse41 || isa_.arm) return ir_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, value);
  // Adding 2^23 leaves no bits behind the point; from there on a float is an integer already.
  llvm::Constant* limit = llvm::ConstantFP::get(value->getType(), 8388608.0);
  Value magic = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, limit, value);
  Value rounded = ir_.CreateFSub(ir_.CreateFAdd(value, magic), magic);
  rounded = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rounded, value);  // keeps -0
  Value small = ir_.CreateFCmpOLT(ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value), limit);
  return ir_.CreateSelect(small, rounded, value);
}

Lowering::Value Lowering::LowerConversion(const Instruction& instruction) {
  Value a = Operand(instruction, 0);
  llvm::Type* type = TypeOf(instruction.type);
  switch (instruction.op) {
    case Op::kI32ToF32:
      return ir_.CreateSIToFP(a, type);
    case Op::kF32ToI32:
      return FloatToInt(a);
    case Op::kBitcast:
      return ir_.CreateBitCast(a, type);
    case Op::kWiden:
      return ir_.CreateSExt(a, type);
    case Op::kNarrow:
      return ir_.CreateTrunc(a, type);
    case Op::kLess:
      return ir_.CreateSExt(ir_.CreateICmpSLT(a, Operand(instruction, 1)), type);
    case Op::kFLess:
      return ir_.CreateSExt(ir_.CreateFCmpOLT(a, Operand(instruction, 1)), type);
    default:  // kSelect
      return ir_.CreateSelect(ir_.CreateICmpSLT(a, Bits(a, 0)), Operand(instruction, 1), Operand(instruction, 2));
  }
}

Lowering::Value Lowering::LowerLanes(const Instruction& instruction) {
  Value a = Operand(instruction, 0);
  switch (instruction.op) {
    case Op::kDot4:
      return Dot4(a, Operand(instruction, 1), Operand(instruction, 2));
    case Op::kDot4Signed:
      return Dot4Signed(a, Operand(instruction, 1), Operand(instruction, 2));
    case Op::kMaddBytes:
      return MaddBytes(a, Operand(instruction, 1));
    case Op::kMaddHalves:
      return MaddHalves(a, Operand(instruction, 1));
    case Op::kAddHalves:
      return AddHalves(a, Operand(instruction, 1));
    case Op::kTable16:
      return Table16(a, instruction.table);
    case Op::kShuffle: {
      const std::vector<int> lanes(instruction.table.begin(), instruction.table.end());
      Value vector = AsVector(a, Lanes(a));
      Value shuffled = ir_.CreateShuffleVector(vector, lanes);
      return lanes.size() == 1 ? ir_.CreateExtractElement(shuffled, std::uint64_t{0}) : shuffled;
    }
    case Op::kExtract:
      return Lanes(a) == 1 ? a : ir_.CreateExtractElement(a, instruction.imm);
    default:  // kSplat
      return instruction.type.lanes == 1 ? a : ir_.CreateVectorSplat(instruction.type.lanes, a);
  }
}

}  // namespace boltbeam::codegen
