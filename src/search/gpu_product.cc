#include "search/gpu_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernel/families/gemv.h"
#include "kernel/geometry.h"
#include "kernel/program_cost.h"
#include "roofline/formulas.h"
#include "search/gpu_machine.h"

namespace boltbeam::search {
namespace {

constexpr double kNeighbourhood = 3;    // times the floor: what is predicted beyond is not worth timing
constexpr std::int64_t kHalfBytes = 2;  // of an activation
constexpr double kFixedRegisters = 24;  // addresses, counters, scales
constexpr std::int64_t kWidestSubgroup = 64;
constexpr double kActivationOperations = 0.5;  // of a lane on a weight: load and address of its activation
constexpr double kShuffleNs = 10;              // a step of a sum across lanes

bool IsFloat(const Part& part) {
  const formats::Format& plain = part.format->Plain();
  return plain.layout && plain.layout->encoding;
}

GpuMath MathOf(std::int64_t value) { return static_cast<GpuMath>(value); }

std::int64_t RowBytes(const Part& part) {
  return static_cast<std::int64_t>(std::llround(static_cast<double>(part.cols) * part.format->BitsPerWeight() / 8));
}

std::vector<SpaceKnob> Knobs() {
  return {
      {"row_lanes", "lanes of a subgroup that share a row", {4, 8, 16, 32, kWidestSubgroup}, {}},
      {"subgroups", "subgroups of a workgroup", {1, 2, 4, 8, 16}, {}},
      {"rows", "rows side by side that share a load of the activations", {1, 2, 4, 8}, {}},
      {"load_bytes", "of weights, by one lane at once", {4, 8, 16}, {}},
      {"loads", "independent loads that a lane has under way", {1, 2, 4}, {}},
      {"split", "workgroups that share the sum of a row", {1, 2, 4, 8}, {}},
      {"math", "the instruction that multiplies", {0, 1, 2, 3}, {"fma", "dot2", "dot4", "matrix"}},
      {"stage", "activations read as they lie, or staged in local memory", {0, 1}, {"direct", "local"}},
  };
}

std::string LocalMemoryFact(const chip::Chip& chip) {
  return chip.Get("workgroup_memory_optin_bytes") ? "workgroup_memory_optin_bytes" : "workgroup_memory_bytes";
}

SpaceRule SubgroupRule() {
  return {"lanes-not-in-subgroup",
          {"row_lanes"},
          {"subgroup_lanes"},
          [](const Setting& s) {
            const auto subgroup = static_cast<std::int64_t>(s.Fact("subgroup_lanes"));
            return s["row_lanes"] <= subgroup && subgroup % s["row_lanes"] == 0
                       ? ""
                       : fmt::format("{} lanes of a subgroup of {}", s["row_lanes"], subgroup);
          },
          {}};
}

SpaceRule ThreadsRule() {
  return {"over-threads",
          {"subgroups"},
          {"subgroup_lanes", "lanes_per_workgroup_max"},
          [](const Setting& s) {
            const double lanes = static_cast<double>(s["subgroups"]) * s.Fact("subgroup_lanes");
            return lanes <= s.Fact("lanes_per_workgroup_max")
                       ? ""
                       : fmt::format("{:.0f} lanes, {:.0f} allowed", lanes, s.Fact("lanes_per_workgroup_max"));
          },
          [](const Setting& s) { return s["subgroups"] > 1; }};  // one subgroup fits any workgroup
}

SpaceRule RowsRule(const Part& part) {
  const auto rows = static_cast<std::int64_t>(part.rows);
  return {"divisibility",
          {"rows", "row_lanes", "subgroups"},
          {"subgroup_lanes"},
          [rows](const Setting& s) {
            const auto subgroup = static_cast<std::int64_t>(s.Fact("subgroup_lanes"));
            const std::int64_t together =
                std::max<std::int64_t>(1, subgroup / s["row_lanes"]) * s["rows"] * s["subgroups"];
            return rows % together == 0 ? "" : fmt::format("workgroups of {} rows, {} rows", together, rows);
          },
          {}};
}

SpaceRule LoadRule() {
  return {"load-width",
          {"load_bytes"},
          {"vector_load_bits"},
          [](const Setting& s) {
            return 8.0 * static_cast<double>(s["load_bytes"]) <= s.Fact("vector_load_bits")
                       ? ""
                       : fmt::format("{} bits, loads are of {:.0f}", 8 * s["load_bytes"], s.Fact("vector_load_bits"));
          },
          [](const Setting& s) { return s["load_bytes"] > 4; }};  // a word can be loaded anywhere
}

SpaceRule AlignmentRule(const Part& part) {
  const std::int64_t bytes = RowBytes(part);
  return {"divisibility",
          {"load_bytes", "split"},
          {},
          [bytes](const Setting& s) {
            return bytes % (s["load_bytes"] * s["split"]) == 0
                       ? ""
                       : fmt::format("rows of {} bytes in {} shares of whole loads of {}", bytes, s["split"],
                                     s["load_bytes"]);
          },
          {}};
}

/// Instructions that not every chip has: their fact is asked for, and 0 says that there is none.
SpaceRule MathRule(GpuMath math, const char* name, std::vector<std::string> facts) {
  const std::string fact = facts.front();
  return {"instruction",
          {"math"},
          std::move(facts),
          [fact, name](const Setting& s) { return s.Fact(fact) > 0 ? "" : fmt::format("no {} there", name); },
          [math](const Setting& s) { return MathOf(s["math"]) == math; }};
}

SpaceRule FormatRule(const Part& part) {
  const bool is_float = IsFloat(part);
  return {"format",
          {"math"},
          {},
          [is_float](const Setting& s) {
            const bool integer = MathOf(s["math"]) == GpuMath::kDot4;
            return is_float && integer ? "float weights have no integer product" : "";
          },
          {}};
}

SpaceRule MatrixRule(const Part& part) {
  const auto cols = static_cast<double>(part.cols);
  return {"matrix-shape",
          {"math", "rows", "row_lanes"},
          {"matrix_rows", "matrix_depth", "subgroup_lanes"},
          [cols](const Setting& s) -> std::string {
            // A subgroup computes whole tiles: its rows are a multiple of the instruction's.
            const double lanes = static_cast<double>(s["row_lanes"]);
            const double rows = s.Fact("subgroup_lanes") / lanes * static_cast<double>(s["rows"]);
            if (std::fmod(rows, s.Fact("matrix_rows")) != 0) {
              return fmt::format("{:.0f} rows of a subgroup, tiles of {:.0f}", rows, s.Fact("matrix_rows"));
            }
            if (std::fmod(cols, s.Fact("matrix_depth")) == 0) return "";
            return fmt::format("{:.0f} columns, tiles of {:.0f}", cols, s.Fact("matrix_depth"));
          },
          [](const Setting& s) { return MathOf(s["math"]) == GpuMath::kMatrix; }};
}

SpaceRule StageRule(const Part& part, const chip::Chip& chip) {
  const std::string limit = LocalMemoryFact(chip);
  const auto bytes = static_cast<std::int64_t>(part.cols) * kHalfBytes;
  return {"over-local-memory",
          {"stage", "split"},
          {limit},
          [limit, bytes](const Setting& s) {
            const std::int64_t share = bytes / s["split"];
            return static_cast<double>(share) <= s.Fact(limit)
                       ? ""
                       : fmt::format("{} bytes of activations, {:.0f} there", share, s.Fact(limit));
          },
          [](const Setting& s) { return s["stage"] == 1; }};
}

/// Operations of a lane on a weight, by the loop program of this build's own product with the like instruction: what it
/// takes to unpack does not depend on how many lanes do it.
double OperationsPerWeight(const Part& part, GpuMath math) {
  kernel::VectorFacts facts;
  facts.has_dot4 = math == GpuMath::kDot4;
  kernel::GemvGeometry geometry = kernel::DefaultGeometry(*part.format, facts, false);
  geometry.unroll = 1;
  geometry.chains = 1;
  const auto layout = kernel::LayoutFor(*part.format, geometry);
  if (!layout) return 0;
  const auto program = kernel::BuildGemv(*layout, geometry, {.rows = layout->lanes, .cols = layout->elements});
  if (!program) return 0;
  const double per_weight = kernel::CostOf(*program, 0, 1).instructions / static_cast<double>(layout->elements);
  // A pair's product is one instruction for two halves; alone, each is converted and multiplied.
  return math == GpuMath::kFma && !IsFloat(part) ? per_weight + 1 : per_weight;
}

/// One point after another.
class Foreteller {
 public:
  Foreteller(const Part& part, const KnobSpace& space, const GpuMachine& machine)
      : part_(part), space_(space), machine_(machine) {
    for (std::size_t math = 0; math < operations_.size(); ++math)
      operations_[math] = OperationsPerWeight(part, MathOf(static_cast<std::int64_t>(math)));
  }

  void Foretell(std::size_t index, GpuForesight& foresight) {
    const KnobPoint& point = space_.points[index];
    const auto knob = [&](const char* name) { return static_cast<double>(space_.ValueOf(point, name)); };
    const double row_share = static_cast<double>(RowBytes(part_)) / knob("split");
    const double cover = knob("row_lanes") * knob("load_bytes");
    if (cover > row_share) {
      return Reject(foresight.rejected, "reduction-not-covered",
                    fmt::format("{:.0f} lanes load {:.0f} bytes, their share of a row is {:.0f}", knob("row_lanes"),
                                cover, row_share));
    }
    const double registers = kFixedRegisters + knob("rows") * (1 + knob("loads") * knob("load_bytes") / 4);
    if (machine_.registers_per_lane > 0 && registers > machine_.registers_per_lane) {
      return Reject(foresight.rejected, "registers",
                    fmt::format("{:.0f} of a lane, {:.0f} there", registers, machine_.registers_per_lane));
    }
    const GpuPrediction prediction = Time(index, registers, foresight.floor_ns);
    if (IsUsual(point) && (!foresight.usual || prediction.ns < foresight.usual->ns)) foresight.usual = prediction;
    // Every kernel waits for its dispatch and its first bytes, however good it is.
    const double every_ns = machine_.latency_ns + machine_.dispatch_ns;
    if (prediction.low_ns > kNeighbourhood * (foresight.floor_ns + every_ns)) {
      return Reject(foresight.rejected, "floor",
                    prediction.compute_ns > prediction.memory_ns
                        ? "its sums alone keep it from three times the floor"
                        : "too little under way to come within three times the floor");
    }
    foresight.survivors.push_back(prediction);
  }

 private:
  [[nodiscard]] bool IsUsual(const KnobPoint& point) const {
    return space_.ValueOf(point, "subgroups") == 1 && space_.ValueOf(point, "rows") == 1 &&
           space_.ValueOf(point, "load_bytes") == 4 && space_.ValueOf(point, "loads") == 1 &&
           space_.ValueOf(point, "split") == 1 && space_.ValueOf(point, "math") == 0 &&
           space_.ValueOf(point, "stage") == 0;
  }

  /// Workgroups that one multiprocessor holds at once.
  [[nodiscard]] double Resident(double lanes, double registers, double local_bytes) const {
    double most = machine_.workgroups_each > 0 ? machine_.workgroups_each : 16;
    if (machine_.lanes_each > 0) most = std::min(most, std::floor(machine_.lanes_each / lanes));
    if (machine_.registers_each > 0) most = std::min(most, std::floor(machine_.registers_each / (registers * lanes)));
    if (machine_.memory_each > 0 && local_bytes > 0)
      most = std::min(most, std::floor(machine_.memory_each / local_bytes));
    return std::max(1.0, most);
  }

  /// Workgroups of a point, and what decides how many of them are at work together.
  struct Grid {
    double lanes = 0, workgroups = 0, at_once = 0, tail = 1;
  };
  [[nodiscard]] Grid GridOf(const KnobPoint& point, double registers) const {
    const auto knob = [&](const char* name) { return static_cast<double>(space_.ValueOf(point, name)); };
    Grid grid;
    grid.lanes = knob("subgroups") * machine_.subgroup;
    const double rows = std::max(1.0, machine_.subgroup / knob("row_lanes")) * knob("rows") * knob("subgroups");
    grid.workgroups = std::ceil(static_cast<double>(part_.rows) / rows) * knob("split");
    grid.at_once = grid.workgroups;
    if (machine_.multiprocessors <= 0) return grid;
    const double local = knob("stage") * static_cast<double>(part_.cols) * kHalfBytes / knob("split");
    const double slots = machine_.multiprocessors * Resident(grid.lanes, registers, local);
    const double waves = grid.workgroups / slots;
    grid.at_once = std::min(grid.workgroups, slots);
    if (waves > 1) grid.tail = std::ceil(waves) / waves;
    return grid;
  }

  [[nodiscard]] GpuPrediction Time(std::size_t index, double registers, double floor_ns) const {
    const KnobPoint& point = space_.points[index];
    const auto knob = [&](const char* name) { return static_cast<double>(space_.ValueOf(point, name)); };
    const Grid grid = GridOf(point, registers);
    GpuPrediction p;
    p.point = index;
    p.tail = grid.tail;
    p.bytes_in_flight = grid.at_once * grid.lanes * knob("loads") * knob("load_bytes");
    const double streams =
        machine_.multiprocessors > 0 ? std::min(grid.at_once, machine_.multiprocessors) : grid.at_once;
    p.drawn_gb_s = machine_.Drawn(p.bytes_in_flight, streams);
    // The last wave draws less, but not nothing: half of it is charged.
    p.memory_ns = floor_ns * machine_.bandwidth_gb_s / p.drawn_gb_s * (1 + (p.tail - 1) / 2);
    // Activations are loaded once for all rows side by side.
    const double operations =
        operations_[static_cast<std::size_t>(space_.ValueOf(point, "math"))] + kActivationOperations / knob("rows");
    if (machine_.lane_operations_s > 0) {
      p.compute_ns = operations * static_cast<double>(part_.weights()) / machine_.lane_operations_s * 1e9;
    }
    // Until the first bytes are there; and where a row is split, a second kernel that adds the shares.
    const double launches = knob("split") > 1 ? 2 : 1;
    const double steps = std::log2(knob("row_lanes"));  // of the sum across lanes
    p.ns = std::max(p.memory_ns, p.compute_ns) + launches * (machine_.latency_ns + machine_.dispatch_ns) +
           steps * kShuffleNs;
    p.low_ns = p.ns / (1 + machine_.Spread());
    p.high_ns = p.ns * (1 + machine_.Spread());
    return p;
  }

  const Part& part_;
  const KnobSpace& space_;
  const GpuMachine& machine_;
  std::array<double, 4> operations_{};  // [GpuMath]
};

}  // namespace

KnobSpace GpuProductSpace(const Part& part, const chip::Chip& chip) {
  const std::vector<SpaceRule> rules = {
      SubgroupRule(),
      ThreadsRule(),
      RowsRule(part),
      LoadRule(),
      AlignmentRule(part),
      FormatRule(part),
      MathRule(GpuMath::kDot2, "product of pairs of halves", {"dot2_f16"}),
      MathRule(GpuMath::kDot4, "four-way product of bytes", {"dot4_i8"}),
      MatrixRule(part),
      StageRule(part, chip),
  };
  return BuildSpace(Knobs(), rules, chip);
}

Result<GpuForesight> PredictGpuProduct(const Part& part, const KnobSpace& space, const chip::Chip& chip) {
  BOLTBEAM_ASSIGN(const GpuMachine machine, GpuMachineOf(chip));
  GpuForesight foresight;
  foresight.unknown = machine.unknown;
  foresight.floor_ns = roofline::MemoryFloorNs(static_cast<double>(part.bytes), machine.bandwidth_gb_s);
  Foreteller foreteller(part, space, machine);
  for (std::size_t i = 0; i < space.points.size(); ++i) foreteller.Foretell(i, foresight);
  std::ranges::stable_sort(foresight.survivors, {}, &GpuPrediction::ns);
  return foresight;
}

}  // namespace boltbeam::search
