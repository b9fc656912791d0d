// Large anonymous memory on huge pages: what weights and the KV cache lie in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace boltbeam::runtime {

class HugeBuffer {
 public:
  /// Zeroed, aligned to 2 MiB, asked to be backed by huge pages. kOutOfMemory says what was asked for and what there
  /// is.
  static Result<HugeBuffer> Allocate(std::uint64_t bytes);
  HugeBuffer() = default;
  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;
  ~HugeBuffer();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Bytes that the kernel backs with huge pages now (/proc/self/smaps).
  [[nodiscard]] std::uint64_t HugePageBytes() const;

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  void* mapping_ = nullptr;
  std::uint64_t mapped_ = 0;
};

}  // namespace boltbeam::runtime
