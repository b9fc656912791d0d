// Reads a file front to back with pread, through one buffer. Every comparison with the end of the file is subtractive:
// what remains is compared, never a sum that could wrap.
#pragma once

#include <sys/types.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace boltbeam::gguf {

/// Reads out.size() bytes at offset; kFileRead when the file gives fewer.
Result<void> ReadExactly(int fd, const std::string& path, std::uint64_t offset, std::span<std::byte> out);

class Cursor {
 public:
  Cursor(int fd, std::string path, std::uint64_t file_bytes, std::uint64_t position, std::uint64_t end);
  Cursor(int fd, std::string path, std::uint64_t file_bytes) : Cursor(fd, std::move(path), file_bytes, 0, file_bytes) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t remaining() const { return end_ - position_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }

  /// Names what is being read, for messages: "kv 17 'llama.block_count'". The name is set once it is known.
  void BeginPlace(std::string_view kind, std::uint64_t index);
  void NamePlace(std::string_view name);
  /// "<path>: <place> @ byte <offset>".
  [[nodiscard]] std::string Where(std::uint64_t offset) const;
  [[nodiscard]] std::string Where() const { return Where(position_); }

  /// One little-endian number; kGgufTruncated at the end of the file.
  template <typename T>
    requires std::integral<T> || std::floating_point<T>
  Result<T> Take() {
    std::array<std::byte, sizeof(T)> bytes;
    BOLTBEAM_TRY(TakeBytes(bytes));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  Result<void> TakeBytes(std::span<std::byte> out);
  /// The next bytes, at least 1 and at most limit; valid until the next call.
  Result<std::span<const std::byte>> TakeSome(std::uint64_t limit);
  Result<void> Skip(std::uint64_t bytes);

 private:
  [[nodiscard]] std::unexpected<Error> EndOfFile(std::uint64_t needed) const;
  Result<void> Fill();

  int fd_;
  std::string path_;
  std::uint64_t file_bytes_;
  std::uint64_t position_;
  std::uint64_t end_;
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_offset_ = 0;  // of the buffer's first byte in the file
  std::uint64_t buffer_bytes_ = 0;
  std::string_view place_kind_ = "header";
  std::uint64_t place_index_ = 0;
  bool place_numbered_ = false;
  std::string place_name_;
};

}  // namespace boltbeam::gguf
