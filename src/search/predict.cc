#include "search/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernel/families/gemv.h"
#include "kernel/knobs.h"
#include "kernel/program_cost.h"
#include "kernel/space.h"
#include "roofline/formulas.h"

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

bool IsProduct(kernel::Op op) {
  switch (op) {
    case kernel::Op::kDot4:
    case kernel::Op::kDot4Signed:
    case kernel::Op::kMaddBytes:
    case kernel::Op::kMaddHalves:
    case kernel::Op::kMul:
    case kernel::Op::kFMul:
    case kernel::Op::kFma:
      return true;
    default:
      return false;
  }
}

/// Points of one code differ only in how far ahead they fetch.
std::string CodeOf(kernel::GemvGeometry geometry) {
  geometry.ordered = true;
  geometry.prefetch_bytes = geometry.prefetch_bytes > 0 ? 1024 : 0;
  geometry.prefetch_once = false;
  return kernel::GeometryText(geometry);
}

double Power(double base, double exponent) { return base <= 0 ? 0 : std::pow(base, exponent); }

}  // namespace

std::span<const CoefficientName> CoefficientNames() {
  static constexpr std::array kNames = {
      CoefficientName{"arithmetic", "a vector instruction that is no product", &Coefficients::arithmetic},
      CoefficientName{"product", "a product of bytes, halves or floats", &Coefficients::product},
      CoefficientName{"load", "a load of a vector register", &Coefficients::load},
      CoefficientName{"broadcast", "a load of one value into all lanes", &Coefficients::broadcast},
      CoefficientName{"prefetch", "a line asked for ahead", &Coefficients::prefetch},
      CoefficientName{"turn", "a turn of the loop", &Coefficients::turn},
      CoefficientName{"group", "a group of rows", &Coefficients::group},
      CoefficientName{"narrow", "exponent of the registers' width", &Coefficients::narrow},
      CoefficientName{"chain", "an addition that waits for the one before", &Coefficients::chain},
      CoefficientName{"ahead", "the memory's rate with prefetching", &Coefficients::ahead},
      CoefficientName{"once", "the same, fetched for one use", &Coefficients::once},
      CoefficientName{"ordered", "the memory's rate with loads in order", &Coefficients::ordered},
      CoefficientName{"streams", "the memory's time for twice the rows", &Coefficients::streams},
      CoefficientName{"overlap", "how far memory and instructions overlap", &Coefficients::overlap},
  };
  return kNames;
}

Counter::Counter(const Part& part, const chip::Chip& chip, std::uint32_t threads)
    : part_(part), threads_(std::max(1U, threads)) {
  const auto with_threads = chip.Get(fmt::format("read_bandwidth_gb_s.threads_{}", threads_));
  if (const chip::Fact* bandwidth = chip.Bandwidth()) bandwidth_gb_s_ = with_threads.value_or(bandwidth->value);
  const double cores = std::max(1.0, chip.Get("cores").value_or(threads_));  // that the rate was measured on
  instructions_s_ = chip.Get("vector_instructions_s").value_or(0) / cores;
  lanes_ = kernel::SpaceFactsOf(chip).lanes.value_or(16);
}

Result<Counter::Turn> Counter::CountTurn(const kernel::GemvGeometry& geometry) const {
  BOLTBEAM_ASSIGN(const kernel::WeightLayout layout, kernel::LayoutFor(*part_.format, geometry));
  Turn turn;
  turn.elements = static_cast<double>(layout.elements) * geometry.unroll;
  const std::uint64_t cols = 2 * std::uint64_t{layout.elements} * geometry.unroll;
  BOLTBEAM_ASSIGN(const kernel::Program program,
                  kernel::BuildGemv(layout, geometry, {.rows = layout.lanes, .cols = cols}));
  for (const kernel::Instruction& instruction : Innermost(program.body).code) {
    switch (instruction.op) {
      case kernel::Op::kLoad:
      case kernel::Op::kLoadStrided:
        ++turn.loads;
        break;
      case kernel::Op::kLoadBroadcast:
        ++turn.broadcasts;
        break;
      case kernel::Op::kPrefetch:
        ++turn.prefetches;
        break;
      default:
        if (!kernel::IsVectorArithmetic(instruction)) {
          ++turn.scalars;
        } else {
          ++(IsProduct(instruction.op) ? turn.products : turn.arithmetic);
        }
    }
  }
  return turn;
}

Result<Work> Counter::Count(const kernel::GemvGeometry& geometry) {
  const auto [known, is_new] = turns_.try_emplace(CodeOf(geometry));
  if (is_new) {
    BOLTBEAM_ASSIGN(known->second, CountTurn(geometry));
  }
  const Turn& turn = known->second;
  BOLTBEAM_ASSIGN(const kernel::WeightLayout layout, kernel::LayoutFor(*part_.format, geometry));
  Work work;
  work.bytes = static_cast<double>(layout.TableBytes(part_.rows, part_.cols));
  const double groups = std::ceil(static_cast<double>(part_.rows) / layout.lanes);
  work.groups = std::ceil(groups / threads_);
  work.thread_share = work.groups / groups;
  work.turns = work.groups * static_cast<double>(part_.cols) / turn.elements;
  work.arithmetic = work.turns * turn.arithmetic;
  work.products = work.turns * turn.products;
  work.loads = work.turns * turn.loads;
  work.broadcasts = work.turns * turn.broadcasts;
  work.scalars = work.turns * turn.scalars;
  work.prefetches = work.turns * turn.prefetches;
  work.width = geometry.lanes / lanes_;
  work.rows = layout.lanes;
  work.sums = static_cast<double>(geometry.vectors) * geometry.chains;
  work.depth = work.turns * turn.products / std::max(1.0, work.sums);
  work.has_prefetch = geometry.prefetch_bytes > 0;
  work.is_once = work.has_prefetch && geometry.prefetch_once;
  work.is_ordered = geometry.ordered;
  work.bandwidth_gb_s = bandwidth_gb_s_;
  work.instructions_s = instructions_s_;
  return work;
}

Prediction TimeOf(const Work& work, const Coefficients& c) {
  Prediction prediction;
  double rate = work.bandwidth_gb_s;
  if (work.has_prefetch) rate *= c.ahead;
  if (work.is_once) rate *= c.once;
  if (work.is_ordered) rate *= c.ordered;
  const double doublings = std::log2(std::max(1.0, work.rows / 4));
  // The thread with most rows sets the time; all of them draw the memory's rate together.
  prediction.memory_ns = roofline::MemoryFloorNs(work.bytes, rate) * Power(c.streams, doublings);
  if (work.instructions_s > 0) {
    const double wide = work.arithmetic * c.arithmetic + work.products * c.product + work.loads * c.load +
                        work.broadcasts * c.broadcast;
    const double narrow =
        work.scalars * c.scalar + work.prefetches * c.prefetch + work.turns * c.turn + work.groups * c.group;
    const double waits = work.depth * c.chain;
    prediction.compute_ns = (std::max(wide * Power(work.width, c.narrow), waits) + narrow) / work.instructions_s * 1e9;
  }
  const double p = c.overlap;
  prediction.ns = std::pow(Power(prediction.memory_ns, p) + Power(prediction.compute_ns, p), 1 / p);
  return prediction;
}

Result<Foresight> PredictProduct(const Proposal& proposal, const chip::Chip& chip, std::uint32_t threads,
                                 const Coefficients& coefficients) {
  const chip::Fact* bandwidth = chip.Bandwidth();
  if (bandwidth == nullptr) {
    return Fail(Code::kBoundNoBandwidth, chip.name, "no memory bandwidth is known", "a measurement (`chip measure`)");
  }
  const Part& part = proposal.part;
  Foresight foresight;
  foresight.floor_ns = roofline::MemoryFloorNs(static_cast<double>(part.bytes), bandwidth->value);
  Counter counter(part, chip, threads);
  for (const kernel::GemvGeometry& point : proposal.points) {
    BOLTBEAM_ASSIGN(const Work work, counter.Count(point));
    Prediction prediction = TimeOf(work, coefficients);
    prediction.geometry = point;
    prediction.low_ns = prediction.ns / (1 + coefficients.spread);
    prediction.high_ns = prediction.ns * (1 + coefficients.spread);
    if (work.thread_share * threads >= 2) {
      Reject(foresight.rejected, "reduction-not-covered",
             fmt::format("groups of {:.0f} rows leave threads without any", work.rows));
    } else if (prediction.low_ns > kNeighbourhood * foresight.floor_ns) {
      const bool is_compute = prediction.compute_ns > prediction.memory_ns;
      Reject(foresight.rejected, "floor",
             fmt::format("{} keep it above {} times the floor", is_compute ? "instructions" : "its bytes",
                         kNeighbourhood));
    } else {
      foresight.survivors.push_back(prediction);
    }
  }
  std::ranges::stable_sort(foresight.survivors, {}, &Prediction::ns);
  return foresight;
}

}  // namespace boltbeam::search
