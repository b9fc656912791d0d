#include "kernel/lane_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace boltbeam::kernel {
namespace {

using Word = std::uint32_t;

float AsFloat(Word word) { return std::bit_cast<float>(word); }
Word AsWord(float value) { return std::bit_cast<Word>(value); }
std::int32_t AsSigned(Word word) { return static_cast<std::int32_t>(word); }
Word Mask(bool value) { return value ? ~Word{0} : 0; }

int UnsignedByte(Word word, int byte) { return static_cast<int>(word >> (8 * byte) & 0xff); }
int SignedByte(Word word, int byte) { return static_cast<std::int8_t>(word >> (8 * byte)); }
int SignedHalf(Word word, int half) { return static_cast<std::int16_t>(word >> (16 * half)); }
Word Halves(int low, int high) { return (static_cast<Word>(low) & 0xffff) | static_cast<Word>(high) << 16; }

Word Dot4(Word sum, Word a, Word b) {
  for (int i = 0; i < 4; ++i) sum += static_cast<Word>(UnsignedByte(a, i) * SignedByte(b, i));
  return sum;
}

Word Dot4Signed(Word sum, Word a, Word b) {
  for (int i = 0; i < 4; ++i) sum += static_cast<Word>(SignedByte(a, i) * SignedByte(b, i));
  return sum;
}

Word MaddBytes(Word a, Word b) {
  const auto pair = [&](int i) {
    const int sum = UnsignedByte(a, i) * SignedByte(b, i) + UnsignedByte(a, i + 1) * SignedByte(b, i + 1);
    return std::clamp(sum, -32768, 32767);
  };
  return Halves(pair(0), pair(2));
}

Word MaddHalves(Word a, Word b) {
  return static_cast<Word>(SignedHalf(a, 0) * SignedHalf(b, 0)) +
         static_cast<Word>(SignedHalf(a, 1) * SignedHalf(b, 1));
}

Word AddHalves(Word a, Word b) {
  return Halves(SignedHalf(a, 0) + SignedHalf(b, 0), SignedHalf(a, 1) + SignedHalf(b, 1));
}

Word RoundToWord(float value) {
  const float rounded = std::nearbyint(value);
  const bool fits = rounded >= -2147483648.0F && rounded < 2147483648.0F;
  return static_cast<Word>(fits ? static_cast<std::int32_t>(rounded) : std::numeric_limits<std::int32_t>::min());
}

template <typename F>
void Each1(std::size_t lanes, LaneOperands in, Word* out, F&& f) {
  for (std::size_t l = 0; l < lanes; ++l) out[l] = f(in[0][l]);
}

template <typename F>
void Each2(std::size_t lanes, LaneOperands in, Word* out, F&& f) {
  for (std::size_t l = 0; l < lanes; ++l) out[l] = f(in[0][l], in[1][l]);
}

template <typename F>
void Each3(std::size_t lanes, LaneOperands in, Word* out, F&& f) {
  for (std::size_t l = 0; l < lanes; ++l) out[l] = f(in[0][l], in[1][l], in[2][l]);
}

template <typename F>
void Float1(std::size_t lanes, LaneOperands in, Word* out, F&& f) {
  Each1(lanes, in, out, [&](Word a) { return AsWord(f(AsFloat(a))); });
}

template <typename F>
void Float2(std::size_t lanes, LaneOperands in, Word* out, F&& f) {
  Each2(lanes, in, out, [&](Word a, Word b) { return AsWord(f(AsFloat(a), AsFloat(b))); });
}

bool Integer(Op op, std::size_t n, LaneOperands in, Word* out) {
  switch (op) {
    case Op::kAdd:
      return Each2(n, in, out, [](Word a, Word b) { return a + b; }), true;
    case Op::kSub:
      return Each2(n, in, out, [](Word a, Word b) { return a - b; }), true;
    case Op::kMul:
      return Each2(n, in, out, [](Word a, Word b) { return a * b; }), true;
    case Op::kAnd:
      return Each2(n, in, out, [](Word a, Word b) { return a & b; }), true;
    case Op::kOr:
      return Each2(n, in, out, [](Word a, Word b) { return a | b; }), true;
    case Op::kXor:
      return Each2(n, in, out, [](Word a, Word b) { return a ^ b; }), true;
    case Op::kMin:
      return Each2(n, in, out, [](Word a, Word b) { return AsSigned(a) < AsSigned(b) ? a : b; }), true;
    case Op::kMax:
      return Each2(n, in, out, [](Word a, Word b) { return AsSigned(a) > AsSigned(b) ? a : b; }), true;
    case Op::kLess:
      return Each2(n, in, out, [](Word a, Word b) { return Mask(AsSigned(a) < AsSigned(b)); }), true;
    case Op::kShl:
      return Each2(n, in, out, [](Word a, Word b) { return a << b; }), true;
    case Op::kShr:
      return Each2(n, in, out, [](Word a, Word b) { return a >> b; }), true;
    case Op::kSar:
      return Each2(n, in, out, [](Word a, Word b) { return static_cast<Word>(AsSigned(a) >> b); }), true;
    default:
      return false;
  }
}

bool Float(Op op, std::size_t n, LaneOperands in, Word* out) {
  switch (op) {
    case Op::kFAdd:
      return Float2(n, in, out, [](float a, float b) { return a + b; }), true;
    case Op::kFSub:
      return Float2(n, in, out, [](float a, float b) { return a - b; }), true;
    case Op::kFMul:
      return Float2(n, in, out, [](float a, float b) { return a * b; }), true;
    case Op::kFDiv:
      return Float2(n, in, out, [](float a, float b) { return a / b; }), true;
    case Op::kFMin:
      return Float2(n, in, out, [](float a, float b) { return a < b ? a : b; }), true;
    case Op::kFMax:
      return Float2(n, in, out, [](float a, float b) { return a > b ? a : b; }), true;
    case Op::kFSqrt:
      return Float1(n, in, out, [](float a) { return std::sqrt(a); }), true;
    case Op::kFAbs:
      return Each1(n, in, out, [](Word a) { return a & 0x7fffffffU; }), true;
    case Op::kFRound:
      return Float1(n, in, out, [](float a) { return std::nearbyint(a); }), true;
    case Op::kFma:
      Each3(n, in, out, [](Word a, Word b, Word c) { return AsWord(std::fma(AsFloat(a), AsFloat(b), AsFloat(c))); });
      return true;
    case Op::kFLess:
      return Each2(n, in, out, [](Word a, Word b) { return Mask(AsFloat(a) < AsFloat(b)); }), true;
    case Op::kI32ToF32:
      return Each1(n, in, out, [](Word a) { return AsWord(static_cast<float>(AsSigned(a))); }), true;
    case Op::kF32ToI32:
      return Each1(n, in, out, [](Word a) { return RoundToWord(AsFloat(a)); }), true;
    default:
      return false;
  }
}

void Rest(const Instruction& instruction, std::size_t n, LaneOperands in, Word* out) {
  switch (instruction.op) {
    case Op::kBitcast:
      return Each1(n, in, out, [](Word a) { return a; });
    case Op::kSelect:
      return Each3(n, in, out, [](Word mask, Word a, Word b) { return AsSigned(mask) < 0 ? a : b; });
    case Op::kDot4:
      return Each3(n, in, out, Dot4);
    case Op::kDot4Signed:
      return Each3(n, in, out, Dot4Signed);
    case Op::kMaddBytes:
      return Each2(n, in, out, MaddBytes);
    case Op::kMaddHalves:
      return Each2(n, in, out, MaddHalves);
    case Op::kAddHalves:
      return Each2(n, in, out, AddHalves);
    case Op::kTable16:
      return Each1(n, in, out, [&](Word a) {
        Word word = 0;
        for (int i = 0; i < 4; ++i)
          word |= (static_cast<Word>(instruction.table[static_cast<std::size_t>(UnsignedByte(a, i))]) & 0xff) << 8 * i;
        return word;
      });
    case Op::kShuffle:
      for (std::size_t l = 0; l < n; ++l) out[l] = in[0][instruction.table[l]];
      return;
    case Op::kExtract:
      out[0] = in[0][instruction.imm];
      return;
    case Op::kSplat:
      return std::fill_n(out, n, in[0][0]), void();
    case Op::kConstant:
      return std::fill_n(out, n, static_cast<Word>(instruction.imm)), void();
    default:  // kLaneIndex: the only one left
      for (std::size_t l = 0; l < n; ++l) out[l] = static_cast<Word>(l);
  }
}

std::string_view IllegalLanes(Op op, std::size_t lanes, LaneOperands in) {
  if (op == Op::kShl || op == Op::kShr || op == Op::kSar) {
    if (std::any_of(in[1], in[1] + lanes, [](Word by) { return by > 31; })) return "a shift by 32 or more";
  }
  if (op == Op::kTable16) {
    if (std::any_of(in[0], in[0] + lanes, [](Word bytes) { return (bytes & 0xf0f0f0f0U) != 0; }))
      return "a table index above 15";
  }
  return {};
}

}  // namespace

std::string_view EvaluateLanes(const Instruction& instruction, LaneOperands operands, std::uint32_t* out) {
  const std::size_t lanes = instruction.type.lanes;
  const std::string_view illegal = IllegalLanes(instruction.op, lanes, operands);
  if (!illegal.empty()) return illegal;
  if (Integer(instruction.op, lanes, operands, out) || Float(instruction.op, lanes, operands, out)) return {};
  Rest(instruction, lanes, operands, out);
  return {};
}

std::string_view EvaluateScalar(Op op, std::int64_t a, std::int64_t b, std::int64_t& out) {
  const auto x = static_cast<std::uint64_t>(a);
  const auto y = static_cast<std::uint64_t>(b);
  if ((op == Op::kShl || op == Op::kShr || op == Op::kSar) && y > 63) return "a shift by 64 or more";
  if (op == Op::kDivU && b <= 0) return "a division by 0 or less";
  const auto compute = [&]() -> std::uint64_t {
    switch (op) {
      case Op::kAdd:
        return x + y;
      case Op::kSub:
        return x - y;
      case Op::kMul:
        return x * y;
      case Op::kAnd:
        return x & y;
      case Op::kOr:
        return x | y;
      case Op::kXor:
        return x ^ y;
      case Op::kShl:
        return x << y;
      case Op::kShr:
        return x >> y;
      case Op::kSar:
        return static_cast<std::uint64_t>(a >> b);
      case Op::kMin:
        return a < b ? x : y;
      case Op::kMax:
        return a > b ? x : y;
      default:  // kDivU
        return x / y;
    }
  };
  out = static_cast<std::int64_t>(compute());
  return {};
}

}  // namespace boltbeam::kernel
