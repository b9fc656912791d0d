#include "search/candidate.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/geometry_choice.h"
#include "kernel/knobs.h"
#include "model/token_graph.h"

namespace boltbeam::search {
namespace {

constexpr std::string_view kFamily = "gemv:";

void AddRole(std::string& roles, const std::string& role) {
  if (("+" + roles + "+").contains("+" + role + "+")) return;
  roles += (roles.empty() ? "" : "+") + role;
}

}  // namespace

std::string Part::ShapeText() const { return fmt::format("{}x{}", rows, cols); }

std::vector<Part> PartsOf(const model::Model& model) {
  std::vector<Part> parts;
  for (const model::Operation& operation : model::BuildTokenGraph(model, {})) {
    if (operation.kind != model::OpKind::kMatmul) continue;
    const std::string table = engine::TableName(*operation.weights);
    auto part = std::ranges::find(parts, table, &Part::table);
    if (part == parts.end()) {
      const model::Tensor& tensor = *operation.weights;
      part = parts.insert(part, {table, "", tensor.format, tensor.rows(), tensor.cols(), 0, operation.weight_bytes});
    }
    AddRole(part->role, operation.role);
    ++part->calls;
  }
  return parts;
}

void Reject(std::vector<Rejected>& rejected, std::string_view reason, std::string_view evidence, std::uint64_t points) {
  const auto known = std::ranges::find_if(
      rejected, [&](const Rejected& one) { return one.reason == reason && one.evidence == evidence; });
  if (known != rejected.end()) {
    known->points += points;
  } else {
    rejected.push_back({std::string(reason), std::string(evidence), points});
  }
}

std::string CandidateName(const kernel::GemvGeometry& geometry) {
  return std::string(kFamily) + kernel::GeometryText(geometry);
}

ledger::Subject SubjectOf(const Part& part, const kernel::GemvGeometry& geometry, const std::string& chip) {
  ledger::Subject subject;
  subject.candidate = CandidateName(geometry);
  subject.chip = chip;
  subject.shape = part.table;
  return subject;
}

void AddStream(nlohmann::json& environment, const std::optional<codegen::StreamFacts>& stream) {
  if (!stream) return;
  environment["stream_disorder"] = stream->disorder;
  environment["stream_unevenness"] = stream->unevenness;
}

std::optional<codegen::StreamFacts> StreamFrom(const nlohmann::json& environment) {
  const auto disorder = environment.find("stream_disorder"), unevenness = environment.find("stream_unevenness");
  const bool is_there = disorder != environment.end() && unevenness != environment.end() && disorder->is_number() &&
                        unevenness->is_number() && *disorder >= 0 && *unevenness >= 1;
  if (!is_there) return std::nullopt;
  return codegen::StreamFacts{disorder->get<double>(), unevenness->get<double>()};
}

}  // namespace boltbeam::search
