// How one scale of a block (d or m), or one element of a plain float format, is written in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/format.h"

namespace boltbeam::formats {

std::uint32_t EncodingBits(Encoding encoding);

/// bytes must hold at least EncodingBits / 8.
double DecodeFloat(Encoding encoding, std::span<const std::byte> bytes);
void EncodeFloat(Encoding encoding, float value, std::span<std::byte> bytes);

/// The float that EncodeFloat's bytes stand for: what a quantizer must divide by.
float RoundTo(Encoding encoding, float value);

}  // namespace boltbeam::formats
