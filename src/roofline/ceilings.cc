#include "roofline/ceilings.h"

#include "roofline/formulas.h"

namespace boltbeam::roofline {
namespace {

/// What one width takes keeps the units from the others.
double UnpackNs(const chip::VectorCounts& instructions, const ThreadRates& rates) {
  double ns = 0;
  for (std::size_t i = 0; i < instructions.of.size(); ++i) {
    if (instructions.of.at(i) == 0) continue;
    ns += UnpackFloorNs(instructions.of.at(i), rates.vector_instructions_s.at(chip::VectorCounts::kBits.at(i)));
  }
  return ns;
}

}  // namespace

std::vector<Ceiling> CeilingsOf(const RatesByThreads& rates, double streamed, double cached,
                                const chip::VectorCounts& instructions) {
  std::vector<Ceiling> ceilings;
  for (const auto& [threads, own] : rates) {
    Ceiling ceiling{threads, {}, UnpackNs(instructions, own)};
    if (streamed > 0) ceiling.bytes_floor_ns = MemoryFloorNs(streamed, own.memory_gb_s);
    if (cached > 0 && own.cache_gb_s) ceiling.bytes_floor_ns = MemoryFloorNs(cached, *own.cache_gb_s);
    ceilings.push_back(ceiling);
  }
  return ceilings;
}

bool BindsInstructions(const std::vector<Ceiling>& ceilings) {
  return !ceilings.empty() && ceilings.back().BindsInstructions();
}

}  // namespace boltbeam::roofline
