// Strided loads of words that lie side by side: four words of a row are one load, and what a lane each would have been
// inserted for is a transposition of four by four, in every 128 bits of the registers alike.
#include <tuple>

#include "codegen/llvm/lowering.h"

namespace boltbeam::codegen {
namespace {

using kernel::Instruction;
using kernel::Memory;
using kernel::Op;

constexpr std::int64_t kWordBytes = 4;
constexpr unsigned kTile = 4;  // words, and rows

/// Nothing that is stored in between may change what is loaded ahead: the buffer is only read.
bool CanBeTiled(const kernel::Program& program, const Instruction& instruction) {
  return instruction.op == Op::kLoadStrided && instruction.memory == Memory::kWord && !instruction.ordered &&
         instruction.type.lanes % kTile == 0 && !program.buffers[instruction.buffer].written;
}

/// For every 128 bits of two vectors: the lanes that `pattern` names, 4 to 7 those of the second.
std::vector<int> InEveryTile(unsigned lanes, const std::array<unsigned, kTile>& pattern) {
  std::vector<int> mask;
  for (unsigned tile = 0; tile < lanes; tile += kTile) {
    for (const unsigned lane : pattern) {
      mask.push_back(static_cast<int>(lane < kTile ? tile + lane : lanes + tile + lane - kTile));
    }
  }
  return mask;
}

}  // namespace

/// Only bytes that the program reads are read: every word of a tile is loaded by it. The last tile of a row of words
/// may overlap the one before.
void Lowering::FindTiles(const kernel::Region& region) {
  using Key = std::tuple<std::uint32_t, kernel::ValueId, kernel::ValueId, kernel::Scalar, std::uint16_t>;
  std::map<Key, std::map<std::int64_t, const Instruction*>> rows;
  for (const Instruction& load : region.code) {
    if (!CanBeTiled(program_, load)) continue;
    const Key key{load.buffer, load.operands.at(0), load.operands.at(1), load.type.scalar, load.type.lanes};
    rows[key].try_emplace(load.offset, &load);
  }
  for (const auto& [key, words] : rows) {
    std::vector<const Instruction*> run;
    for (const auto& [offset, load] : words) {
      if (!run.empty() && run.back()->offset + kWordBytes != offset) run.clear();
      run.push_back(load);
      const bool ends = !words.contains(offset + kWordBytes);
      if (run.size() < kTile || (run.size() % kTile != 0 && !ends)) continue;
      Tile tile;
      std::copy(run.end() - kTile, run.end(), tile.begin());
      for (const Instruction* one : tile) tiles_.try_emplace(one->results.at(0), tile);
    }
  }
}

Lowering::Value Lowering::LoadTiled(const Instruction& instruction) {
  const kernel::ValueId id = instruction.results.at(0);
  if (const auto found = untiled_.find(id); found != untiled_.end()) return found->second;
  const Tile& tile = tiles_.at(id);
  const unsigned lanes = instruction.type.lanes;
  llvm::Type* type = TypeOf(instruction.type);
  Value address = Address(*tile.front());
  Values rows(kTile, llvm::PoisonValue::get(type));  // row i of every four, as four words
  for (unsigned lane = 0; lane < lanes; ++lane) {
    Value words = LoadRaw(instruction, address, kTile);
    Value& row = rows[lane % kTile];
    row = lanes == kTile ? words : ir_.CreateInsertVector(type, row, words, ir_.getInt64(lane - lane % kTile));
    address = ir_.CreateGEP(ir_.getInt8Ty(), address, Operand(instruction, 1));
  }
  const auto pick = [&](Value a, Value b, const std::array<unsigned, kTile>& pattern) {
    return ir_.CreateShuffleVector(a, b, InEveryTile(lanes, pattern));
  };
  for (unsigned half = 0; half < kTile; half += 2) {  // words 0 and 1, 2 and 3
    const std::array<unsigned, kTile> interleaved{half, kTile + half, half + 1, kTile + half + 1};
    Value first = pick(rows[0], rows[1], interleaved);
    Value second = pick(rows[2], rows[3], interleaved);
    untiled_.try_emplace(tile[half]->results.at(0), pick(first, second, {0, 1, 4, 5}));
    untiled_.try_emplace(tile[half + 1]->results.at(0), pick(first, second, {2, 3, 6, 7}));
  }
  return untiled_.at(id);
}

}  // namespace boltbeam::codegen
