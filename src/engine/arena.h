// Memory that lives as long as an engine: small buffers cut from large ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "runtime/memory.h"

namespace boltbeam::engine {

class Arena {
 public:
  /// Zeroed, aligned to a cache line's pair so that no two buffers share a line.
  Result<std::byte*> Allocate(std::uint64_t bytes) {
    const std::uint64_t rounded = AlignUp<std::uint64_t>(std::max<std::uint64_t>(bytes, 1), 128);
    if (blocks_.empty() || used_ + rounded > blocks_.back().bytes()) {
      BOLTBEAM_ASSIGN(runtime::HugeBuffer block, runtime::HugeBuffer::Allocate(std::max(rounded, kBlock)));
      blocks_.push_back(std::move(block));
      used_ = 0;
    }
    std::byte* const place = blocks_.back().data() + used_;
    used_ += rounded;
    total_ += rounded;
    return place;
  }

  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  static constexpr std::uint64_t kBlock = 8ULL << 20;
  std::vector<runtime::HugeBuffer> blocks_;
  std::uint64_t used_ = 0, total_ = 0;
};

}  // namespace boltbeam::engine
