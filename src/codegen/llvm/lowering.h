// Lowers one loop program to one LLVM function: void kernel(ptr buffers, i64 begin, i64 end).
//
// Vectors keep the program's number of lanes; LLVM splits what is wider than the registers. Only where an instruction
// has to be asked for by name (the dots of bytes, the byte shuffle, the rounding conversion) does the lowering split by
// itself. An intrinsic is used only when the target's features hold it, because LLVM aborts otherwise; everything else
// is an exact sequence of plain operations, and nothing may become a call into a library.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <functional>
#include <map>
#include <vector>

#include "kernel/program.h"

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace boltbeam::codegen {

/// What the target's features allow, implied ones included.
struct Isa {
  bool x86 = false, arm = false;
  bool ssse3 = false, sse41 = false, avx = false, avx2 = false, fma = false, f16c = false;
  bool avx512f = false, avx512bw = false, avx512vl = false, avx512vnni = false, avxvnni = false;
  bool dotprod = false, i8mm = false;
};

class Lowering {
 public:
  Lowering(const kernel::Program& program, const Isa& isa, llvm::Module& module, bool name_values);
  void Run();

 private:
  using Value = llvm::Value*;
  using Values = std::vector<llvm::Value*>;
  using PieceFunction = std::function<Value(const Values&)>;
  using WidthFunction = std::function<unsigned(unsigned)>;
  using Tile = std::array<const kernel::Instruction*, 4>;  // loads of words side by side in every lane's row

  // lowering.cc
  void LowerRegion(const kernel::Region& region);
  void LowerInstruction(const kernel::Instruction& instruction);
  void LowerLoop(const kernel::Instruction& instruction);
  void LowerIf(const kernel::Instruction& instruction);
  Value LowerConstant(const kernel::Instruction& instruction);
  Value LowerInteger(const kernel::Instruction& instruction);
  Value LowerFloat(const kernel::Instruction& instruction);
  Value LowerConversion(const kernel::Instruction& instruction);
  Value LowerLanes(const kernel::Instruction& instruction);
  Value Round(Value value);
  void Define(kernel::ValueId id, Value value);
  Value Operand(const kernel::Instruction& instruction, std::size_t index) const;
  llvm::Type* TypeOf(const kernel::Type& type) const;
  llvm::BasicBlock* NewBlock(const char* name);

  // memory.cc
  Value Load(const kernel::Instruction& instruction);
  void Store(const kernel::Instruction& instruction);
  void Prefetch(const kernel::Instruction& instruction);
  Value Address(const kernel::Instruction& instruction);
  Value LoadRaw(const kernel::Instruction& instruction, Value address, unsigned lanes);
  Value FromMemory(kernel::Memory memory, Value raw, const kernel::Type& type);
  Value ToMemory(kernel::Memory memory, Value value, const kernel::Type& type);

  // tiles.cc: strided loads of neighbouring words
  void FindTiles(const kernel::Region& region);
  Value LoadTiled(const kernel::Instruction& instruction);

  // halves.cc: bit patterns (i16) to f32 and, for f16, back
  Value HalfToFloat(Value bits);
  Value FloatToHalf(Value value);
  Value Bfloat16ToFloat(Value bits);

  // bytes.cc: operations inside a word
  Value Dot4(Value sum, Value a, Value b);
  Value Dot4Signed(Value sum, Value a, Value b);
  Value SignedDot(Value sum, Value a, Value b);
  Value EvenBytes(Value words, bool is_signed);
  Value OddBytes(Value words, bool is_signed);
  Value MaddBytes(Value a, Value b);
  Value MaddHalves(Value a, Value b);
  Value AddHalves(Value a, Value b);
  Value Table16(Value indices, const std::vector<std::int32_t>& table);
  Value Table16Generic(Value indices, const std::vector<std::int32_t>& table);
  Value FloatToInt(Value value);
  Value InPieces(const Values& operands, const WidthFunction& width, const PieceFunction& piece);
  Value AsVector(Value value, unsigned lanes);
  Value AsBytes(Value words);
  Value AsHalves(Value words);
  Value AsWords(Value value);

  static unsigned Lanes(Value value);
  llvm::Type* WithLanes(llvm::Type* scalar, unsigned lanes) const;
  llvm::Type* Like(llvm::Type* scalar, Value value) const { return WithLanes(scalar, Lanes(value)); }
  Value Bits(Value like, std::uint64_t bits) const { return llvm::ConstantInt::get(like->getType(), bits); }

  const kernel::Program& program_;
  const Isa& isa_;
  llvm::Module& module_;
  llvm::IRBuilder<> ir_;
  bool name_values_;
  llvm::Function* function_ = nullptr;
  Values buffers_;
  Values values_;                             // by ValueId
  std::map<kernel::ValueId, Tile> tiles_;     // by each strided load that is one of a tile
  std::map<kernel::ValueId, Value> untiled_;  // what a tile's loads come to, once it is loaded
};

}  // namespace boltbeam::codegen
