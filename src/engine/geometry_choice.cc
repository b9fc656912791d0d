#include "engine/geometry_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "engine/attention_choice.h"
#include "kernel/knobs.h"
#include "kernel/space.h"

namespace boltbeam::engine {
namespace {

bool Matches(const GeometryChoice& choice, const model::Tensor& tensor) {
  return choice.table.empty() || choice.table == tensor.format->name || choice.table == TableName(tensor);
}

bool IsTable(const GeometryChoice& choice) { return choice.table != kAttentionTable && choice.table != kTailsTable; }

}  // namespace

Result<std::uint64_t> PieceBytes(std::span<const GeometryChoice> choices, std::uint64_t piece_bytes) {
  constexpr std::string_view kPiece = "piece=";
  for (const GeometryChoice& choice : choices) {
    if (choice.table != kTailsTable) continue;
    const std::string_view knobs = choice.knobs;
    const std::string_view number = knobs.starts_with(kPiece) ? knobs.substr(kPiece.size()) : "";
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), piece_bytes);
    if (number.empty() || error != std::errc() || end != number.data() + number.size() || piece_bytes == 0) {
      return Fail(Code::kUsage, "geometry of tails", choice.knobs, "piece=BYTES, 1 or more");
    }
  }
  return piece_bytes;
}

std::string TableName(const model::Tensor& tensor) {
  return fmt::format("{}.{}x{}", tensor.format->name, tensor.rows(), tensor.cols());
}

Result<GeometryChoice> ParseGeometryChoice(std::string_view text) {
  const std::size_t colon = text.find(':');
  GeometryChoice choice;
  if (colon != std::string_view::npos) choice.table = text.substr(0, colon);
  choice.knobs = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (choice.table == kAttentionTable) {
    BOLTBEAM_TRY(TurnAttention(choice.knobs, {}));
  } else if (choice.table == kTailsTable) {
    BOLTBEAM_TRY(PieceBytes({&choice, 1}, 1));
  } else {
    BOLTBEAM_TRY(kernel::ParseGeometry(choice.knobs, {}));
  }
  return choice;
}

Result<kernel::GemvGeometry> GeometryFor(std::span<const GeometryChoice> choices, const model::Tensor& tensor,
                                         const kernel::VectorFacts& facts) {
  kernel::GemvGeometry geometry = kernel::DefaultGeometry(*tensor.format, tensor.cols(), facts);
  bool is_chosen = false;
  for (const GeometryChoice& choice : choices) {
    if (!Matches(choice, tensor)) continue;
    BOLTBEAM_ASSIGN(geometry, kernel::ParseGeometry(choice.knobs, geometry));
    is_chosen = true;
  }
  if (!is_chosen) return geometry;
  const kernel::GemvShape shape{.rows = tensor.rows(), .cols = tensor.cols()};
  std::string reasons;
  for (const kernel::Reason& reason : kernel::Refusals(geometry, *tensor.format, shape, kernel::SpaceFactsOf(facts))) {
    reasons +=
        fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", kernel::RefusalName(reason.refusal), reason.evidence);
  }
  if (reasons.empty()) return geometry;
  return Fail(Code::kKernelIllegal, fmt::format("geometry of {}", TableName(tensor)),
              fmt::format("{}: {}", kernel::GeometryText(geometry), reasons), "a legal geometry");
}

Result<void> CheckChoices(std::span<const GeometryChoice> choices, std::span<const model::Tensor* const> tables) {
  for (const GeometryChoice& choice : choices) {
    const auto answers = [&](const model::Tensor* table) { return Matches(choice, *table); };
    if (!IsTable(choice) || std::ranges::any_of(tables, answers)) continue;
    std::vector<std::string> names;
    for (const model::Tensor* table : tables) names.push_back(TableName(*table));
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    return Fail(Code::kUsage, "geometry", fmt::format("no table is called '{}'", choice.table),
                "a format or one of " + list);
  }
  return {};
}

}  // namespace boltbeam::engine
