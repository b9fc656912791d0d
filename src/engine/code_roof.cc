#include "engine/code_roof.h"

#include <fmt/format.h>

#include <algorithm>

#include "chip/rates.h"
#include "engine/planned_code.h"
#include "kernel/geometry.h"
#include "roofline/formulas.h"

namespace boltbeam::engine {
namespace {

constexpr std::string_view kIssueRate = "vector_instructions_s";

roofline::Peak PeakOfDot(kernel::Dot dot, std::uint32_t bits, const chip::Chip& chip) {
  const std::string_view fact = RateOfDot(dot);
  const std::uint32_t threads = chip::ThreadsMeasured(chip, fact);
  roofline::Peak peak{chip::RateOn(chip, fact, threads, bits), fmt::format("{} with {}-bit vectors", fact, bits)};
  if (!peak.flop_s) peak.from += ", not measured (boltbeam chip measure)";
  return peak;
}

/// What every number of threads that was measured moves and issues. Another bandwidth than the chip's stretches the
/// curve: its highest rate becomes that.
roofline::RatesByThreads RatesOf(const chip::Chip& chip, std::optional<double> bandwidth_gb_s) {
  roofline::RatesByThreads rates;
  const auto curve = chip::RatesByThreads(chip, "read_bandwidth_gb_s");
  double highest = 0;
  for (const auto& [threads, gb_s] : curve) highest = std::max(highest, gb_s);
  const double stretch = bandwidth_gb_s && highest > 0 ? *bandwidth_gb_s / highest : 1;
  for (const auto& [threads, measured_gb_s] : curve) {
    roofline::ThreadRates& own = rates[threads];
    own = {measured_gb_s * stretch, chip::RateOn(chip, "cache_bandwidth_gb_s", threads), {}};
    for (const std::uint32_t bits : chip::VectorCounts::kBits) {
      if (const auto issued = chip::RateOn(chip, kIssueRate, threads, bits)) own.vector_instructions_s[bits] = *issued;
    }
  }
  return rates;
}

/// Why there is no floor in instructions of code with vectors of so many bits at most; empty: there is one.
std::string WhyNoRates(const chip::Chip& chip, std::uint32_t most_bits) {
  if (chip.backend != "cpu") return fmt::format("no code is generated for a chip of the backend {}", chip.backend);
  if (!chip.Get(kIssueRate) || chip::RatesByThreads(chip, "read_bandwidth_gb_s").empty()) {
    return fmt::format("{} and the read bandwidth by threads are not measured (boltbeam chip measure)", kIssueRate);
  }
  // Wide code has narrow instructions too.
  for (const std::uint32_t bits : chip::VectorCounts::kBits) {
    if (bits > most_bits || chip::RateOn(chip, kIssueRate, 1, bits)) continue;
    return fmt::format("{} is not measured with {}-bit vectors (boltbeam chip measure)", kIssueRate, bits);
  }
  return {};
}

void AddPeaks(const model::Model& model, const chip::Chip& chip, const model::CacheFormats& cache,
              roofline::Roof& roof) {
  for (const model::Operation& operation : model::BuildTokenGraph(model, {})) {
    if (operation.kind != model::OpKind::kMatmul) continue;
    const formats::Format& format = *operation.weights->format;
    if (!roof.peaks.contains(format.name)) roof.peaks[format.name] = PeakOf(format, chip);
  }
  roof.peaks[roofline::AttentionKey(roofline::CacheKey(cache))] = AttentionPeakOf(cache, chip);
  roof.peak_flop_s.reset();
  roof.peak_from.clear();
}

}  // namespace

std::string_view RateOfDot(kernel::Dot dot) {
  switch (dot) {
    case kernel::Dot::kDot4:
      return "dot_i8_flop_s";
    case kernel::Dot::kDot4Signed:
      return "dot_s8_flop_s";
    case kernel::Dot::kMaddBytes:
      return "madd_i8_flop_s";
    case kernel::Dot::kMaddHalves:
      return "madd_i16_flop_s";
    case kernel::Dot::kFloat:
      break;
  }
  return "fma_f32_flop_s";
}

roofline::Peak PeakOf(const formats::Format& format, const chip::Chip& chip) {
  const kernel::GemvGeometry geometry = kernel::DefaultGeometry(format, kernel::VectorFactsOf(chip), false);
  roofline::Peak peak = PeakOfDot(geometry.dot, geometry.lanes * 32U, chip);
  const auto layout = kernel::LayoutFor(format, geometry);
  if (layout && layout->IsSplit(geometry.dot) && peak.flop_s) {
    *peak.flop_s /= 2;
    peak.from += ", each weight in two halves";
  }
  return peak;
}

roofline::Peak AttentionPeakOf(const model::CacheFormats& cache, const chip::Chip& chip) {
  const kernel::VectorFacts facts = kernel::VectorFactsOf(chip);
  const auto of = [&](const formats::Format& format, kernel::Dot coded) {
    const bool is_float = format.layout && format.layout->encoding;
    return PeakOfDot(is_float ? kernel::Dot::kFloat : coded, facts.bits(), chip);
  };
  const roofline::Peak keys = of(*cache.keys, facts.has_dot4 ? kernel::Dot::kDot4 : kernel::Dot::kMaddHalves);
  const roofline::Peak values = of(*cache.values, kernel::Dot::kMaddHalves);
  if (keys.from == values.from) return keys;
  roofline::Peak both{{}, keys.from + " for keys, " + values.from + " for values"};
  if (keys.flop_s && values.flop_s) both.flop_s = roofline::MixedPeak(1, *keys.flop_s, 1, *values.flop_s);
  return both;
}

void AddCode(const model::Model& model, const chip::Chip& chip, const roofline::BoundOptions& options,
             roofline::Roof& roof) {
  const chip::Fact* peak = chip.Peak();
  const bool is_for_all = roof.peak_from == "--peak" || (peak != nullptr && peak->use == chip::Use::kPeak);
  if (chip.backend == "cpu" && !is_for_all) AddPeaks(model, chip, options.cache, roof);
  if (options.prompt > 0 || options.batch > 1) {
    roof.instructions_missing = "they are counted in the code that decodes one token";
    return;
  }
  roof.instructions_missing = WhyNoRates(chip, kernel::VectorFactsOf(chip).bits());
  if (!roof.instructions_missing.empty()) return;
  roof.threads = RatesOf(chip, roof.is_stated ? std::optional(roof.bandwidth_gb_s) : std::nullopt);
  const Result<TokenCode> code = CodeOfToken(model, chip, options.cache, options.depths);
  if (!code) {
    roof.instructions_missing = code.error().Message();
    return;
  }
  for (const std::vector<PartCode>& parts : code->depths) {
    std::vector<roofline::PartInstructions>& own = roof.instructions.emplace_back();
    for (const PartCode& part : parts)
      own.push_back({part.role, part.format, part.vector_instructions, part.stored_bytes, part.is_from_listing});
  }
  roof.uncompiled = code->uncompiled;
}

}  // namespace boltbeam::engine
