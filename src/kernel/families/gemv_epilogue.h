// What becomes of a row group's sums: the end of a product.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernel/rows.h"

namespace boltbeam::kernel {

enum class Epilogue : std::uint8_t {
  kStore,     // output = product
  kResidual,  // output += product
  kBias,      // output = product + bias
};

/// For names of programs: ".residual".
std::string_view EpilogueSuffix(Epilogue epilogue);

class GemvEpilogue {
 public:
  /// Adds the buffers that it needs: the output, and the bias.
  GemvEpilogue(Builder& builder, Epilogue epilogue);

  /// The rows' results of one column. `out` is where they lie in that column, `group_out` where in the first.
  void Write(Rows sums, Value out, std::int64_t offset, Value group_out);

 private:
  Builder& b_;
  const Epilogue epilogue_;
  std::uint32_t output_ = 0, bias_ = 0;
};

}  // namespace boltbeam::kernel
