// Test support: facts of chips that were never measured.
#pragma once

#include <initializer_list>
#include <utility>

#include "chip/facts.h"

namespace boltbeam::chip {

inline void AddMeasured(Chip& chip, std::initializer_list<std::pair<const char*, double>> facts) {
  for (const auto& [name, value] : facts) {
    Fact fact;
    fact.name = name;
    fact.value = value;
    fact.provenance = Provenance::kMeasured;
    chip.facts.push_back(std::move(fact));
  }
}

/// A CPU with AVX-512 and VNNI, of which as much is known as a prediction needs.
inline Chip MeasuredTestCpu() {
  Chip chip;
  chip.id = "test-cpu";
  chip.backend = "cpu";
  chip.features = {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"};
  AddMeasured(chip, {{"read_bandwidth_gb_s", 40}, {"vector_instructions_s", 1.2e10}, {"cores", 2}});
  return chip;
}

}  // namespace boltbeam::chip
