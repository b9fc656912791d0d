// Activations that kernels are checked with, and what they stand for in double arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/weight_layout.h"

namespace boltbeam::engine {

/// What quantised activations stand for, from their codes and block scales alone.
std::vector<double> DecodeActivations(const kernel::ActivationLayout& layout, std::span<const std::byte> bytes);

/// Normal, with the rare outliers that activations have. Always the same.
std::vector<float> RandomActivations(std::uint64_t count);

/// Small whole numbers, most of them 0: sums of few terms, in which one weight taken for another shows.
std::vector<float> SparseActivations(std::uint64_t count);

}  // namespace boltbeam::engine
