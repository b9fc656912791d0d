// The rearrangement at load: rows as they lie in the file become row groups as the products read them.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "kernel/program.h"
#include "kernel/weight_layout.h"

namespace boltbeam::kernel {

/// Work items are row groups. Buffers: source (layout.lanes rows a group, each of the file's row bytes, and at least 4
/// bytes a row), target (written: group after group of layout.GroupBytes(cols)).
Result<Program> BuildRearrange(const WeightLayout& layout, std::uint64_t cols);

}  // namespace boltbeam::kernel
