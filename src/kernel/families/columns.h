// The columns of activations that one pass over a row group's weights is multiplied by, while a product is written.
#pragma once

#include <cstdint>

#include "kernel/builder.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

class Columns {
 public:
  Columns(Builder& builder, const ActivationLayout& layout, const GemvGeometry& geometry, std::uint32_t buffer,
          std::int64_t stride)
      : b_(builder),
        layout_(layout),
        buffer_(buffer),
        lanes_(geometry.lanes),
        count_(geometry.columns),
        stride_(stride) {}

  [[nodiscard]] const ActivationLayout& layout() const { return layout_; }
  [[nodiscard]] std::uint16_t count() const { return count_; }
  [[nodiscard]] std::int64_t stride() const { return stride_; }

  /// The block that lies `at` bytes after `input` in the first column.
  void BeginBlock(Value input, std::int64_t at) {
    input_ = input;
    at_ = at;
  }

  /// A word of the block in every lane.
  [[nodiscard]] Value Word(std::uint16_t column, std::int64_t offset) const {
    return Broadcast(Scalar::kI32, column, offset);
  }
  [[nodiscard]] Value Float(std::uint16_t column, std::int64_t offset) const {
    return Broadcast(Scalar::kF32, column, offset);
  }

 private:
  [[nodiscard]] Value Broadcast(Scalar scalar, std::uint16_t column, std::int64_t offset) const {
    return b_.LoadBroadcast(buffer_, {scalar, lanes_}, Memory::kWord, input_, at_ + offset + column * stride_);
  }

  Builder& b_;
  const ActivationLayout layout_;
  const std::uint32_t buffer_;
  const std::uint16_t lanes_, count_;
  const std::int64_t stride_;  // bytes from column to column
  Value input_;
  std::int64_t at_ = 0;
};

}  // namespace boltbeam::kernel
