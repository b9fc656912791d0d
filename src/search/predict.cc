#include "search/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "kernel/knobs.h"
#include "kernel/program_cost.h"

namespace boltbeam::search {
namespace {

/// Beyond this many times the floor a candidate cannot win against one that reaches it.
constexpr double kNeighbourhood = 3;

/// The code of the loop that holds no other.
const kernel::Region& Innermost(const kernel::Region& region) {
  for (const kernel::Instruction& instruction : region.code) {
    if (!instruction.body.empty()) return Innermost(instruction.body.front());
  }
  return region;
}

/// Vector instructions of a turn of the product's loop, by the program that would run.
Result<double> InstructionsPerWeight(const Part& part, const kernel::WeightLayout& layout,
                                     const kernel::GemvGeometry& geometry) {
  const std::uint64_t turn = std::uint64_t{layout.elements} * geometry.unroll;
  BOLTBEAM_ASSIGN(const kernel::Program program,
                  kernel::BuildGemv(layout, geometry, {.rows = layout.lanes, .cols = 2 * turn}));
  const auto count = std::ranges::count_if(Innermost(program.body).code, kernel::IsVectorArithmetic);
  return static_cast<double>(count) / static_cast<double>(turn * layout.lanes);
}

/// Points of one code differ only in what is loaded when.
kernel::GemvGeometry CodeOf(kernel::GemvGeometry geometry) {
  geometry.ordered = true;
  geometry.prefetch_bytes = 0;
  geometry.prefetch_once = false;
  return geometry;
}

}  // namespace

Result<Foresight> PredictProduct(const Proposal& proposal, const chip::Chip& chip, std::uint32_t threads,
                                 const Coefficients& coefficients) {
  const chip::Fact* bandwidth = chip.Bandwidth();
  if (bandwidth == nullptr) {
    return Fail(Code::kBoundNoBandwidth, chip.name, "no memory bandwidth is known", "a measurement (`chip measure`)");
  }
  const Part& part = proposal.part;
  Foresight foresight;
  foresight.floor_ns = static_cast<double>(part.bytes) / bandwidth->value;
  std::map<std::string, double> counted;  // by code
  for (const kernel::GemvGeometry& point : proposal.points) {
    const kernel::GemvGeometry code = CodeOf(point);
    BOLTBEAM_ASSIGN(const kernel::WeightLayout layout, kernel::LayoutFor(*part.format, point));
    const auto [known, is_new] = counted.try_emplace(kernel::GeometryText(code), 0);
    if (is_new) {
      BOLTBEAM_ASSIGN(known->second, InstructionsPerWeight(part, layout, code));
    }
    Prediction prediction;
    prediction.geometry = point;
    prediction.memory_ns = static_cast<double>(layout.TableBytes(part.rows, part.cols)) / bandwidth->value;
    if (const auto rate = chip.Get("vector_instructions_s")) {
      const double cores = std::max(1.0, chip.Get("cores").value_or(1));
      prediction.compute_ns = static_cast<double>(part.weights()) * known->second / (*rate / cores * threads) * 1e9;
    }
    const double p = coefficients.overlap;
    prediction.ns = std::pow(std::pow(prediction.memory_ns, p) + std::pow(prediction.compute_ns, p), 1 / p);
    prediction.low_ns = prediction.ns / (1 + coefficients.spread);
    prediction.high_ns = prediction.ns * (1 + coefficients.spread);
    if (prediction.low_ns > kNeighbourhood * foresight.floor_ns) {
      Reject(foresight.rejected, "floor", fmt::format("above {} times the floor", kNeighbourhood));
    } else {
      foresight.survivors.push_back(prediction);
    }
  }
  std::ranges::stable_sort(foresight.survivors, {}, &Prediction::ns);
  return foresight;
}

}  // namespace boltbeam::search
