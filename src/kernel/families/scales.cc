#include "kernel/families/scales.h"

#include "formats/scale_word.h"

namespace boltbeam::kernel {

std::uint32_t ScaleBytes(formats::Encoding encoding) { return formats::EncodingBits(encoding) / 8; }

Value LoadScale(Builder& builder, std::uint32_t buffer, formats::Encoding encoding, std::uint16_t lanes, Value offset,
                std::int64_t constant, bool ordered) {
  const auto load = [&](Scalar scalar, Memory memory) {
    return builder.Load(buffer, {scalar, lanes}, memory, offset, constant, ordered);
  };
  switch (encoding) {
    case formats::Encoding::kF32:
      return load(Scalar::kF32, Memory::kWord);
    case formats::Encoding::kF16:
      return load(Scalar::kF32, Memory::kF16);
    case formats::Encoding::kBf16:
      return load(Scalar::kF32, Memory::kBf16);
    case formats::Encoding::kE8m0Half:
    case formats::Encoding::kUe4m3Half:
      return DecodeScale(builder, encoding, load(Scalar::kI32, Memory::kU8));
    case formats::Encoding::kOne:
      break;
  }
  return builder.F32(1, lanes);
}

Value DecodeScale(Builder& builder, formats::Encoding encoding, Value byte) {
  // 2^(byte - 128): exponent byte - 1, and for bytes 0 and 1 a fraction alone. The larger pattern is the right one.
  if (encoding == formats::Encoding::kE8m0Half) return AsF32(Max(Shl(byte - 1, 23), Shl(byte + 1, 21)));
  // Four bits of exponent and three of fraction as the top of an f32 are 2^120 too small, and a fraction of exponent 0
  // comes out right.
  return AsF32(Shl(byte, 20)) * builder.F32(0x1p119F, byte.lanes());
}

Value CleanScale(formats::Encoding encoding, Value byte) {
  if (encoding != formats::Encoding::kUe4m3Half) return byte;
  Builder& b = byte.builder();
  const std::uint16_t lanes = byte.lanes();
  // 127 differs from the code by 0 only there: (code ^ 127) - 1 is negative then.
  return Select((byte ^ b.I32(0x7F, lanes)) - 1, b.I32(0, lanes), byte & b.I32(0x7F, lanes));
}

}  // namespace boltbeam::kernel
