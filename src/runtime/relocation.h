// The relocations that LLVM writes for position-independent code of the small code model, on x86-64 and arm64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/error.h"

namespace boltbeam::runtime {

/// Bytes that a relocation of this type changes; nothing when the type is not known on the machine (EM_X86_64,
/// EM_AARCH64).
std::optional<std::uint64_t> RelocationWidth(std::uint16_t machine, std::uint32_t type);

/// Changes the bytes that will run at `place` so that they refer to `target`, the address of a symbol and an addend.
/// The reason when they can't: too far away, or not aligned as the instruction needs. `bytes` has the type's width.
Result<void> ApplyRelocation(std::uint16_t machine, std::uint32_t type, std::span<std::byte> bytes, std::uint64_t place,
                             std::uint64_t target);

}  // namespace boltbeam::runtime
