// Block scales and encoded sub-block scales as f32 lanes.
#pragma once

#include <cstdint>

#include "formats/format.h"
#include "kernel/builder.h"

namespace boltbeam::kernel {

/// Bytes of one scale of this encoding in a row group, for every row.
std::uint32_t ScaleBytes(formats::Encoding encoding);

/// `lanes` scales that lie side by side, exact. kUe4m3Half without the code that stands for 0 beside 0 itself.
Value LoadScale(Builder& builder, std::uint32_t buffer, formats::Encoding encoding, std::uint16_t lanes, Value offset,
                std::int64_t constant, bool ordered);

/// A scale of one byte from that byte in an i32 lane.
Value DecodeScale(Builder& builder, formats::Encoding encoding, Value byte);

/// The byte of an encoded scale as DecodeScale and LoadScale expect it.
Value CleanScale(formats::Encoding encoding, Value byte);

}  // namespace boltbeam::kernel
