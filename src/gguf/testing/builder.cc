#include "gguf/testing/builder.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "formats/format.h"

namespace boltbeam::gguf::testing {
namespace {

/// 0 for what has no size: the file is wrong on purpose then.
std::uint64_t SizeOf(const std::vector<std::uint64_t>& shape, std::uint32_t type) {
  const formats::Format* format = formats::FindType(type);
  std::uint64_t elements = 1;
  for (const std::uint64_t dimension : shape) elements *= std::min<std::uint64_t>(dimension, 64);
  return format == nullptr ? 0 : elements / format->elements * format->bytes;
}

std::uint64_t Pad(std::uint64_t value, std::uint64_t alignment) {
  return alignment == 0 ? value : (value + alignment - 1) / alignment * alignment;
}

}  // namespace

Bytes& Bytes::Count(std::uint64_t value) {
  counts_.push_back(bytes_.size());
  return Number(value);
}

Bytes& Bytes::Text(std::string_view text) {
  Count(text.size());
  return Raw(text);
}

Bytes& Bytes::Raw(std::string_view bytes) {
  bytes_ += bytes;
  return *this;
}

Bytes& Bytes::Append(const Bytes& other) {
  for (const std::size_t at : other.counts_) counts_.push_back(bytes_.size() + at);
  return Raw(other.bytes_);
}

Builder& Builder::Key(std::string_view key, ValueType type, const Bytes& value) {
  ++keys_;
  metadata_.Text(key).Number(static_cast<std::uint32_t>(type)).Append(value);
  return *this;
}

Builder& Builder::U32(std::string_view key, std::uint32_t value) {
  return Key(key, ValueType::kU32, Bytes().Number(value));
}

Builder& Builder::String(std::string_view key, std::string_view value) {
  return Key(key, ValueType::kString, Bytes().Text(value));
}

Builder& Builder::Array(std::string_view key, ValueType element, std::uint64_t count, const Bytes& elements) {
  return Key(key, ValueType::kArray, Bytes().Number(static_cast<std::uint32_t>(element)).Count(count).Append(elements));
}

Builder& Builder::Tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                         std::optional<std::uint64_t> offset, std::optional<std::uint32_t> dimensions) {
  ++tensors_;
  infos_.Text(name).Number(dimensions.value_or(static_cast<std::uint32_t>(shape.size())));
  for (const std::uint64_t dimension : shape) infos_.Count(dimension);
  const std::uint64_t at = offset.value_or(Pad(data_end_, alignment));
  infos_.Number(type).Count(at);
  data_end_ = at + SizeOf(shape, type);
  return *this;
}

Bytes Builder::Build() const {
  Bytes file;
  file.Raw(magic).Number(version).Count(tensor_count.value_or(tensors_)).Count(key_count.value_or(keys_));
  file.Append(metadata_).Append(infos_);
  file.Raw(std::string(Pad(file.bytes().size(), alignment) - file.bytes().size(), padding));
  if (data) return file.Raw(*data);
  std::string filling;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(data_end_, 4096); ++i) {
    filling.push_back(static_cast<char>(i % 5));
  }
  return file.Raw(filling);
}

Builder SmallModel() {
  Builder builder;
  builder.String("general.architecture", "test")
      .U32("test.block_count", 2)
      .Key("test.wide", ValueType::kU64, Bytes().Number<std::uint64_t>(1))
      .Key("test.epsilon", ValueType::kF32, Bytes().Number(1e-6F))
      .Key("test.flag", ValueType::kBool, Bytes().Number<std::uint8_t>(1))
      .Array("test.tokens", ValueType::kString, 3, Bytes().Text("a").Text("").Text("ccc"))
      .Array("test.flags", ValueType::kBool, 2, Bytes().Number<std::uint8_t>(0).Number<std::uint8_t>(1))
      .Array("test.scores", ValueType::kF32, 2, Bytes().Number(0.5F).Number(-1.0F))
      .Tensor("a.weight", {4, 2}, 0)
      .Tensor("b.weight", {32}, 8);
  return builder;
}

MemoryFile::MemoryFile(std::string_view bytes) : fd_(::memfd_create("gguf", MFD_CLOEXEC)) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
    if (count <= 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

MemoryFile::~MemoryFile() { ::close(fd_); }

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", fd_); }

std::string Examine(const File& file) {
  for (const KeyValue& pair : file.metadata()) {
    if (file.Find(pair.key) != &pair) return fmt::format("key '{}' is not found", pair.key);
    const auto* array = std::get_if<ArrayRef>(&pair.value);
    if (array == nullptr) continue;
    const auto strings = file.GetStrings(pair.key);
    const auto integers = file.GetIntegers(pair.key);
    const auto floats = file.GetFloats(pair.key);
    // A u64 above 2^63 is the one element that has a type but can't be read.
    if (!strings && !integers && !floats && array->element != ValueType::kU64) {
      return fmt::format("array '{}' can't be read", pair.key);
    }
    if (strings && strings->size() != array->count) return fmt::format("array '{}' is short", pair.key);
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (file.FindTensor(tensor.name) != &tensor) return fmt::format("tensor '{}' is not found", tensor.name);
    if (tensor.file_offset < file.data_offset() || tensor.bytes > file.file_bytes() - tensor.file_offset) {
      return fmt::format("tensor '{}' lies outside the file", tensor.name);
    }
    std::vector<std::byte> bytes(tensor.bytes);
    if (!file.Read(tensor.file_offset, bytes)) return fmt::format("tensor '{}' can't be read", tensor.name);
  }
  return {};
}

}  // namespace boltbeam::gguf::testing
