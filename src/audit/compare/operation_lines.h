// Lines of the file that test-export-graph-ops writes and test-backend-ops --test-file reads: an operation with the
// types, shapes and strides of its result and sources. What a line is is told by its shapes, because the numbers of
// operations change from release to release.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace boltbeam::audit {

struct OperationLine {
  struct Source {
    std::uint64_t type = 0;
    std::array<std::uint64_t, 4> shape{1, 1, 1, 1}, strides{};  // elements; bytes
  };
  std::string operation;  // its number
  std::uint64_t type = 0;
  std::array<std::uint64_t, 4> shape{1, 1, 1, 1};
  std::vector<std::string> parameters;
  std::vector<Source> sources;
  std::string name;

  /// nullopt: another form.
  static std::optional<OperationLine> Parse(std::string_view line);
  [[nodiscard]] std::string Text() const;

  /// One table times one vector.
  [[nodiscard]] bool IsProduct() const;
  /// A query against keys and values of the same positions, in one operation, with its mask.
  [[nodiscard]] bool IsAttention() const;
  /// Of the tables, or of keys and values.
  [[nodiscard]] std::uint64_t StreamedBytes() const;
};

/// Attention with at most so many positions, none of them masked. Its cache is exported padded; its own program goes
/// past what is masked without reading it.
OperationLine AtPositions(const OperationLine& attention, std::uint64_t positions);

/// A product with a table of so many rows. Those of one format and width are one line, whatever they were called.
OperationLine WithRows(const OperationLine& product, std::uint64_t rows);

/// A product or attention over several tables or layers in one operation, one behind the other as a token reads them.
struct Stacked {
  OperationLine line;
  double copies = 1;
};
/// So many that they are `bytes` together: more than a cache keeps from one run to the next.
Stacked StackTo(const OperationLine& line, std::uint64_t bytes);

}  // namespace boltbeam::audit
