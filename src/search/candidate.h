// What the search speaks of: the parts of a model that a kernel runs, the candidates for each, and what was said
// against those that are not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "codegen/listing_facts.h"
#include "formats/format.h"
#include "kernel/families/gemv.h"
#include "kernel/weight_layout.h"
#include "ledger/records.h"
#include "model/model.h"

namespace boltbeam::search {

/// Tables of one format, as many rows and columns: one kernel runs them all, however many layers there are.
struct Part {
  std::string table;                        // as engine::TableName: "Q4_K.4096x14336" (rows, columns)
  std::string role;                         // the account's part; several joined by '+': "attn_kv+attn_qo"
  const formats::Format* format = nullptr;  // never null
  std::uint64_t rows = 0, cols = 0;
  std::uint32_t calls = 0;  // tables that a token multiplies by
  std::uint64_t bytes = 0;  // of one of them, in the file

  [[nodiscard]] kernel::GemvShape shape() const { return {.rows = rows, .cols = cols}; }
  [[nodiscard]] std::uint64_t weights() const { return rows * cols; }
  [[nodiscard]] std::string ShapeText() const;  // "4096x14336"
};

/// Every table that a decoded token multiplies by, in the order in which a token first meets its kind.
std::vector<Part> PartsOf(const model::Model& model);

/// Points that were turned away together, and why. The first word is the reason's name; evidence is that of the first
/// such point, in numbers.
struct Rejected {
  std::string reason;    // "registers", "missing-fact:subgroup_lanes", "floor"
  std::string evidence;  // "37 vector registers at least, 16 there"
  std::uint64_t points = 0;
};

/// Whether a range has a value.
template <typename Range, typename T, typename Projection = std::identity>
bool Contains(const Range& range, const T& value, Projection projection = {}) {
  return std::ranges::find(range, value, projection) != std::ranges::end(range);
}

/// Adds to the row of that reason and evidence, or makes it.
void Reject(std::vector<Rejected>& rejected, std::string_view reason, std::string_view evidence,
            std::uint64_t points = 1);

/// The name that ledgers know a geometry by: "gemv:lanes=16,scales=packed,...". With the table's name and the chip it
/// is what a measurement, a prediction or a refutation is about.
std::string CandidateName(const kernel::GemvGeometry& geometry);
ledger::Subject SubjectOf(const Part& part, const kernel::GemvGeometry& geometry, const std::string& chip);

/// What kernels' measurements and predictions say: nanoseconds of one product of a table by all threads, its weights
/// read from memory. A measurement's environment holds kThreadsField, and kBandwidthField where a probe of the same
/// rounds read the memory's rate.
inline constexpr std::string_view kKernelQuantity = "kernel_ns";
inline constexpr std::string_view kThreadsField = "threads";
inline constexpr std::string_view kBandwidthField = "read_bandwidth_gb_s";
/// And how the code reads its table, where the listing shows it.
void AddStream(nlohmann::json& environment, const std::optional<codegen::StreamFacts>& stream);
std::optional<codegen::StreamFacts> StreamFrom(const nlohmann::json& environment);

}  // namespace boltbeam::search
