// Tensor infos: every derived quantity is checked when it is derived, one multiplication at a time.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/printable.h"
#include "formats/format.h"
#include "gguf/contents.h"

namespace boltbeam::gguf {
namespace {

Result<std::string> TakeTensorName(Parse& parse) {
  const std::uint64_t at = parse.cursor.position();
  BOLTBEAM_ASSIGN(std::string name, parse.TakeText(kMaxTensorNameBytes, "tensor name"));
  parse.cursor.NamePlace(name);
  if (name.empty()) return Fail(Code::kGgufEmptyTensorName, parse.cursor.Where(at), "an empty tensor name", "a name");
  const bool control = std::ranges::any_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
  if (control) {
    return Fail(Code::kGgufTensorNameText, parse.cursor.Where(at), "control characters in a tensor name",
                "printable text");
  }
  if (!base::IsUtf8(name)) {
    BOLTBEAM_TRY(parse.Warn(Code::kGgufUtf8, parse.cursor.Where(at), "a tensor name that is not UTF-8", "UTF-8"));
  }
  return name;
}

Result<void> TakeShape(Parse& parse, TensorInfo& tensor) {
  const std::string where = parse.cursor.Where();
  BOLTBEAM_ASSIGN(tensor.dimensions, parse.cursor.Take<std::uint32_t>());
  if (tensor.dimensions == 0 || tensor.dimensions > tensor.shape.size()) {
    return Fail(Code::kGgufDimensions, where, fmt::format("{} dimensions", tensor.dimensions), "1 to 4");
  }
  tensor.elements = 1;
  for (std::uint32_t i = 0; i < tensor.dimensions; ++i) {
    const std::uint64_t at = parse.cursor.position();
    BOLTBEAM_ASSIGN(tensor.shape[i], parse.cursor.Take<std::uint64_t>());
    const std::uint64_t dimension = tensor.shape[i];
    if (dimension == 0) {
      return Fail(Code::kGgufEmptyTensor, parse.cursor.Where(at), fmt::format("dimension {} is 0", i), "1 or more");
    }
    if (dimension >> 63 != 0) {
      return Fail(Code::kGgufDimensionRange, parse.cursor.Where(at),
                  fmt::format("dimension {} is {}", i, static_cast<std::int64_t>(dimension)), "1 or more");
    }
    const auto product = CheckedMul(tensor.elements, dimension);
    if (!product) {
      return Fail(Code::kGgufElementOverflow, parse.cursor.Where(at),
                  fmt::format("{} elements times {}", tensor.elements, dimension), "a product that fits 64 bits");
    }
    tensor.elements = *product;
  }
  return {};
}

Result<const formats::Format*> TakeType(Parse& parse, TensorInfo& tensor) {
  const std::uint64_t at = parse.cursor.position();
  BOLTBEAM_ASSIGN(tensor.type, parse.cursor.Take<std::uint32_t>());
  if (formats::IsRemovedType(tensor.type)) {
    return Fail(Code::kGgufTensorTypeRemoved, parse.cursor.Where(at), fmt::format("tensor type {}", tensor.type),
                "a type that is still in use: make the file anew with today's tools");
  }
  const formats::Format* format = formats::FindType(tensor.type);
  if (format == nullptr) {
    return Fail(Code::kGgufTensorType, parse.cursor.Where(at),
                fmt::format("tensor type {}", static_cast<std::int32_t>(tensor.type)), "a type of the format registry");
  }
  return format;
}

Result<void> SizeTensor(Parse& parse, const formats::Format& format, TensorInfo& tensor) {
  const std::string where = parse.cursor.Where();
  if (tensor.shape[0] % format.elements != 0) {
    return Fail(Code::kGgufBlockMultiple, where, fmt::format("rows of {} elements in {}", tensor.shape[0], format.name),
                fmt::format("a multiple of {}", format.elements));
  }
  // The strides of the dimensions are divisors of this product, since no dimension is 0: they fit when it fits.
  const auto bytes = CheckedMul<std::uint64_t>(tensor.elements / format.elements, format.bytes);
  if (!bytes) {
    return Fail(Code::kGgufByteOverflow, where, fmt::format("{} elements of {}", tensor.elements, format.name),
                "a size in bytes that fits 64 bits");
  }
  tensor.bytes = *bytes;
  if (!CheckedAlignUp(tensor.bytes, parse.contents.alignment)) {
    return Fail(Code::kGgufPadOverflow, where, fmt::format("{} bytes", tensor.bytes),
                "a size that fits 64 bits when it is padded");
  }
  return {};
}

Result<TensorInfo> TakeTensorInfo(Parse& parse, std::uint64_t index) {
  parse.cursor.BeginPlace("tensor", index);
  TensorInfo tensor;
  BOLTBEAM_ASSIGN(tensor.name, TakeTensorName(parse));
  BOLTBEAM_TRY(TakeShape(parse, tensor));
  BOLTBEAM_ASSIGN(const formats::Format* format, TakeType(parse, tensor));
  BOLTBEAM_TRY(SizeTensor(parse, *format, tensor));
  const std::uint64_t at = parse.cursor.position();
  BOLTBEAM_ASSIGN(tensor.file_offset, parse.cursor.Take<std::uint64_t>());
  if (tensor.file_offset % parse.contents.alignment != 0) {
    return Fail(Code::kGgufOffsetAlignment, parse.cursor.Where(at), fmt::format("offset {}", tensor.file_offset),
                fmt::format("a multiple of {}", parse.contents.alignment));
  }
  return tensor;
}

Result<void> IndexTensors(Parse& parse) {
  const auto& tensors = parse.contents.tensors;
  auto& order = parse.contents.tensors_by_name;
  order.resize(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return tensors[a].name != tensors[b].name ? tensors[a].name < tensors[b].name : a < b;
  });
  const auto same = std::ranges::adjacent_find(
      order, [&](std::uint32_t a, std::uint32_t b) { return tensors[a].name == tensors[b].name; });
  if (same == order.end()) return {};
  const std::uint32_t second = *std::next(same);
  parse.cursor.BeginPlace("tensor", second);
  parse.cursor.NamePlace(tensors[second].name);
  return Fail(Code::kGgufDuplicateTensor, parse.cursor.Where(), fmt::format("the name of tensor {} again", *same),
              "each name once");
}

}  // namespace

Result<void> ParseTensorInfos(Parse& parse, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    BOLTBEAM_ASSIGN(TensorInfo tensor, TakeTensorInfo(parse, i));
    parse.contents.tensors.push_back(std::move(tensor));
  }
  return IndexTensors(parse);
}

}  // namespace boltbeam::gguf
