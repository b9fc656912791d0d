// Makes GGUF files byte by byte, wrong ones too: for tests and fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace boltbeam::gguf::testing {

/// Little-endian bytes of numbers and length-prefixed text.
class Bytes {
 public:
  template <typename T>
  Bytes& Number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  /// A u64 whose place is remembered: tests replace each by values that are likely to hurt.
  Bytes& Count(std::uint64_t value);
  Bytes& Text(std::string_view text);
  Bytes& Raw(std::string_view bytes);
  Bytes& Append(const Bytes& other);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] const std::vector<std::size_t>& counts() const { return counts_; }

 private:
  std::string bytes_;
  std::vector<std::size_t> counts_;
};

/// Everything is as it should be until it is changed: what stays empty is derived.
class Builder {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::optional<std::uint64_t> key_count;
  std::optional<std::uint64_t> tensor_count;
  std::uint64_t alignment = 32;     // of the padding before the data
  std::optional<std::string> data;  // empty: as many bytes as the tensors need
  char padding = '\0';

  Builder& Key(std::string_view key, ValueType type, const Bytes& value);
  Builder& U32(std::string_view key, std::uint32_t value);
  Builder& String(std::string_view key, std::string_view value);
  Builder& Array(std::string_view key, ValueType element, std::uint64_t count, const Bytes& elements);
  /// offset empty: behind the tensor before, padded.
  Builder& Tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                  std::optional<std::uint64_t> offset = {}, std::optional<std::uint32_t> dimensions = {});

  [[nodiscard]] Bytes Build() const;

 private:
  Bytes metadata_;
  Bytes infos_;
  std::uint64_t keys_ = 0;
  std::uint64_t tensors_ = 0;
  std::uint64_t data_end_ = 0;
};

/// A small file with a value of every kind and two tensors.
Builder SmallModel();

/// A file without a name that lives as long as this object.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  [[nodiscard]] std::string path() const;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

/// Reads everything that an open file offers, as its users would. Returns what is wrong with it: empty when nothing is.
std::string Examine(const File& file);

}  // namespace boltbeam::gguf::testing
