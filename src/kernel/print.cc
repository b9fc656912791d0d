// The readable form of a loop program: docs/kernels.md shows one.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "base/hash.h"
#include "kernel/program.h"

namespace boltbeam::kernel {
namespace {

constexpr std::array<std::string_view, 51> kOpNames = {
    "constant",
    "lane_index",
    "begin",
    "end",
    "load",
    "load_strided",
    "load_broadcast",
    "store",
    "store_strided",
    "prefetch",
    "add",
    "sub",
    "mul",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "sar",
    "min",
    "max",
    "div_u",
    "fadd",
    "fsub",
    "fmul",
    "fdiv",
    "fma",
    "fmin",
    "fmax",
    "fsqrt",
    "fabs",
    "fround",
    "i32_to_f32",
    "f32_to_i32",
    "bitcast",
    "widen",
    "narrow",
    "less",
    "fless",
    "select",
    "dot4",
    "dot4_signed",
    "madd_bytes",
    "madd_halves",
    "add_halves",
    "table16",
    "shuffle",
    "extract",
    "splat",
    "loop",
    "if",
};
static_assert(static_cast<std::size_t>(Op::kIf) + 1 == kOpNames.size() && kOpNames.back() == "if");

std::string TypeText(const Type& type) {
  static constexpr std::array<std::string_view, 3> kNames = {"i32", "f32", "i64"};
  const std::string_view name = kNames.at(static_cast<std::size_t>(type.scalar));
  return type.lanes == 1 ? std::string(name) : fmt::format("{}x{}", name, type.lanes);
}

/// How the lanes lie in memory, with their number: "u8x16"; words say which kind.
std::string MemoryText(Memory memory, const Type& type) {
  static constexpr std::array<std::string_view, 5> kNames = {"u8", "s8", "u16", "f16", "bf16"};
  if (memory == Memory::kI64) return type.scalar == Scalar::kI64 ? TypeText(type) : "i64 as " + TypeText(type);
  if (memory == Memory::kWord) return type.scalar == Scalar::kI64 ? "word as i64" : TypeText(type);
  const std::string_view name = kNames.at(static_cast<std::size_t>(memory));
  return type.lanes == 1 ? std::string(name) : fmt::format("{}x{}", name, type.lanes);
}

/// A float as the shortest decimal that reads back as the same value; integers are decimal while small, else masks.
std::string ConstantText(const Type& type, std::uint64_t imm) {
  if (type.scalar == Scalar::kI64) return fmt::format("{}", static_cast<std::int64_t>(imm));
  if (imm > 0xffffffffU) return fmt::format("{:#x}", imm);
  const auto word = static_cast<std::uint32_t>(imm);
  if (type.scalar == Scalar::kF32) {
    const float value = std::bit_cast<float>(word);
    if (std::isnan(value)) return fmt::format("nan:{:#010x}", word);
    std::string text = fmt::format("{}", value);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  const auto value = static_cast<std::int32_t>(word);
  return value > -65536 && value < 65536 ? fmt::format("{}", value) : fmt::format("{:#010x}", word);
}

class Printer {
 public:
  explicit Printer(const Program& program, bool with_notes = true)
      : program_(program), with_notes_(with_notes), names_(program.types.size()) {
    Name(program.body);
  }

  std::string Whole() {
    text_ = fmt::format("kernel {}\n  {}\n  provenance {}\n", program_.name, program_.description,
                        ProvenanceName(program_.provenance));
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      text_ += fmt::format("  buffer {} {}{}\n", i, buffer.name, buffer.written ? " written" : "");
    }
    Body(program_.body, 0);
    return std::move(text_);
  }

  std::string Line(const Instruction& instruction) const {
    const std::string name(OpName(instruction.op));
    switch (instruction.op) {
      case Op::kLoad:
      case Op::kLoadStrided:
      case Op::kLoadBroadcast:
        return fmt::format("{} = {} {} {}{}", Values(instruction.results), name,
                           MemoryText(instruction.memory, instruction.type), Address(instruction),
                           instruction.ordered ? " ordered" : "");
      case Op::kStore:
      case Op::kStoreStrided:
        return StoreLine(instruction);
      case Op::kPrefetch:
        return fmt::format("{} {}{}", name, Address(instruction), instruction.imm != 0 ? " once" : "");
      case Op::kLoop:
        return LoopLine(instruction);
      case Op::kIf:
        return fmt::format("{} {}", name, Values(instruction.operands));
      default:
        return PlainLine(instruction);
    }
  }

 private:
  /// Numbers the values in the order in which the text defines them, however the builder came to number them.
  void Name(const Region& region) {
    for (const ValueId value : region.arguments) Number(value);
    for (const Instruction& instruction : region.code) {
      if (IsInlined(instruction)) {
        names_[instruction.results[0]] = ConstantText(instruction.type, instruction.imm);
        continue;
      }
      for (const ValueId value : instruction.results) Number(value);
      for (const Region& inner : instruction.body) Name(inner);
    }
  }

  void Number(ValueId value) {
    if (value < names_.size() && names_[value].empty()) names_[value] = fmt::format("%{}", numbered_++);
  }

  /// A constant is shown where it is used; its own line would tell nothing more.
  bool IsInlined(const Instruction& instruction) const {
    return instruction.op == Op::kConstant && instruction.results.size() == 1 && instruction.results[0] < names_.size();
  }

  std::string ValueText(ValueId value) const {
    return value < names_.size() && !names_[value].empty() ? names_[value] : "%undefined";
  }

  std::string Values(const std::vector<ValueId>& values, std::size_t from = 0) const {
    std::string text;
    for (std::size_t i = from; i < values.size(); ++i) text += (i == from ? "" : ", ") + ValueText(values[i]);
    return text;
  }

  std::string TypeOfValue(ValueId value) const {
    return value < program_.types.size() ? TypeText(program_.types[value]) : "undefined";
  }

  /// "weights[%3 + 64 + lane * %4]"
  std::string Address(const Instruction& instruction) const {
    const bool strided = instruction.op == Op::kLoadStrided || instruction.op == Op::kStoreStrided;
    std::string text = instruction.buffer < program_.buffers.size() ? program_.buffers[instruction.buffer].name
                                                                    : fmt::format("buffer#{}", instruction.buffer);
    text += instruction.operands.empty() ? "[nothing" : "[" + ValueText(instruction.operands[0]);
    if (instruction.offset > 0) text += fmt::format(" + {}", instruction.offset);
    if (instruction.offset < 0) text += fmt::format(" - {}", 0 - static_cast<std::uint64_t>(instruction.offset));
    if (strided && instruction.operands.size() > 1) text += " + lane * " + ValueText(instruction.operands[1]);
    return text + "]";
  }

  std::string StoreLine(const Instruction& instruction) const {
    const std::size_t value = instruction.op == Op::kStore ? 1 : 2;
    const bool has_value = instruction.operands.size() > value && instruction.operands[value] < program_.types.size();
    const Type type = has_value ? program_.types[instruction.operands[value]] : Type{};
    return fmt::format("{} {} {}, {}", OpName(instruction.op), MemoryText(instruction.memory, type),
                       Address(instruction), Values(instruction.operands, value));
  }

  /// "%20, %21 = loop %9 from %0 to %1 step %2 carrying %10 f32x16 = %5, ..."
  std::string LoopLine(const Instruction& instruction) const {
    std::string text;
    if (!instruction.results.empty()) text = Values(instruction.results) + " = ";
    const std::vector<ValueId> none;
    const std::vector<ValueId>& arguments = instruction.body.empty() ? none : instruction.body[0].arguments;
    const auto operand = [&](std::size_t i) {
      return i < instruction.operands.size() ? ValueText(instruction.operands[i]) : "nothing";
    };
    text += fmt::format("loop {} from {} to {} step {}", arguments.empty() ? "" : ValueText(arguments[0]), operand(0),
                        operand(1), operand(2));
    for (std::size_t i = 1; i < arguments.size(); ++i) {
      text += fmt::format("{} {} {} = {}", i == 1 ? " carrying" : ",", ValueText(arguments[i]),
                          TypeOfValue(arguments[i]), operand(i + 2));
    }
    return text;
  }

  /// "%5 = add i32x16 %3, %4", with what belongs to the operation behind.
  std::string PlainLine(const Instruction& instruction) const {
    std::string text =
        fmt::format("{} = {} {}", Values(instruction.results), OpName(instruction.op), TypeText(instruction.type));
    if (!instruction.operands.empty()) text += " " + Values(instruction.operands);
    if (instruction.op == Op::kConstant) text += " " + ConstantText(instruction.type, instruction.imm);
    if (instruction.op == Op::kExtract) text += fmt::format(" lane {}", instruction.imm);
    if (!instruction.table.empty()) text += fmt::format(" [{}]", fmt::join(instruction.table, ", "));
    return text;
  }

  void Body(const Region& region, int depth) {
    const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
    for (const Instruction& instruction : region.code) {
      if (IsInlined(instruction)) continue;
      if (with_notes_ && !instruction.note.empty()) text_ += fmt::format("{}# {}\n", indent, instruction.note);
      text_ += indent + Line(instruction);
      if (instruction.body.empty()) {
        text_ += '\n';
        continue;
      }
      text_ += " {\n";
      for (const Region& inner : instruction.body) Body(inner, depth + 1);
      text_ += indent + "}\n";
    }
    if (!region.yields.empty()) text_ += indent + "next " + Values(region.yields) + "\n";
  }

  const Program& program_;
  const bool with_notes_;
  std::vector<std::string> names_;  // by value: its number or, of a constant, what it is; empty: not defined
  std::uint32_t numbered_ = 0;
  std::string text_;
};

}  // namespace

std::string_view ProvenanceName(Provenance provenance) {
  static constexpr std::array<std::string_view, 4> kNames = {"search_generated", "compiler_generated", "hand_written",
                                                             "unknown"};
  return kNames.at(static_cast<std::size_t>(provenance));
}

std::string_view OpName(Op op) { return kOpNames.at(static_cast<std::size_t>(op)); }

std::string Print(const Program& program) { return Printer(program).Whole(); }

std::string PrintLine(const Program& program, const Instruction& instruction) {
  return Printer(program).Line(instruction);
}

std::string Identity(const Program& program) { return base::Sha256Hex(Printer(program, false).Whole()); }

}  // namespace boltbeam::kernel
