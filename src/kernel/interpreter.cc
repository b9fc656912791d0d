#include "kernel/interpreter.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/checked.h"
#include "formats/format.h"
#include "kernel/lane_ops.h"
#include "kernel/verify.h"

namespace boltbeam::kernel {
namespace {

std::size_t ElementBytes(Memory memory) {
  switch (memory) {
    case Memory::kU8:
    case Memory::kS8:
      return 1;
    case Memory::kU16:
    case Memory::kF16:
    case Memory::kBf16:
      return 2;
    case Memory::kWord:
      return 4;
    case Memory::kI64:
      return 8;
  }
  return 0;
}

template <typename T>
T ReadAs(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// A lane in memory as a 32-bit pattern.
std::uint32_t LoadLane(Memory memory, const std::byte* from) {
  switch (memory) {
    case Memory::kU8:
      return ReadAs<std::uint8_t>(from);
    case Memory::kS8:
      return static_cast<std::uint32_t>(ReadAs<std::int8_t>(from));
    case Memory::kU16:
      return ReadAs<std::uint16_t>(from);
    case Memory::kF16:
      return std::bit_cast<std::uint32_t>(formats::HalfToFloat(ReadAs<std::uint16_t>(from)));
    case Memory::kBf16:
      return static_cast<std::uint32_t>(ReadAs<std::uint16_t>(from)) << 16;
    default:
      return ReadAs<std::uint32_t>(from);
  }
}

void StoreLane(Memory memory, std::uint32_t word, std::byte* to) {
  if (memory == Memory::kF16) word = formats::FloatToHalf(std::bit_cast<float>(word));
  // Little endian, as every machine this runs on: the low bytes come first.
  std::memcpy(to, &word, ElementBytes(memory));
}

class Interpreter {
 public:
  Interpreter(const Program& program, std::span<const BufferView> buffers, std::int64_t begin, std::int64_t end)
      : program_(program), buffers_(buffers), begin_(begin), end_(end), scalars_(program.types.size()) {
    std::size_t words = 0;
    for (const Type& type : program.types) {
      places_.push_back(words);
      words += type.lanes;
    }
    words_.resize(words);
  }

  Result<void> Run(const Region& region) {
    for (const Instruction& instruction : region.code) BOLTBEAM_TRY(Execute(instruction));
    return {};
  }

 private:
  std::uint32_t* Lanes(ValueId value) { return words_.data() + places_[value]; }
  bool IsScalar64(ValueId value) const { return program_.TypeOf(value).scalar == Scalar::kI64; }

  std::unexpected<Error> Illegal(const Instruction& instruction, std::string found, std::string expected) const {
    return Fail(Code::kKernelIllegal, program_.name + ": " + PrintLine(program_, instruction), std::move(found),
                std::move(expected));
  }

  Result<void> Execute(const Instruction& instruction) {
    switch (instruction.op) {
      case Op::kLoad:
      case Op::kLoadStrided:
      case Op::kLoadBroadcast:
      case Op::kStore:
      case Op::kStoreStrided:
        return Access(instruction);
      case Op::kPrefetch:
        return {};
      case Op::kLoop:
        return Loop(instruction);
      case Op::kIf:
        return *Lanes(instruction.operands[0]) != 0 ? Run(instruction.body[0]) : Result<void>();
      default:
        return Compute(instruction);
    }
  }

  Result<void> Compute(const Instruction& instruction) {
    const std::vector<ValueId>& operands = instruction.operands;
    std::string_view illegal;
    if (instruction.type.scalar == Scalar::kI64) {
      illegal = Compute64(instruction, scalars_[instruction.results[0]]);
    } else if (instruction.op == Op::kNarrow) {
      *Lanes(instruction.results[0]) = static_cast<std::uint32_t>(scalars_[operands[0]]);
    } else if (instruction.op == Op::kLess && IsScalar64(operands[0])) {
      *Lanes(instruction.results[0]) = scalars_[operands[0]] < scalars_[operands[1]] ? ~0U : 0;
    } else {
      std::array<const std::uint32_t*, 3> lanes{};
      for (std::size_t i = 0; i < operands.size(); ++i) lanes[i] = Lanes(operands[i]);
      illegal = EvaluateLanes(instruction, lanes.data(), Lanes(instruction.results[0]));
    }
    if (!illegal.empty()) return Illegal(instruction, std::string(illegal), "operands that the operation allows");
    return {};
  }

  std::string_view Compute64(const Instruction& instruction, std::int64_t& out) {
    const std::vector<ValueId>& operands = instruction.operands;
    switch (instruction.op) {
      case Op::kConstant:
        out = static_cast<std::int64_t>(instruction.imm);
        return {};
      case Op::kBegin:
        out = begin_;
        return {};
      case Op::kEnd:
        out = end_;
        return {};
      case Op::kWiden:
        out = static_cast<std::int32_t>(*Lanes(operands[0]));
        return {};
      case Op::kSelect:
        out = scalars_[static_cast<std::int32_t>(*Lanes(operands[0])) < 0 ? operands[1] : operands[2]];
        return {};
      default:
        return EvaluateScalar(instruction.op, scalars_[operands[0]], scalars_[operands[1]], out);
    }
  }

  /// The place of count elements from lane `lane` on.
  Result<std::byte*> Place(const Instruction& access, std::int64_t lane, std::size_t bytes) const {
    const bool strided = access.op == Op::kLoadStrided || access.op == Op::kStoreStrided;
    const BufferView& buffer = buffers_[access.buffer];
    const auto start = CheckedAdd(scalars_[access.operands[0]], access.offset);
    const auto step = CheckedMul(strided ? scalars_[access.operands[1]] : std::int64_t{0}, lane);
    const auto place = start && step ? CheckedAdd(*start, *step) : std::nullopt;
    const bool inside = place && *place >= 0 && static_cast<std::uint64_t>(*place) <= buffer.bytes &&
                        bytes <= buffer.bytes - static_cast<std::uint64_t>(*place);
    if (!inside)
      return Illegal(access,
                     fmt::format("touches {} bytes at {} of {}", bytes, place ? fmt::format("{}", *place) : "overflow",
                                 program_.buffers[access.buffer].name),
                     fmt::format("0 to {}", buffer.bytes));
    return buffer.data + *place;
  }

  Result<void> Access(const Instruction& access) {
    const bool store = access.op == Op::kStore || access.op == Op::kStoreStrided;
    const bool strided = access.op == Op::kLoadStrided || access.op == Op::kStoreStrided;
    const ValueId value = store ? access.operands.back() : access.results[0];
    const std::size_t size = ElementBytes(access.memory);
    const std::size_t lanes = program_.TypeOf(value).lanes;
    const bool broadcast = access.op == Op::kLoadBroadcast;
    // Contiguous lanes are one range, which is checked as a whole.
    BOLTBEAM_ASSIGN(std::byte * place, Place(access, 0, strided || broadcast ? size : size * lanes));
    for (std::size_t l = 0; l < lanes; ++l) {
      if (strided) {
        BOLTBEAM_ASSIGN(place, Place(access, static_cast<std::int64_t>(l), size));
      }
      std::byte* lane = strided || broadcast ? place : place + l * size;
      if (IsScalar64(value)) {
        if (store)
          std::memcpy(lane, &scalars_[value], size);
        else
          scalars_[value] = ReadAs<std::int64_t>(lane);
      } else if (store) {
        StoreLane(access.memory, Lanes(value)[l], lane);
      } else {
        Lanes(value)[l] = LoadLane(access.memory, lane);
      }
    }
    return {};
  }

  /// Copies values side by side: all are read before any is written, for a loop may exchange what it carries.
  void Move(std::span<const ValueId> from, std::span<const ValueId> to) {
    moved_words_.clear();
    moved_scalars_.clear();
    for (const ValueId value : from) {
      moved_words_.insert(moved_words_.end(), Lanes(value), Lanes(value) + program_.TypeOf(value).lanes);
      moved_scalars_.push_back(scalars_[value]);
    }
    const std::uint32_t* words = moved_words_.data();
    for (std::size_t i = 0; i < to.size(); ++i) {
      std::memcpy(Lanes(to[i]), words, program_.TypeOf(to[i]).lanes * sizeof(std::uint32_t));
      words += program_.TypeOf(to[i]).lanes;
      scalars_[to[i]] = moved_scalars_[i];
    }
  }

  Result<void> Loop(const Instruction& loop) {
    const Region& body = loop.body[0];
    const std::span<const ValueId> carried = std::span(body.arguments).subspan(1);
    const std::int64_t to = scalars_[loop.operands[1]];
    const std::int64_t step = scalars_[loop.operands[2]];
    if (step <= 0) return Illegal(loop, fmt::format("step {}", step), "1 or more");
    Move(std::span(loop.operands).subspan(3), carried);
    for (std::optional<std::int64_t> i = scalars_[loop.operands[0]]; i && *i < to; i = CheckedAdd(*i, step)) {
      scalars_[body.arguments[0]] = *i;
      BOLTBEAM_TRY(Run(body));
      Move(body.yields, carried);
    }
    Move(carried, loop.results);
    return {};
  }

  const Program& program_;
  std::span<const BufferView> buffers_;
  std::int64_t begin_, end_;
  std::vector<std::int64_t> scalars_;  // of i64 values, by number
  std::vector<std::uint32_t> words_;   // of the others, from places_[number] on
  std::vector<std::size_t> places_;
  std::vector<std::uint32_t> moved_words_;
  std::vector<std::int64_t> moved_scalars_;
};

}  // namespace

Result<void> Interpret(const Program& program, std::span<const BufferView> buffers, std::int64_t begin,
                       std::int64_t end) {
  BOLTBEAM_TRY(Verify(program));
  if (buffers.size() != program.buffers.size())
    return Fail(Code::kKernelIllegal, program.name, fmt::format("{} buffers given", buffers.size()),
                fmt::format("{}", program.buffers.size()));
  return Interpreter(program, buffers, begin, end).Run(program.body);
}

}  // namespace boltbeam::kernel
