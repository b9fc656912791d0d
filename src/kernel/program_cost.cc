#include "kernel/program_cost.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace boltbeam::kernel {
namespace {

double BytesOf(const Type& type, Memory memory) {
  switch (memory) {
    case Memory::kU8:
    case Memory::kS8:
      return type.lanes;
    case Memory::kU16:
    case Memory::kF16:
    case Memory::kBf16:
      return 2.0 * type.lanes;
    case Memory::kWord:
      return 4.0 * type.lanes;
    case Memory::kI64:
      return 8.0 * type.lanes;
  }
  return 0;
}

class Counter {
 public:
  Counter(const Program& program, std::int64_t begin, std::int64_t end)
      : program_(program), begin_(begin), end_(end), known_(program.types.size()) {}

  ProgramCost Count() {
    Walk(program_.body, 1);
    return cost_;
  }

 private:
  using Known = std::optional<std::int64_t>;

  [[nodiscard]] Known Of(const Instruction& instruction, std::size_t operand) const {
    return known_[instruction.operands[operand]];
  }

  [[nodiscard]] Known Evaluate(const Instruction& instruction) const {
    switch (instruction.op) {
      case Op::kConstant:
        return static_cast<std::int64_t>(instruction.imm);
      case Op::kBegin:
        return begin_;
      case Op::kEnd:
        return end_;
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
      case Op::kMin:
      case Op::kMax:
      case Op::kDivU:
        return Combine(instruction.op, Of(instruction, 0), Of(instruction, 1));
      default:
        return std::nullopt;
    }
  }

  static Known Combine(Op op, Known a, Known b) {
    if (!a || !b) return std::nullopt;
    switch (op) {
      case Op::kAdd:
        return *a + *b;
      case Op::kSub:
        return *a - *b;
      case Op::kMul:
        return *a * *b;
      case Op::kMin:
        return std::min(*a, *b);
      case Op::kMax:
        return std::max(*a, *b);
      default:
        return *b > 0 ? Known(*a / *b) : std::nullopt;
    }
  }

  /// Turns of a loop, and its counter's first value.
  [[nodiscard]] double Turns(const Instruction& loop) const {
    const Known from = Of(loop, 0), to = Of(loop, 1), step = Of(loop, 2);
    if (!from || !to || !step || *step <= 0) return 1;
    return *to <= *from ? 0 : static_cast<double>((*to - *from + *step - 1) / *step);
  }

  void Walk(const Region& region, double times) {
    for (const Instruction& instruction : region.code) {
      if (instruction.op == Op::kLoop) {
        Region const& body = instruction.body.front();
        known_[body.arguments.front()] = Of(instruction, 0);
        Walk(body, times * Turns(instruction));
        continue;
      }
      if (instruction.op == Op::kIf) {
        Walk(instruction.body.front(), times);
        continue;
      }
      Add(instruction, times);
      const bool is_scalar = !instruction.results.empty() && instruction.type == Type{Scalar::kI64, 1};
      if (is_scalar) known_[instruction.results.front()] = Evaluate(instruction);
    }
  }

  void Add(const Instruction& instruction, double times) {
    switch (instruction.op) {
      case Op::kLoad:
      case Op::kLoadStrided:
        cost_.bytes += times * BytesOf(instruction.type, instruction.memory);
        break;
      case Op::kLoadBroadcast:
        cost_.bytes += times * BytesOf({instruction.type.scalar, 1}, instruction.memory);
        break;
      case Op::kStore:
      case Op::kStoreStrided:
        cost_.bytes += times * BytesOf(program_.TypeOf(instruction.operands.back()), instruction.memory);
        break;
      default:
        break;
    }
    if (IsVectorArithmetic(instruction)) cost_.instructions += times;
  }

  const Program& program_;
  const std::int64_t begin_, end_;
  std::vector<Known> known_;  // by value: 64-bit scalars that follow from the range
  ProgramCost cost_;
};

}  // namespace

bool IsVectorArithmetic(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kConstant:
    case Op::kLoad:
    case Op::kLoadStrided:
    case Op::kLoadBroadcast:
    case Op::kBitcast:
    case Op::kStore:
    case Op::kStoreStrided:
      return false;
    default:
      return instruction.type.lanes > 1;
  }
}

ProgramCost CostOf(const Program& program, std::int64_t begin, std::int64_t end) {
  return Counter(program, begin, end).Count();
}

}  // namespace boltbeam::kernel
