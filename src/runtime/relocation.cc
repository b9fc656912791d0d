#include "runtime/relocation.h"

#include <elf.h>

#include <cstring>

namespace boltbeam::runtime {
namespace {

/// What is written, and where: data as they are, or bits of an arm64 instruction.
enum class Form : std::uint8_t {
  kAbsolute,   // target
  kRelative,   // target - place, signed
  kPage,       // the 4 KiB page of the target less that of the place: adrp
  kNear,       // target - place, to the byte: adr
  kLowTwelve,  // the low 12 bits of the target, in units of 1 << scale: add, ldr, str
  kBranch26,   // target - place in instructions: b, bl
};

struct Row {
  std::uint16_t machine;
  std::uint32_t type;
  Form form;
  std::uint32_t width;
  std::uint32_t scale = 0;
};

constexpr Row kRows[] = {
    {EM_X86_64, R_X86_64_64, Form::kAbsolute, 8},
    {EM_X86_64, R_X86_64_PC32, Form::kRelative, 4},
    {EM_X86_64, R_X86_64_PLT32, Form::kRelative, 4},
    {EM_AARCH64, R_AARCH64_ABS64, Form::kAbsolute, 8},
    {EM_AARCH64, R_AARCH64_PREL32, Form::kRelative, 4},
    {EM_AARCH64, R_AARCH64_PREL64, Form::kRelative, 8},
    {EM_AARCH64, R_AARCH64_ADR_PREL_LO21, Form::kNear, 4},
    {EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, Form::kPage, 4},
    {EM_AARCH64, R_AARCH64_ADD_ABS_LO12_NC, Form::kLowTwelve, 4, 0},
    {EM_AARCH64, R_AARCH64_LDST8_ABS_LO12_NC, Form::kLowTwelve, 4, 0},
    {EM_AARCH64, R_AARCH64_LDST16_ABS_LO12_NC, Form::kLowTwelve, 4, 1},
    {EM_AARCH64, R_AARCH64_LDST32_ABS_LO12_NC, Form::kLowTwelve, 4, 2},
    {EM_AARCH64, R_AARCH64_LDST64_ABS_LO12_NC, Form::kLowTwelve, 4, 3},
    {EM_AARCH64, R_AARCH64_LDST128_ABS_LO12_NC, Form::kLowTwelve, 4, 4},
    {EM_AARCH64, R_AARCH64_CALL26, Form::kBranch26, 4},
    {EM_AARCH64, R_AARCH64_JUMP26, Form::kBranch26, 4},
};

constexpr std::uint64_t kPageMask = ~std::uint64_t{0xfff};  // adrp counts pages of 4 KiB, whatever the system's are

const Row* Find(std::uint16_t machine, std::uint32_t type) {
  for (const Row& row : kRows) {
    if (row.machine == machine && row.type == type) return &row;
  }
  return nullptr;
}

bool FitsSigned(std::int64_t value, unsigned bits) {
  const std::int64_t limit = std::int64_t{1} << (bits - 1);
  return -limit <= value && value < limit;
}

std::unexpected<Error> Refused(const char* why) {
  return Fail(boltbeam::Code::kCodegen, "relocation", why, "code and constants that lie beside each other");
}

/// Replaces bits of the instruction.
void Patch(std::span<std::byte> bytes, std::uint32_t mask, std::uint64_t value) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof(word));
  word = (word & ~mask) | (static_cast<std::uint32_t>(value) & mask);
  std::memcpy(bytes.data(), &word, sizeof(word));
}

/// The 21 bits of adr and adrp: the lowest two lie apart.
Result<void> PatchAddress(std::span<std::byte> bytes, std::int64_t value) {
  if (!FitsSigned(value, 21)) return Refused("a relocation that does not reach");
  const auto bits = static_cast<std::uint64_t>(value);
  Patch(bytes, 3U << 29 | 0x7ffffU << 5, (bits & 3) << 29 | (bits >> 2 & 0x7ffff) << 5);
  return {};
}

}  // namespace

std::optional<std::uint64_t> RelocationWidth(std::uint16_t machine, std::uint32_t type) {
  const Row* row = Find(machine, type);
  return row == nullptr ? std::nullopt : std::optional<std::uint64_t>(row->width);
}

Result<void> ApplyRelocation(std::uint16_t machine, std::uint32_t type, std::span<std::byte> bytes, std::uint64_t place,
                             std::uint64_t target) {
  const Row* row = Find(machine, type);
  if (row == nullptr || bytes.size() < row->width) return Refused("a relocation of an unknown type");
  const auto distance = static_cast<std::int64_t>(target - place);
  switch (row->form) {
    case Form::kAbsolute:
      std::memcpy(bytes.data(), &target, row->width);
      return {};
    case Form::kRelative:
      if (row->width == 4 && !FitsSigned(distance, 32)) return Refused("a relocation that does not reach");
      std::memcpy(bytes.data(), &distance, row->width);
      return {};
    case Form::kPage:
      return PatchAddress(bytes, static_cast<std::int64_t>((target & kPageMask) - (place & kPageMask)) >> 12);
    case Form::kNear:
      return PatchAddress(bytes, distance);
    case Form::kLowTwelve: {
      const std::uint64_t low = target & ~kPageMask;
      if ((low & ((1U << row->scale) - 1)) != 0) return Refused("a relocation to what is not aligned");
      Patch(bytes, 0xfffU << 10, low >> row->scale << 10);
      return {};
    }
    case Form::kBranch26:
      if ((distance & 3) != 0) return Refused("a relocation to what is not aligned");
      if (!FitsSigned(distance >> 2, 26)) return Refused("a relocation that does not reach");
      Patch(bytes, 0x3ffffff, static_cast<std::uint64_t>(distance >> 2));
      return {};
  }
  return {};
}

}  // namespace boltbeam::runtime
