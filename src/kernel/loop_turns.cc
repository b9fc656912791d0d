#include "kernel/loop_turns.h"

#include <algorithm>
#include <map>
#include <optional>

#include "kernel/program_cost.h"

namespace boltbeam::kernel {
namespace {

using Known = std::optional<std::int64_t>;

bool HasLoop(const Region& region) {
  return std::ranges::any_of(region.code, [](const Instruction& instruction) {
    return instruction.op == Op::kLoop || (instruction.op == Op::kIf && HasLoop(instruction.body.front()));
  });
}

Known Combine(Op op, std::int64_t a, std::int64_t b) {
  // Addresses wrap as they do on the machine.
  const auto wrap = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  switch (op) {
    case Op::kAdd:
      return wrap(x + y);
    case Op::kSub:
      return wrap(x - y);
    case Op::kMul:
      return wrap(x * y);
    case Op::kAnd:
      return wrap(x & y);
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kLess:
      return a < b ? -1 : 0;
    case Op::kDivU:
      return b > 0 ? Known(wrap(x / y)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

class Runner {
 public:
  Runner(const Program& program, std::int64_t begin, std::int64_t end, std::span<const KnownWord> known)
      : program_(program), begin_(begin), end_(end), words_(known), values_(program.types.size()) {
    loops.push_back({.turns = 1});
    Find(program.body, 0);
    Run(program.body, 0);
  }

  std::vector<LoopTurns> loops;

 private:
  /// The loops in the order of the text, and what is in them.
  void Find(const Region& region, std::int32_t around) {
    for (const Instruction& instruction : region.code) {
      if (instruction.op == Op::kIf) {
        Find(instruction.body.front(), around);
      } else if (instruction.op == Op::kLoop) {
        const auto index = static_cast<std::int32_t>(loops.size());
        index_[&instruction] = index;
        loops.push_back({.parent = around, .is_single = IsSingle(instruction, region)});
        Find(instruction.body.front(), index);
      } else if (IsVectorArithmetic(instruction)) {
        ++loops[static_cast<std::size_t>(around)].vector_operations;
      }
    }
  }

  Known Constant(ValueId value) const {
    for (const Instruction& instruction : program_.body.code) {
      if (instruction.op == Op::kConstant && instruction.results.front() == value)
        return static_cast<std::int64_t>(instruction.imm);
    }
    return std::nullopt;
  }

  /// Constants stand at the beginning of a program; bounds that are a constant apart are seen by the compiler, too.
  bool IsSingle(const Instruction& loop, const Region& region) const {
    const Known step = Constant(loop.operands[2]);
    Known length;
    const Known from = Constant(loop.operands[0]), to = Constant(loop.operands[1]);
    if (from && to) length = *to - *from;
    for (const Instruction& instruction : region.code) {
      if (instruction.op != Op::kAdd || instruction.results.front() != loop.operands[1]) continue;
      if (instruction.operands[0] == loop.operands[0]) length = Constant(instruction.operands[1]);
    }
    return length && step && *length <= *step;
  }

  Known WordAt(const Instruction& load) const {
    const Known base = values_[load.operands.front()];
    if (!base || load.type.lanes != 1 || load.memory != Memory::kWord) return std::nullopt;
    for (const KnownWord& word : words_) {
      if (word.buffer == load.buffer && word.offset == *base + load.offset) return word.value;
    }
    return std::nullopt;
  }

  Known Evaluate(const Instruction& instruction) const {
    switch (instruction.op) {
      case Op::kConstant:
        return instruction.type.scalar == Scalar::kI64 ? static_cast<std::int64_t>(instruction.imm)
                                                       : static_cast<std::int32_t>(instruction.imm);
      case Op::kBegin:
        return begin_;
      case Op::kEnd:
        return end_;
      case Op::kLoad:
        return WordAt(instruction);
      case Op::kWiden:
      case Op::kNarrow:
        return values_[instruction.operands.front()];
      default:
        break;
    }
    if (instruction.operands.size() != 2) return std::nullopt;
    const Known a = values_[instruction.operands[0]], b = values_[instruction.operands[1]];
    return a && b ? Combine(instruction.op, *a, *b) : std::nullopt;
  }

  void Run(const Region& region, std::int32_t around) {
    for (const Instruction& instruction : region.code) {
      if (instruction.op == Op::kLoop) {
        RunLoop(instruction);
      } else if (instruction.op == Op::kIf) {
        Run(instruction.body.front(), around);
      } else if (!instruction.results.empty() && instruction.type.lanes == 1 &&
                 instruction.type.scalar != Scalar::kF32) {
        values_[instruction.results.front()] = Evaluate(instruction);
      }
    }
  }

  void RunLoop(const Instruction& loop) {
    const std::int32_t index = index_.at(&loop);
    LoopTurns& own = loops[static_cast<std::size_t>(index)];
    const Region& body = loop.body.front();
    const Known from = values_[loop.operands[0]], to = values_[loop.operands[1]], step = values_[loop.operands[2]];
    if (!from || !to || !step || *step <= 0) own.is_known = false;
    const std::int64_t turns = !own.is_known ? 1 : *to <= *from ? 0 : (*to - *from + *step - 1) / *step;
    own.turns += static_cast<double>(turns);
    std::vector<Known> carried;
    for (std::size_t i = 3; i < loop.operands.size(); ++i) carried.push_back(values_[loop.operands[i]]);
    if (HasLoop(body)) {
      for (std::int64_t turn = 0; turn < turns; ++turn) {
        values_[body.arguments.front()] = own.is_known ? Known(*from + turn * *step) : std::nullopt;
        for (std::size_t i = 0; i < carried.size(); ++i) values_[body.arguments[i + 1]] = carried[i];
        Run(body, index);
        for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = values_[body.yields[i]];
      }
    } else if (turns > 0) {
      std::ranges::fill(carried, std::nullopt);  // no bound of a loop inside depends on it
    }
    for (std::size_t i = 0; i < loop.results.size(); ++i) values_[loop.results[i]] = carried[i];
  }

  const Program& program_;
  const std::int64_t begin_, end_;
  const std::span<const KnownWord> words_;
  std::vector<Known> values_;
  std::map<const Instruction*, std::int32_t> index_;
};

}  // namespace

std::vector<LoopTurns> TurnsOf(const Program& program, std::int64_t begin, std::int64_t end,
                               std::span<const KnownWord> known) {
  return Runner(program, begin, end, known).loops;
}

}  // namespace boltbeam::kernel
