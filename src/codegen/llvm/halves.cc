// 16-bit floating point, with the machine's own conversion where it has one and integer arithmetic where it has not:
// LLVM would call a support library there.
#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/lowering.h"

namespace boltbeam::codegen {
namespace {

constexpr std::uint64_t kFloatInfinity = 0x7f800000;
constexpr std::uint64_t kExponentShift = 112ULL << 23;  // between the biases of the two formats, 127 - 15

}  // namespace

Lowering::Value Lowering::HalfToFloat(Value bits) {
  llvm::Type* floats = Like(ir_.getFloatTy(), bits);
  if (isa_.f16c || isa_.arm) {
    return ir_.CreateFPExt(ir_.CreateBitCast(bits, Like(ir_.getHalfTy(), bits)), floats);
  }
  Value wide = ir_.CreateZExt(bits, Like(ir_.getInt32Ty(), bits));
  Value sign = ir_.CreateShl(ir_.CreateAnd(wide, Bits(wide, 0x8000)), Bits(wide, 16));
  Value magnitude = ir_.CreateShl(ir_.CreateAnd(wide, Bits(wide, 0x7fff)), Bits(wide, 13));
  Value normal = ir_.CreateAdd(magnitude, Bits(wide, kExponentShift));
  Value special = ir_.CreateOr(magnitude, Bits(wide, kFloatInfinity));
  // A subnormal half is an integer times 2^-24: as the fraction of 2^-14 it is exact, and 2^-14 is taken off again.
  Value least = ir_.CreateBitCast(Bits(wide, 113ULL << 23), floats);
  Value subnormal = ir_.CreateAdd(magnitude, Bits(wide, 113ULL << 23));
  subnormal = ir_.CreateBitCast(ir_.CreateFSub(ir_.CreateBitCast(subnormal, floats), least), wide->getType());
  Value result = ir_.CreateSelect(ir_.CreateICmpSLT(magnitude, Bits(wide, 0x0400ULL << 13)), subnormal, normal);
  result = ir_.CreateSelect(ir_.CreateICmpSGE(magnitude, Bits(wide, 0x7c00ULL << 13)), special, result);
  return ir_.CreateBitCast(ir_.CreateOr(result, sign), floats);
}

Lowering::Value Lowering::FloatToHalf(Value value) {
  if (isa_.f16c || isa_.arm) {
    Value half = ir_.CreateFPTrunc(value, Like(ir_.getHalfTy(), value));
    return ir_.CreateBitCast(half, Like(ir_.getInt16Ty(), value));
  }
  Value bits = ir_.CreateBitCast(value, Like(ir_.getInt32Ty(), value));
  Value sign = ir_.CreateAnd(ir_.CreateLShr(bits, Bits(bits, 16)), Bits(bits, 0x8000));
  Value magnitude = ir_.CreateAnd(bits, Bits(bits, 0x7fffffff));
  // Normal: rounds by adding just under half a unit, and the last bit kept; a carry runs into the exponent as it
  // should.
  Value odd = ir_.CreateAnd(ir_.CreateLShr(magnitude, Bits(bits, 13)), Bits(bits, 1));
  Value normal = ir_.CreateAdd(ir_.CreateSub(magnitude, Bits(bits, kExponentShift - 0xfff)), odd);
  normal = ir_.CreateLShr(normal, Bits(bits, 13));
  // Subnormal: the unit of 0.5 in a float is 2^-24, the unit of the result, so an addition rounds.
  llvm::Constant* half = llvm::ConstantFP::get(value->getType(), 0.5);
  Value small = ir_.CreateFAdd(ir_.CreateBitCast(magnitude, value->getType()), half);
  small = ir_.CreateSub(ir_.CreateBitCast(small, bits->getType()), Bits(bits, 0x3f000000));
  Value is_nan = ir_.CreateICmpSGT(magnitude, Bits(bits, kFloatInfinity));
  Value large = ir_.CreateSelect(is_nan, Bits(bits, 0x7e00), Bits(bits, 0x7c00));
  Value result = ir_.CreateSelect(ir_.CreateICmpSLT(magnitude, Bits(bits, 113ULL << 23)), small, normal);
  result = ir_.CreateSelect(ir_.CreateICmpSGE(magnitude, Bits(bits, 143ULL << 23)), large, result);  // from 65536 on
  return ir_.CreateTrunc(ir_.CreateOr(result, sign), Like(ir_.getInt16Ty(), value));
}

Lowering::Value Lowering::Bfloat16ToFloat(Value bits) {
  Value wide = ir_.CreateZExt(bits, Like(ir_.getInt32Ty(), bits));
  return ir_.CreateBitCast(ir_.CreateShl(wide, Bits(wide, 16)), Like(ir_.getFloatTy(), bits));
}

}  // namespace boltbeam::codegen
