// One operation of another program, as test-backend-ops names it: what it is, of which shapes and formats.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boltbeam::imports {

struct ForeignTensor {
  std::string format;  // lower case as printed: "q4_K", "f32"
  std::array<std::uint64_t, 4> shape{1, 1, 1, 1};

  [[nodiscard]] std::uint64_t Rows() const { return shape[1] * shape[2] * shape[3]; }
  /// Bytes of all of it; nullopt: a format that is not known, or too large to be true.
  [[nodiscard]] std::optional<double> Bytes() const;
  [[nodiscard]] std::optional<double> RowBytes() const;
};

struct ForeignOperation {
  std::string kind;  // "MUL_MAT"
  std::string name;  // of the first tensor of its like: never used to match
  ForeignTensor result;
  std::vector<ForeignTensor> sources;

  /// What one run must move: of a table that is gathered from or written into, only the rows that are.
  [[nodiscard]] std::optional<double> RealBytes() const;
  /// What test-backend-ops counts: the result and all sources whole.
  [[nodiscard]] std::optional<double> CountedBytes() const;
  /// Why CountedBytes is not what one run moves; empty when it is.
  [[nodiscard]] std::string WhyCountedIsWrong() const;
};

/// "name=Kcur-0,type=f32,ne=[1024,1,1,1],op_params=[],sources=q4_K[1024,1024,1,1],f32[1024,1,1,1]"; nullopt: cut or of
/// another form.
std::optional<ForeignOperation> ParseOperation(std::string_view kind, std::string_view parameters);

}  // namespace boltbeam::imports
