#include "kernel/verify.h"

#include <fmt/format.h>

#include <set>

namespace boltbeam::kernel {
namespace {

constexpr Type kI32Scalar{Scalar::kI32, 1};
constexpr Type kI64Scalar{Scalar::kI64, 1};

bool IsMemoryOp(Op op) { return op >= Op::kLoad && op <= Op::kPrefetch; }

/// Which scalars a result may have, as bits.
constexpr unsigned kI32 = 1, kF32 = 2, kI64 = 4;

unsigned ResultScalars(Op op) {
  switch (op) {
    case Op::kConstant:
    case Op::kLoad:
    case Op::kLoadBroadcast:
    case Op::kSelect:
      return kI32 | kF32 | kI64;
    case Op::kLoadStrided:
    case Op::kBitcast:
    case Op::kShuffle:
    case Op::kExtract:
    case Op::kSplat:
      return kI32 | kF32;
    case Op::kBegin:
    case Op::kEnd:
    case Op::kDivU:
    case Op::kWiden:
      return kI64;
    default:
      break;
  }
  if (op >= Op::kAdd && op <= Op::kMax) return kI32 | kI64;
  if ((op >= Op::kFAdd && op <= Op::kFRound) || op == Op::kI32ToF32) return kF32;
  return kI32;
}

unsigned ScalarBit(const Type& type) { return 1U << static_cast<unsigned>(type.scalar); }

/// What a lane in memory becomes in a value.
unsigned MemoryScalars(Memory memory) {
  switch (memory) {
    case Memory::kF16:
    case Memory::kBf16:
      return kF32;
    case Memory::kWord:
      return kI32 | kF32;
    case Memory::kI64:
      return kI64;
    default:
      return kI32;
  }
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program), states_(program.types.size(), State::kUndefined) {}

  Result<void> Run() {
    BOLTBEAM_TRY(Header());
    if (!program_.body.arguments.empty() || !program_.body.yields.empty())
      return Illegal("the program's body has arguments or yields", "neither");
    BOLTBEAM_TRY(Code(program_.body));
    for (std::size_t value = 0; value < states_.size(); ++value)
      if (states_[value] == State::kUndefined)
        return Illegal(fmt::format("value {} has a type but is never defined", value), "a definition");
    return {};
  }

 private:
  enum class State : std::uint8_t { kUndefined, kInScope, kOutOfScope };

  std::unexpected<Error> Illegal(std::string found, std::string expected) const {
    std::string where = program_.name;
    if (current_ != nullptr) where += ": " + PrintLine(program_, *current_);
    return Fail(Code::kKernelIllegal, std::move(where), std::move(found), std::move(expected));
  }

  Result<void> Header() const {
    std::set<std::string_view> names;
    for (const Buffer& buffer : program_.buffers)
      if (buffer.name.empty() || !names.insert(buffer.name).second)
        return Illegal(fmt::format("a buffer called \"{}\"", buffer.name), "a name of its own for every buffer");
    for (std::size_t value = 0; value < program_.types.size(); ++value) {
      const Type& type = program_.types[value];
      if (type.lanes == 0 || (type.scalar == Scalar::kI64 && type.lanes != 1))
        return Illegal(fmt::format("value {} has {} lanes", value, type.lanes), "1 or more; i64 has exactly 1");
    }
    return {};
  }

  Result<void> Define(ValueId value, const Type& type) {
    if (value >= states_.size())
      return Illegal(fmt::format("it defines value {}, which has no type", value), "a type for every value");
    if (states_[value] != State::kUndefined)
      return Illegal(fmt::format("it defines value {} for the second time", value), "a single definition");
    if (program_.types[value] != type)
      return Illegal(fmt::format("value {} is listed with another type", value), "equal types");
    states_[value] = State::kInScope;
    defined_.push_back(value);
    return {};
  }

  Result<void> Use(ValueId value) const {
    if (value < states_.size() && states_[value] == State::kInScope) return {};
    const bool out = value < states_.size() && states_[value] == State::kOutOfScope;
    return Illegal(
        fmt::format("value {} is {}", value, out ? "used outside of the body that defines it" : "not defined"),
        "a value that is defined before and in scope");
  }

  Result<void> Code(const Region& region) {
    for (const Instruction& instruction : region.code) {
      current_ = &instruction;
      BOLTBEAM_TRY(Check(instruction));
    }
    return {};
  }

  /// A body: its definitions end with it.
  Result<void> Scope(const Instruction& owner, const Region& region) {
    const std::size_t outer = defined_.size();
    for (std::size_t i = 0; i < region.arguments.size(); ++i) {
      const Type type = i == 0 ? kI64Scalar : program_.TypeOf(owner.operands[i + 2]);
      BOLTBEAM_TRY(Define(region.arguments[i], type));
    }
    BOLTBEAM_TRY(Code(region));
    current_ = &owner;
    for (std::size_t i = 0; i < region.yields.size(); ++i) {
      BOLTBEAM_TRY(Use(region.yields[i]));
      if (program_.TypeOf(region.yields[i]) != program_.TypeOf(region.arguments[i + 1]))
        return Illegal(fmt::format("next value {} has another type than what is carried", i),
                       "the type of the carried value");
    }
    for (std::size_t i = outer; i < defined_.size(); ++i) states_[defined_[i]] = State::kOutOfScope;
    defined_.resize(outer);
    return {};
  }

  Result<void> Check(const Instruction& instruction) {
    for (const ValueId operand : instruction.operands) BOLTBEAM_TRY(Use(operand));
    if (instruction.op == Op::kLoop) return CheckLoop(instruction);
    if (instruction.op == Op::kIf) return CheckIf(instruction);
    if (!instruction.body.empty()) return Illegal("a body", "a body only for loop and if");
    if (IsMemoryOp(instruction.op)) BOLTBEAM_TRY(CheckMemory(instruction));
    BOLTBEAM_TRY(CheckOperands(instruction));
    BOLTBEAM_TRY(CheckDetails(instruction));
    const bool has_result =
        instruction.op != Op::kStore && instruction.op != Op::kStoreStrided && instruction.op != Op::kPrefetch;
    if (instruction.results.size() != (has_result ? 1U : 0U))
      return Illegal(fmt::format("{} results", instruction.results.size()), has_result ? "1" : "none");
    return has_result ? Define(instruction.results[0], instruction.type) : Result<void>();
  }

  Result<void> CheckLoop(const Instruction& loop) {
    if (loop.body.size() != 1 || loop.operands.size() < 3) return Illegal("no body or bounds", "both");
    const Region& body = loop.body[0];
    const std::size_t carried = loop.operands.size() - 3;
    if (body.arguments.size() != carried + 1 || body.yields.size() != carried || loop.results.size() != carried)
      return Illegal(fmt::format("{} initial values, {} arguments, {} next values, {} results", carried,
                                 body.arguments.size(), body.yields.size(), loop.results.size()),
                     "as many of each, and the counter as the first argument");
    for (std::size_t i = 0; i < 3; ++i)
      if (program_.TypeOf(loop.operands[i]) != kI64Scalar) return Illegal("bounds or a step that are not i64", "i64");
    BOLTBEAM_TRY(Scope(loop, body));
    for (std::size_t i = 0; i < carried; ++i)
      BOLTBEAM_TRY(Define(loop.results[i], program_.TypeOf(loop.operands[i + 3])));
    return {};
  }

  Result<void> CheckIf(const Instruction& branch) {
    if (branch.body.size() != 1 || branch.operands.size() != 1 || !branch.results.empty() ||
        !branch.body[0].arguments.empty() || !branch.body[0].yields.empty())
      return Illegal("another form", "one operand, one body, no arguments, next values or results");
    if (program_.TypeOf(branch.operands[0]) != kI32Scalar) return Illegal("a condition that is not i32", "i32");
    return Scope(branch, branch.body[0]);
  }

  /// Buffer, and how the lanes lie in memory against the value's type.
  Result<void> CheckMemory(const Instruction& access) const {
    if (access.buffer >= program_.buffers.size())
      return Illegal(fmt::format("buffer {}", access.buffer), fmt::format("one of {}", program_.buffers.size()));
    if (access.op == Op::kPrefetch) return {};
    const bool store = access.op == Op::kStore || access.op == Op::kStoreStrided;
    if (access.operands.empty()) return Illegal("no address", "a byte offset");
    if (store && !program_.buffers[access.buffer].written)
      return Illegal("a store to a buffer that is only read", "a buffer marked as written");
    if (store && (access.memory == Memory::kBf16 || access.ordered))
      return Illegal("a bf16 or an ordered store", "neither: both exist for loads only");
    const Type type = store ? program_.TypeOf(access.operands.back()) : access.type;
    if ((MemoryScalars(access.memory) & ScalarBit(type)) == 0)
      return Illegal("a value that does not fit how the lanes lie in memory", "f32 for f16 and bf16, i32 for u8, ...");
    return {};
  }

  /// The operands' types that follow from the operation and its result.
  std::vector<Type> Expected(const Instruction& instruction) const {
    const Type type = instruction.type;
    const Type i32{Scalar::kI32, type.lanes};
    const Type f32{Scalar::kF32, type.lanes};
    const auto first = [&](Type otherwise) {
      return instruction.operands.empty() ? otherwise : program_.TypeOf(instruction.operands[0]);
    };
    switch (instruction.op) {
      case Op::kConstant:
      case Op::kLaneIndex:
      case Op::kBegin:
      case Op::kEnd:
        return {};
      case Op::kLoad:
      case Op::kLoadBroadcast:
      case Op::kPrefetch:
        return {kI64Scalar};
      case Op::kLoadStrided:
        return {kI64Scalar, kI64Scalar};
      case Op::kStore:
        return {kI64Scalar, program_.TypeOf(instruction.operands.back())};
      case Op::kStoreStrided:
        return {kI64Scalar, kI64Scalar, program_.TypeOf(instruction.operands.back())};
      case Op::kFma:
      case Op::kDot4:
      case Op::kDot4Signed:
        return {type, type, type};
      case Op::kFSqrt:
      case Op::kFAbs:
      case Op::kFRound:
      case Op::kTable16:
        return {type};
      case Op::kI32ToF32:
        return {i32};
      case Op::kF32ToI32:
        return {f32};
      case Op::kBitcast:
        return {type.scalar == Scalar::kF32 ? i32 : f32};
      case Op::kWiden:
        return {kI32Scalar};
      case Op::kNarrow:
        return {kI64Scalar};
      case Op::kLess:
        return first(i32).scalar == Scalar::kI64 && type.lanes == 1 ? std::vector{kI64Scalar, kI64Scalar}
                                                                    : std::vector{i32, i32};
      case Op::kFLess:
        return {f32, f32};
      case Op::kSelect:
        return {i32, type, type};
      case Op::kShuffle:
      case Op::kExtract:
        return {Type{type.scalar, first(type).lanes}};
      case Op::kSplat:
        return {Type{type.scalar, 1}};
      default:
        return {type, type};
    }
  }

  Result<void> CheckOperands(const Instruction& instruction) const {
    const std::vector<Type> expected = Expected(instruction);
    if (instruction.operands.size() != expected.size())
      return Illegal(fmt::format("{} operands", instruction.operands.size()), fmt::format("{}", expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (program_.TypeOf(instruction.operands[i]) != expected[i])
        return Illegal(fmt::format("operand {} has the wrong type", i),
                       "the type that the operation and its result ask for");
    const bool has_result = !instruction.results.empty();
    if (has_result && (ResultScalars(instruction.op) & ScalarBit(instruction.type)) == 0)
      return Illegal("a result of a kind that this operation does not have", "i32, f32 or i64 as program.h says");
    return {};
  }

  /// Tables, lane numbers and constants.
  Result<void> CheckDetails(const Instruction& instruction) const {
    const std::vector<std::int32_t>& table = instruction.table;
    if (instruction.op == Op::kShuffle || instruction.op == Op::kTable16) {
      const bool shuffle = instruction.op == Op::kShuffle;
      const std::size_t size = shuffle ? instruction.type.lanes : 16;
      const std::int32_t low = shuffle ? 0 : -128;
      const std::int32_t high = shuffle ? program_.TypeOf(instruction.operands[0]).lanes - 1 : 255;
      if (table.size() != size) return Illegal(fmt::format("a table of {}", table.size()), fmt::format("{}", size));
      for (const std::int32_t entry : table)
        if (entry < low || entry > high)
          return Illegal(fmt::format("table entry {}", entry), fmt::format("{} to {}", low, high));
    } else if (!table.empty()) {
      return Illegal("a table", "a table only for shuffle and table16");
    }
    if (instruction.op == Op::kExtract && instruction.imm >= program_.TypeOf(instruction.operands[0]).lanes)
      return Illegal(fmt::format("lane {}", instruction.imm), "a lane of the operand");
    if (instruction.op == Op::kExtract && instruction.type.lanes != 1) return Illegal("several lanes", "one");
    if (instruction.op == Op::kConstant && instruction.type.scalar != Scalar::kI64 && instruction.imm > 0xffffffffU)
      return Illegal(fmt::format("constant {:#x}", instruction.imm), "32 bits");
    return {};
  }

  const Program& program_;
  std::vector<State> states_;
  std::vector<ValueId> defined_;  // in scope, in order
  const Instruction* current_ = nullptr;
};

}  // namespace

Result<void> Verify(const Program& program) { return Verifier(program).Run(); }

}  // namespace boltbeam::kernel
