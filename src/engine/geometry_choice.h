// Which geometry runs which table: the default formula's, or what a plan or a person chose.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernel/geometry.h"
#include "model/model.h"

namespace boltbeam::engine {

/// Knobs turned for the tables of a kind. Later choices turn what earlier ones have turned.
struct GeometryChoice {
  std::string table;  // "Q4_K.4096x14336" (format, rows, columns), "Q4_K", "": all tables; "attention" or "tails"
  std::string knobs;  // "unroll=2,vectors=2": the others stay as they are
};

/// The name that choices have for the sharing out of rows: "tails:piece=65536".
inline constexpr std::string_view kTailsTable = "tails";

/// Bytes of a table that another thread takes over at once (route shared-tails), with what was chosen for "tails":
/// a table's rows per task are the whole groups that fit. kUsage when a knob is not known or a piece has no byte.
Result<std::uint64_t> PieceBytes(std::span<const GeometryChoice> choices, std::uint64_t piece_bytes);

/// What a table is called by choices: every table of the same name runs the same kernel.
std::string TableName(const model::Tensor& tensor);

/// From "[TABLE:]KNOB=VALUE,..."; kUsage when a knob is not known.
Result<GeometryChoice> ParseGeometryChoice(std::string_view text);

/// The geometry of a table while decoding; kKernelIllegal with the reasons when what was chosen is not legal.
Result<kernel::GemvGeometry> GeometryFor(std::span<const GeometryChoice> choices, const model::Tensor& tensor,
                                         const kernel::VectorFacts& facts);

/// kUsage names the first choice that no table of the model answers to.
Result<void> CheckChoices(std::span<const GeometryChoice> choices, std::span<const model::Tensor* const> tables);

}  // namespace boltbeam::engine
