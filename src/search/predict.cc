#include "search/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "chip/rates.h"
#include "kernel/families/gemv.h"
#include "kernel/knobs.h"
#include "kernel/program_cost.h"
#include "kernel/space.h"
#include "roofline/formulas.h"

namespace boltbeam::search {
namespace {

/// Beyond this many times the floor a candidate cannot win against one that reaches it.
constexpr double kNeighbourhood = 3;
/// Bytes from one read of an instruction to its next that a prefetcher follows at most: half of a page. Intel's
/// optimization manual states it of its own; a Zen 5 reads Q8_0 a quarter slower with turns of 2,176 bytes than of
/// 1,088.
constexpr double kLongestStride = 2048;
/// Of a thread, where the chip was not measured: two a clock at 3 GHz.
constexpr double kGuessedInstructionsS = 6e9;
constexpr double kFewRows = 4;  // of a group: one stream
// Of code that was not compiled, the means of some 800 geometries that were: for each doubling of the chunks whose
// loads may be moved, and of the rows of a group beyond a few.
constexpr double kUsualDisorder = 0.25, kUsualUneven = 0.25;
constexpr double kSmallTurn = 256;  // instructions that every front end keeps up with

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
    case kernel::Op::kMul:
    case kernel::Op::kFMul:
    case kernel::Op::kFma:
      return true;
    default:
      return false;
  }
}

double Power(double base, double exponent) { return base <= 0 ? 0 : std::pow(base, exponent); }

/// How late lines come: 1, if nobody asks for them before they are read.
double Late(const Work& work, const Coefficients& c) {
  const double near = 1 + c.window * work.kib_each + (work.has_long_stride ? 0 : c.follow);
  return work.asked / (near + work.ahead_kib) + (1 - work.asked) / near;
}

}  // namespace

std::span<const CoefficientName> CoefficientNames() {
  static constexpr std::array kNames = {
      CoefficientName{"arithmetic", "a vector instruction that is no product", &Coefficients::arithmetic},
      CoefficientName{"product", "a product of bytes or floats", &Coefficients::product},
      CoefficientName{"halves", "a product of pairs of halves", &Coefficients::halves},
      CoefficientName{"load", "a load of a vector register", &Coefficients::load},
      CoefficientName{"prefetch", "a line asked for ahead", &Coefficients::prefetch},
      CoefficientName{"narrow", "exponent of the registers' width", &Coefficients::narrow},
      CoefficientName{"chain", "a sum that waits for the one before", &Coefficients::chain},
      CoefficientName{"size", "more for twice the code of a turn", &Coefficients::size},
      CoefficientName{"disorder", "more of the memory's time for lines read out of order", &Coefficients::disorder},
      CoefficientName{"uneven", "more of the memory's time for reads in clusters", &Coefficients::uneven},
      CoefficientName{"pressure", "more for the registers needed", &Coefficients::pressure},
      CoefficientName{"far", "more for each KiB fetched ahead", &Coefficients::far},
      CoefficientName{"streams", "more for twice the rows of a group", &Coefficients::streams},
      CoefficientName{"late", "more of the memory's time for what is not fetched ahead", &Coefficients::late},
      CoefficientName{"kept", "more of the memory's time for lines that every cache keeps", &Coefficients::kept},
      CoefficientName{"window", "instructions that a core looks ahead", &Coefficients::window},
      CoefficientName{"follow", "KiB that a core's prefetcher is ahead", &Coefficients::follow},
      CoefficientName{"overlap", "how far memory, instructions and waits overlap", &Coefficients::overlap},
  };
  return kNames;
}

Counter::Counter(const Part& part, const chip::Chip& chip, std::uint32_t threads)
    : part_(part), threads_(std::max(1U, threads)) {
  const auto with_threads = chip.Get(fmt::format("read_bandwidth_gb_s.threads_{}", threads_));
  if (const chip::Fact* bandwidth = chip.Bandwidth()) bandwidth_gb_s_ = with_threads.value_or(bandwidth->value);
  const auto rate = chip::RateOn(chip, "vector_instructions_s", threads_);
  instructions_s_ = rate ? *rate / threads_ : kGuessedInstructionsS;
  const kernel::SpaceFacts facts = kernel::SpaceFactsOf(chip);
  lanes_ = facts.lanes.value_or(16);
  registers_ = facts.registers.value_or(32);
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
      case kernel::Op::kLoadBroadcast:  // mostly an operand of what uses it
        break;
      case kernel::Op::kMaddHalves:
        ++turn.halves;
        break;
      default:
        if (kernel::IsVectorArithmetic(instruction)) ++(IsProduct(instruction.op) ? turn.products : turn.arithmetic);
    }
  }
  return turn;
}

Result<Work> Counter::Count(const kernel::GemvGeometry& geometry, const std::optional<codegen::StreamFacts>& stream) {
  const auto [known, is_new] = turns_.try_emplace(kernel::GeometryText(geometry.Coarse()));
  if (is_new) {
    BOLTBEAM_ASSIGN(known->second, CountTurn(geometry));
  }
  const Turn& turn = known->second;
  BOLTBEAM_ASSIGN(const kernel::WeightLayout layout, kernel::LayoutFor(*part_.format, geometry));
  Work work;
  work.bytes = static_cast<double>(layout.TableBytes(part_.rows, part_.cols));
  const double groups = std::ceil(static_cast<double>(part_.rows) / layout.lanes);
  work.groups = std::ceil(groups / threads_);
  work.busiest = work.groups / groups * threads_;
  work.turns = work.groups * static_cast<double>(part_.cols) / turn.elements;
  work.arithmetic = work.turns * turn.arithmetic;
  work.products = work.turns * turn.products;
  work.halves = work.turns * turn.halves;
  work.loads = work.turns * turn.loads;
  const double turn_bytes = geometry.unroll * static_cast<double>(layout.block_bytes);
  if (geometry.prefetch_bytes > 0) {
    const double lines = std::ceil(turn_bytes / kernel::kLineBytes);
    const double fetched = std::ceil(lines / geometry.prefetch_every);
    work.prefetches = work.turns * fetched;
    work.asked = fetched / lines;
    work.kept = geometry.prefetch_once ? 1 - work.asked : 1;
  }
  // Sums of whole numbers begin anew in every sub-block: only one addition a block waits for the block before.
  work.waits = work.turns * geometry.unroll / (layout.is_float ? geometry.chains : 1);
  work.width = geometry.lanes / lanes_;
  work.rows = layout.lanes;
  work.turn_size = turn.arithmetic + turn.products + turn.halves + turn.loads;
  work.pressure = kernel::RegistersNeeded(layout, geometry) / registers_;
  work.ahead_kib = geometry.prefetch_bytes / 1024.0;
  work.has_long_stride = turn_bytes > kLongestStride;
  work.kib_each = turn_bytes / 1024 / std::max(1.0, work.turn_size);
  if (stream) {
    work.disorder = std::log2(1 + stream->disorder);
    work.uneven = std::log2(stream->unevenness);
  } else {
    work.disorder = geometry.ordered ? 0 : kUsualDisorder * std::log2(std::max<double>(1, layout.chunks));
    work.uneven = kUsualUneven * std::log2(std::max(1.0, work.rows / kFewRows));
  }
  work.bandwidth_gb_s = bandwidth_gb_s_;
  work.instructions_s = instructions_s_;
  return work;
}

ledger::Prediction ToRecord(const Part& part, const Prediction& prediction, const std::string& chip,
                            std::string_view method) {
  ledger::Prediction record;
  record.subject = SubjectOf(part, prediction.geometry, chip);
  record.quantity = kKernelQuantity;
  record.value = prediction.ns;
  record.low = prediction.low_ns;
  record.high = prediction.high_ns;
  record.method = method;
  return record;
}

Prediction TimeOf(const Work& work, const Coefficients& c) {
  Prediction prediction;
  const double rows = std::log2(std::max(1.0, work.rows / kFewRows));
  // The thread with most rows sets the time.
  prediction.memory_ns = roofline::MemoryFloorNs(work.bytes, work.bandwidth_gb_s) * work.busiest *
                         (1 + c.streams * rows) * (1 + c.late * Late(work, c)) * (1 + c.kept * work.kept) *
                         (1 + c.disorder * work.disorder + c.uneven * work.uneven);
  const double doublings = std::max(0.0, std::log2(work.turn_size / kSmallTurn));
  double wide =
      work.arithmetic * c.arithmetic + work.products * c.product + work.halves * c.halves + work.loads * c.load;
  wide *= Power(work.width, c.narrow) * (1 + c.size * doublings + c.pressure * work.pressure * work.pressure);
  const double small = work.prefetches * c.prefetch;
  prediction.compute_ns = (wide + small) * (1 + c.far * work.ahead_kib) / work.instructions_s * 1e9;
  prediction.waits_ns = work.waits * c.chain / work.instructions_s * 1e9;
  const double p = c.overlap;
  prediction.ns =
      Power(Power(prediction.memory_ns, p) + Power(prediction.compute_ns, p) + Power(prediction.waits_ns, p), 1 / p);
  return prediction;
}

Prediction Foretell(const kernel::GemvGeometry& geometry, const Work& work, const Coefficients& coefficients) {
  Prediction prediction = TimeOf(work, coefficients);
  prediction.geometry = geometry;
  prediction.low_ns = prediction.ns / (1 + coefficients.spread);
  prediction.high_ns = prediction.ns * (1 + coefficients.spread);
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
    const Prediction prediction = Foretell(point, work, coefficients);
    if (work.busiest >= 2) {
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
