#include "audit/compare/operation_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "audit/import/numbers.h"

namespace boltbeam::audit {
namespace {

constexpr std::uint64_t kRowStep = 64;  // rows of a table are divided among threads in chunks of so many
constexpr std::uint64_t kMostLayers = 4096;

class Fields {
 public:
  explicit Fields(std::string_view text) : text_(imports::Trim(text)) {}

  std::string_view Word() {
    const std::size_t end = std::min(text_.find(' '), text_.size());
    const std::string_view word = text_.substr(0, end);
    text_ = imports::Trim(text_.substr(end));
    return word;
  }
  bool Number(std::uint64_t& value) {
    const std::string_view word = Word();
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
  }
  bool Numbers(std::array<std::uint64_t, 4>& values) {
    return std::ranges::all_of(values, [&](std::uint64_t& value) { return Number(value); });
  }
  [[nodiscard]] std::string_view Rest() const { return text_; }

 private:
  std::string_view text_;
};

}  // namespace

std::optional<OperationLine> OperationLine::Parse(std::string_view text) {
  constexpr std::uint64_t kMost = 64;  // parameters or sources
  Fields fields(text);
  OperationLine line;
  line.operation = fields.Word();
  std::uint64_t count = 0;
  if (!fields.Number(line.type) || !fields.Numbers(line.shape) || !fields.Number(count) || count > kMost) return {};
  for (std::uint64_t i = 0; i < count; ++i) line.parameters.emplace_back(fields.Word());
  if (!fields.Number(count) || count > kMost) return {};
  line.sources.resize(count);
  for (Source& source : line.sources) {
    if (!fields.Number(source.type) || !fields.Numbers(source.shape) || !fields.Numbers(source.strides)) return {};
  }
  line.name = fields.Rest();
  return line;
}

std::string OperationLine::Text() const {
  std::string text = fmt::format("{} {} {} {}", operation, type, fmt::join(shape, " "), parameters.size());
  for (const std::string& parameter : parameters) text += " " + parameter;
  text += fmt::format(" {}", sources.size());
  for (const Source& source : sources) {
    text += fmt::format(" {} {} {}", source.type, fmt::join(source.shape, " "), fmt::join(source.strides, " "));
  }
  return name.empty() ? text : text + " " + name;
}

bool OperationLine::IsProduct() const {
  if (sources.size() != 2) return false;
  using Shape = std::array<std::uint64_t, 4>;
  const Shape& table = sources[0].shape;
  return table[1] > 1 && table[2] * table[3] == 1 && sources[1].shape == Shape{table[0], 1, 1, 1} &&
         shape == Shape{table[1], 1, 1, 1};
}

bool OperationLine::IsAttention() const {
  if (sources.size() < 4) return false;
  const Source &query = sources[0], &keys = sources[1], &values = sources[2], &mask = sources[3];
  return query.shape[1] == 1 && query.shape[0] == keys.shape[0] && keys.shape[1] == values.shape[1] &&
         mask.shape[0] == keys.shape[1] && keys.shape[2] == values.shape[2] && query.shape[2] % keys.shape[2] == 0 &&
         shape == std::array<std::uint64_t, 4>{values.shape[0], query.shape[2], 1, 1};
}

std::uint64_t OperationLine::StreamedBytes() const {
  return IsAttention() ? sources[1].strides[3] + sources[2].strides[3] : sources[0].strides[3];
}

OperationLine AtPositions(const OperationLine& attention, std::uint64_t positions) {
  OperationLine line = attention;
  const std::uint64_t padded = attention.sources[1].shape[1], kept = std::min(padded, positions);
  for (const std::size_t index : {1, 2}) {
    OperationLine::Source& cache = line.sources[index];
    cache.shape[1] = kept;
    if (cache.strides[2] > cache.strides[1]) cache.strides[2] = cache.strides[2] / padded * kept;  // by heads
    cache.strides[3] = cache.strides[3] / padded * kept;
  }
  OperationLine::Source& mask = line.sources[3];
  mask.shape[0] = kept;
  for (const std::size_t side : {1, 2, 3}) mask.strides[side] = mask.strides[side] / padded * kept;
  return line;
}

OperationLine WithRows(const OperationLine& product, std::uint64_t rows) {
  OperationLine line = product;
  OperationLine::Source& table = line.sources[0];
  table.shape[1] = line.shape[0] = rows;
  table.strides[2] = table.strides[3] = rows * table.strides[1];
  line.name = "rows";
  return line;
}

Stacked StackTo(const OperationLine& line, std::uint64_t bytes) {
  Stacked stacked{line, 1};
  const std::uint64_t one = line.StreamedBytes();
  if (one >= bytes || one == 0) return stacked;
  if (line.IsAttention()) {
    const std::uint64_t layers = std::min(kMostLayers, (bytes + one - 1) / one);
    stacked.line.shape[3] = layers;
    for (const std::size_t index : {0, 1, 2}) stacked.line.sources[index].shape[3] = layers;
    stacked.copies = static_cast<double>(layers);
    return stacked;
  }
  const std::uint64_t row_bytes = line.sources[0].strides[1], own_rows = line.sources[0].shape[1];
  const std::uint64_t rows = ((bytes + row_bytes - 1) / row_bytes + kRowStep - 1) / kRowStep * kRowStep;
  stacked.line = WithRows(line, rows);
  stacked.copies = static_cast<double>(rows) / static_cast<double>(own_rows);
  return stacked;
}

}  // namespace boltbeam::audit
