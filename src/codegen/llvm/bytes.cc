// Bytes and halves inside a word. Each operation is the machine's own instruction at the widths that the target has,
// and otherwise an exact sequence.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <numeric>

#include "codegen/llvm/lowering.h"

namespace boltbeam::codegen {
namespace {

namespace Intrinsic = llvm::Intrinsic;

/// The widest piece, in words, for what remains: a register no wider than needed.
unsigned Widest(unsigned remaining, bool words16, bool words8, bool words4) {
  if (words16 && (remaining > 8 || (!words8 && !words4))) return 16;
  if (words8 && (remaining > 4 || !words4)) return 8;
  return 4;
}

Intrinsic::ID ByWidth(unsigned words, Intrinsic::ID of4, Intrinsic::ID of8, Intrinsic::ID of16) {
  return words == 16 ? of16 : words == 8 ? of8 : of4;
}

}  // namespace

/// A scalar as a vector of one lane, or a vector widened or cut to `lanes`; new lanes are 0.
Lowering::Value Lowering::AsVector(Value value, unsigned lanes) {
  if (!value->getType()->isVectorTy()) {
    Value zero = llvm::Constant::getNullValue(llvm::FixedVectorType::get(value->getType(), lanes));
    return ir_.CreateInsertElement(zero, value, std::uint64_t{0});
  }
  const unsigned have = Lanes(value);
  if (have == lanes) return value;
  std::vector<int> mask(lanes);
  for (unsigned i = 0; i < lanes; ++i) mask[i] = static_cast<int>(std::min(i, have));
  return ir_.CreateShuffleVector(value, llvm::Constant::getNullValue(value->getType()), mask);
}

/// Applies `piece` to parts of the operands that `width` says are of the machine's size. All operands and the result
/// have the same number of 32-bit lanes.
Lowering::Value Lowering::InPieces(const Values& operands, const WidthFunction& width, const PieceFunction& piece) {
  const unsigned lanes = Lanes(operands.at(0));
  Values vectors;
  for (Value operand : operands) vectors.push_back(AsVector(operand, lanes));
  llvm::SmallVector<Value, 8> results;
  unsigned done = 0;
  while (done < lanes) {
    const unsigned words = width(lanes - done);
    Values parts;
    for (Value vector : vectors) {
      std::vector<int> mask(words);
      for (unsigned i = 0; i < words; ++i) mask[i] = static_cast<int>(std::min(done + i, lanes));
      const bool whole = done == 0 && words == lanes;
      parts.push_back(whole ? vector
                            : ir_.CreateShuffleVector(vector, llvm::Constant::getNullValue(vector->getType()), mask));
    }
    results.push_back(piece(parts));
    done += words;
  }
  // Pieces only get narrower, which is what the joining needs.
  Value joined = results.size() == 1 ? results[0] : llvm::concatenateVectors(ir_, results);
  if (!operands.at(0)->getType()->isVectorTy()) return ir_.CreateExtractElement(joined, std::uint64_t{0});
  return AsVector(joined, lanes);
}

Lowering::Value Lowering::AsBytes(Value words) {
  return ir_.CreateBitCast(words, llvm::FixedVectorType::get(ir_.getInt8Ty(), Lanes(words) * 4));
}

Lowering::Value Lowering::AsHalves(Value words) {
  return ir_.CreateBitCast(words, llvm::FixedVectorType::get(ir_.getInt16Ty(), Lanes(words) * 2));
}

Lowering::Value Lowering::AsWords(Value value) {
  const auto bits = static_cast<unsigned>(value->getType()->getPrimitiveSizeInBits().getFixedValue());
  return ir_.CreateBitCast(value, WithLanes(ir_.getInt32Ty(), bits / 32));
}

/// Bytes 0 and 2 of every word as its two halves.
Lowering::Value Lowering::EvenBytes(Value words, bool is_signed) {
  if (!is_signed) return ir_.CreateAnd(words, Bits(words, 0x00ff00ff));
  Value halves = AsHalves(words);
  Value eight = Bits(halves, 8);
  return ir_.CreateBitCast(ir_.CreateAShr(ir_.CreateShl(halves, eight), eight), words->getType());
}

/// Bytes 1 and 3.
Lowering::Value Lowering::OddBytes(Value words, bool is_signed) {
  Value halves = AsHalves(words);
  Value eight = Bits(halves, 8);
  Value shifted = is_signed ? ir_.CreateAShr(halves, eight) : ir_.CreateLShr(halves, eight);
  return ir_.CreateBitCast(shifted, words->getType());
}

Lowering::Value Lowering::Dot4(Value sum, Value a, Value b) {
  const bool words16 = isa_.avx512vnni;
  const bool words8 = (isa_.avx512vnni && isa_.avx512vl) || isa_.avxvnni;
  if (words16 || words8) {
    return InPieces(
        {sum, a, b}, [&](unsigned left) { return Widest(left, words16, words8, words8); },
        [&](const Values& v) -> Value {
          const Intrinsic::ID id = ByWidth(Lanes(v[0]), Intrinsic::x86_avx512_vpdpbusd_128,
                                           Intrinsic::x86_avx512_vpdpbusd_256, Intrinsic::x86_avx512_vpdpbusd_512);
          return ir_.CreateIntrinsic(id, {}, {v[0], v[1], v[2]});
        });
  }
  if (isa_.i8mm) {
    return InPieces(
        {sum, a, b}, [](unsigned) { return 4U; },
        [&](const Values& v) -> Value {
          return ir_.CreateIntrinsic(Intrinsic::aarch64_neon_usdot, {v[0]->getType(), AsBytes(v[1])->getType()},
                                     {v[0], AsBytes(v[1]), AsBytes(v[2])});
        });
  }
  if (isa_.dotprod) {
    // a = (a - 128) + 64 + 64, each within a signed byte.
    Value half = Bits(a, 0x40404040);
    return SignedDot(SignedDot(SignedDot(sum, ir_.CreateXor(a, Bits(a, 0x80808080)), b), half, b), half, b);
  }
  // Even and odd bytes as halves: two products of each word add up without overflow.
  sum = ir_.CreateAdd(sum, MaddHalves(EvenBytes(a, false), EvenBytes(b, true)));
  return ir_.CreateAdd(sum, MaddHalves(OddBytes(a, false), OddBytes(b, true)));
}

Lowering::Value Lowering::Dot4Signed(Value sum, Value a, Value b) {
  if (isa_.dotprod) return SignedDot(sum, a, b);
  sum = ir_.CreateAdd(sum, MaddHalves(EvenBytes(a, true), EvenBytes(b, true)));
  return ir_.CreateAdd(sum, MaddHalves(OddBytes(a, true), OddBytes(b, true)));
}

Lowering::Value Lowering::SignedDot(Value sum, Value a, Value b) {
  return InPieces(
      {sum, a, b}, [](unsigned) { return 4U; },
      [&](const Values& v) -> Value {
        return ir_.CreateIntrinsic(Intrinsic::aarch64_neon_sdot, {v[0]->getType(), AsBytes(v[1])->getType()},
                                   {v[0], AsBytes(v[1]), AsBytes(v[2])});
      });
}

Lowering::Value Lowering::MaddBytes(Value a, Value b) {
  if (isa_.ssse3) {
    return InPieces(
        {a, b}, [&](unsigned left) { return Widest(left, isa_.avx512bw, isa_.avx2, true); },
        [&](const Values& v) -> Value {
          const Intrinsic::ID id = ByWidth(Lanes(v[0]), Intrinsic::x86_ssse3_pmadd_ub_sw_128,
                                           Intrinsic::x86_avx2_pmadd_ub_sw, Intrinsic::x86_avx512_pmaddubs_w_512);
          return AsWords(ir_.CreateIntrinsic(id, {}, {AsBytes(v[0]), AsBytes(v[1])}));
        });
  }
  // The product of an unsigned and a signed byte fits a signed half; only the sum of two saturates.
  Value unsigned_halves = AsHalves(a);
  Value signed_halves = AsHalves(b);
  Value eight = Bits(signed_halves, 8);
  Value even = ir_.CreateMul(ir_.CreateAnd(unsigned_halves, Bits(unsigned_halves, 0xff)),
                             ir_.CreateAShr(ir_.CreateShl(signed_halves, eight), eight));
  Value odd = ir_.CreateMul(ir_.CreateLShr(unsigned_halves, eight), ir_.CreateAShr(signed_halves, eight));
  return ir_.CreateBitCast(ir_.CreateBinaryIntrinsic(Intrinsic::sadd_sat, even, odd), a->getType());
}

Lowering::Value Lowering::MaddHalves(Value a, Value b) {
  if (isa_.x86) {  // the narrowest form belongs to every 64-bit x86
    return InPieces(
        {a, b}, [&](unsigned left) { return Widest(left, isa_.avx512bw, isa_.avx2, true); },
        [&](const Values& v) -> Value {
          const Intrinsic::ID id = ByWidth(Lanes(v[0]), Intrinsic::x86_sse2_pmadd_wd, Intrinsic::x86_avx2_pmadd_wd,
                                           Intrinsic::x86_avx512_pmaddw_d_512);
          return ir_.CreateIntrinsic(id, {}, {AsHalves(v[0]), AsHalves(v[1])});
        });
  }
  return InPieces(
      {a, b}, [](unsigned) { return 4U; },
      [&](const Values& v) -> Value {
        // By name: LLVM would multiply whole words where it knows that the upper halves are zero.
        const auto products = [&](bool upper) {
          const std::vector<int> mask = upper ? std::vector{4, 5, 6, 7} : std::vector{0, 1, 2, 3};
          return ir_.CreateIntrinsic(
              Intrinsic::aarch64_neon_smull, {v[0]->getType()},
              {ir_.CreateShuffleVector(AsHalves(v[0]), mask), ir_.CreateShuffleVector(AsHalves(v[1]), mask)});
        };
        return ir_.CreateIntrinsic(Intrinsic::aarch64_neon_addp, {v[0]->getType()}, {products(false), products(true)});
      });
}

Lowering::Value Lowering::AddHalves(Value a, Value b) {
  return ir_.CreateBitCast(ir_.CreateAdd(AsHalves(a), AsHalves(b)), a->getType());
}

Lowering::Value Lowering::Table16(Value indices, const std::vector<std::int32_t>& table) {
  if (!isa_.ssse3 && !isa_.arm) return Table16Generic(indices, table);
  return InPieces(
      {indices}, [&](unsigned left) { return isa_.arm ? 4U : Widest(left, isa_.avx512bw, isa_.avx2, true); },
      [&](const Values& v) -> Value {
        std::vector<llvm::Constant*> bytes;  // the instruction looks within each 128 bits
        for (unsigned i = 0; i < Lanes(v[0]) * 4; ++i) {
          bytes.push_back(ir_.getInt8(static_cast<std::uint8_t>(table.at(i % 16))));
        }
        Value values = llvm::ConstantVector::get(bytes);
        Value at = AsBytes(v[0]);
        if (isa_.arm) {
          return AsWords(ir_.CreateIntrinsic(Intrinsic::aarch64_neon_tbl1, {at->getType()}, {values, at}));
        }
        const Intrinsic::ID id = ByWidth(Lanes(v[0]), Intrinsic::x86_ssse3_pshuf_b_128, Intrinsic::x86_avx2_pshuf_b,
                                         Intrinsic::x86_avx512_pshuf_b_512);
        return AsWords(ir_.CreateIntrinsic(id, {}, {values, at}));
      });
}

/// A tree of choices, one level for each bit of the index; a choice between x and y is x ^ (mask & (x ^ y)).
Lowering::Value Lowering::Table16Generic(Value indices, const std::vector<std::int32_t>& table) {
  Values level;
  for (const std::int32_t byte : table) {
    level.push_back(Bits(indices, static_cast<std::uint32_t>(byte & 0xff) * 0x01010101U));
  }
  for (unsigned bit = 0; bit < 4; ++bit) {
    // All ones in each byte whose index has the bit: (0 or 1) * 255, which never carries into the next byte.
    Value ones = ir_.CreateAnd(ir_.CreateLShr(indices, Bits(indices, bit)), Bits(indices, 0x01010101));
    Value mask = ir_.CreateSub(ir_.CreateShl(ones, Bits(indices, 8)), ones);
    Values next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
      next.push_back(ir_.CreateXor(level[i], ir_.CreateAnd(mask, ir_.CreateXor(level[i], level[i + 1]))));
    }
    level = std::move(next);
  }
  return level.at(0);
}

Lowering::Value Lowering::FloatToInt(Value value) {
  if (!isa_.x86) {
    Value rounded = ir_.CreateUnaryIntrinsic(Intrinsic::roundeven, value);
    llvm::Type* words = Like(ir_.getInt32Ty(), value);
    return ir_.CreateIntrinsic(Intrinsic::fptosi_sat, {words, value->getType()}, {rounded});
  }
  return InPieces(
      {value}, [&](unsigned left) { return Widest(left, isa_.avx512f, isa_.avx, true); },
      [&](const Values& v) -> Value {
        if (Lanes(v[0]) == 16) {
          llvm::Type* words = WithLanes(ir_.getInt32Ty(), 16);
          constexpr std::uint32_t kCurrentRounding = 4;  // the default of a process: to nearest, ties to even
          return ir_.CreateIntrinsic(
              Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
              {v[0], llvm::PoisonValue::get(words), ir_.getInt16(0xffff), ir_.getInt32(kCurrentRounding)});
        }
        const Intrinsic::ID id = Lanes(v[0]) == 8 ? Intrinsic::x86_avx_cvt_ps2dq_256 : Intrinsic::x86_sse2_cvtps2dq;
        return ir_.CreateIntrinsic(id, {}, {v[0]});
      });
}

}  // namespace boltbeam::codegen
