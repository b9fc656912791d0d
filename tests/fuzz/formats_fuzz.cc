// Any block can be dequantised, any numbers can be quantised, and any text is a registry or an error.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/embedded.h"
#include "byte_source.h"
#include "formats/format.h"

namespace {

using namespace boltbeam::formats;
using boltbeam::fuzz::ByteSource;

void TryBlocks(const Format& format, std::string_view bytes) {
  const std::size_t blocks = bytes.size() / format.bytes;
  std::vector<double> values(blocks * format.elements);
  const auto whole = std::as_bytes(std::span(bytes)).first(blocks * format.bytes);
  const auto result = Dequantize(format, whole, values);
  if (result.has_value() != format.IsKnown()) __builtin_trap();
}

void TryValues(const Format& format, std::string_view bytes) {
  const std::size_t blocks = bytes.size() / sizeof(float) / format.elements;
  if (blocks == 0) return;
  std::vector<float> values(blocks * format.elements);
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  std::vector<std::byte> out(blocks * format.bytes);
  const auto result = Quantize(format, values, out);
  if (result.has_value() != CanQuantize(format)) __builtin_trap();
  std::vector<double> back(values.size());
  if (!result || !Dequantize(format, out, back)) return;
  bool tame = true;  // numbers of the size of weights come back finite
  for (const float value : values) tame = tame && std::fabs(value) < 1e4F;
  for (const double value : back) {
    if (tame && !std::isfinite(value)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteSource source(data, size);
  const std::uint32_t kind = source.Below(4);
  if (kind == 0) {
    const auto types = boltbeam::base::Embedded("formats/types.json").value();
    const auto rows = boltbeam::base::Embedded("formats/rows.json").value();
    if (source.OneIn(2)) {
      if (!ParseRegistry(source.rest(), rows)) return 0;
    } else {
      if (!ParseRegistry(types, source.rest())) return 0;
    }
    return 0;
  }
  const auto formats = AllFormats();
  const Format& format = formats[source.Below(static_cast<std::uint32_t>(formats.size()))];
  if (kind == 1) {
    TryBlocks(format, source.rest());
  } else {
    TryValues(format, source.rest());
  }
  return 0;
}
