#include "audit/import/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "audit/import/numbers.h"
#include "formats/format.h"

namespace boltbeam::imports {
namespace {

constexpr double kMostElements = 1e15;  // no tensor has more
constexpr std::size_t kMostSources = 16;

// "[1024,1,1,1]" at the beginning of text, which then begins behind it.
std::optional<std::array<std::uint64_t, 4>> TakeShape(std::string_view& text) {
  if (!text.starts_with('[')) return std::nullopt;
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  std::string_view inside = text.substr(1, close - 1);
  std::array<std::uint64_t, 4> shape{1, 1, 1, 1};
  double elements = 1;
  for (std::uint64_t& size : shape) {
    const std::size_t comma = inside.find(',');
    const auto value = ParseNumber(inside.substr(0, comma));
    if (!value || *value < 1 || *value > kMostElements || *value != std::floor(*value)) return std::nullopt;
    size = static_cast<std::uint64_t>(*value);
    elements *= *value;
    if (comma == std::string_view::npos) break;
    inside.remove_prefix(comma + 1);
  }
  if (elements > kMostElements) return std::nullopt;
  text.remove_prefix(close + 1);
  return shape;
}

std::optional<std::string_view> Between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t at = text.find(begin);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + begin.size());
  const std::size_t stop = text.find(end);
  if (stop == std::string_view::npos) return std::nullopt;
  return text.substr(0, stop);
}

bool Gathers(const std::string& kind) { return kind == "GET_ROWS"; }
bool Scatters(const std::string& kind) { return kind == "SET_ROWS"; }
bool ChoosesExperts(const std::string& kind) { return kind == "MUL_MAT_ID"; }

const formats::Format* FormatOf(std::string_view name) {
  std::string upper;
  for (const unsigned char c : name) upper += static_cast<char>(std::toupper(c));
  return formats::FindFormat(upper);
}

}  // namespace

std::optional<double> ForeignTensor::RowBytes() const {
  const formats::Format* found = FormatOf(format);
  if (found == nullptr) return std::nullopt;
  return std::ceil(static_cast<double>(shape[0]) / found->elements) * found->bytes;
}

std::optional<double> ForeignTensor::Bytes() const {
  const auto row = RowBytes();
  return row ? std::optional(*row * static_cast<double>(Rows())) : std::nullopt;
}

std::optional<double> ForeignOperation::CountedBytes() const {
  std::optional<double> sum = result.Bytes();
  for (const ForeignTensor& source : sources) {
    const auto bytes = source.Bytes();
    if (!sum || !bytes) return std::nullopt;
    *sum += *bytes;
  }
  return sum;
}

std::optional<double> ForeignOperation::RealBytes() const {
  if (sources.size() < 2) return CountedBytes();
  const auto index = sources[1].Bytes();
  if (Gathers(kind)) {  // the rows that are read, the numbers that say which, the result
    const auto row = sources[0].RowBytes(), out = result.Bytes();
    if (!row || !index || !out) return std::nullopt;
    return *row * static_cast<double>(result.Rows()) + *index + *out;
  }
  if (Scatters(kind)) {
    const auto in = sources[0].Bytes(), row = result.RowBytes();
    if (!in || !index || !row) return std::nullopt;
    return *in + *index + *row * static_cast<double>(sources[0].Rows());
  }
  if (ChoosesExperts(kind) && sources.size() > 2) {  // of the experts' tables those that the numbers name
    const auto row = sources[0].RowBytes(), activations = sources[1].Bytes(), out = result.Bytes();
    if (!row || !activations || !out) return std::nullopt;
    const std::uint64_t chosen = std::min(sources[0].shape[2], sources[2].shape[0] * sources[2].Rows());
    return *row * static_cast<double>(sources[0].shape[1] * chosen) + *activations + *out;
  }
  return CountedBytes();
}

std::string ForeignOperation::WhyCountedIsWrong() const {
  if (sources.empty()) return {};
  if (Gathers(kind)) {
    return fmt::format("the whole table of {} rows was counted; {} read", sources[0].Rows(),
                       result.Rows() == 1 ? "one row is" : fmt::format("{} rows are", result.Rows()));
  }
  if (Scatters(kind)) {
    return fmt::format("the whole table of {} rows was counted; {} written", result.Rows(),
                       sources[0].Rows() == 1 ? "one row is" : fmt::format("{} rows are", sources[0].Rows()));
  }
  if (ChoosesExperts(kind)) return "the tables of all experts were counted; only the chosen ones are read";
  return {};
}

std::optional<ForeignOperation> ParseOperation(std::string_view kind, std::string_view parameters) {
  ForeignOperation operation;
  operation.kind = std::string(Trim(kind));
  operation.name = std::string(Between(parameters, "name=", ",type=").value_or(""));
  const auto type = Between(parameters, "type=", ",");
  const std::size_t shape_at = parameters.find("ne=[");
  const std::size_t sources_at = parameters.find("sources=");
  if (operation.kind.empty() || !type || shape_at == std::string_view::npos || sources_at == std::string_view::npos) {
    return std::nullopt;
  }
  operation.result.format = std::string(*type);
  std::string_view shape_text = parameters.substr(shape_at + std::string_view("ne=").size());
  const auto shape = TakeShape(shape_text);
  if (!shape) return std::nullopt;
  operation.result.shape = *shape;
  std::string_view rest = parameters.substr(sources_at + std::string_view("sources=").size());
  while (!rest.empty() && operation.sources.size() < kMostSources) {
    const std::size_t open = rest.find('[');
    if (open == std::string_view::npos) return std::nullopt;
    ForeignTensor tensor{std::string(rest.substr(0, open)), {}};
    rest.remove_prefix(open);
    const auto source = TakeShape(rest);
    if (!source) return std::nullopt;
    tensor.shape = *source;
    operation.sources.push_back(std::move(tensor));
    if (!rest.starts_with(',')) break;
    rest.remove_prefix(1);
  }
  return operation;
}

}  // namespace boltbeam::imports
