// Relocations as bits, on any machine: what arm64 code needs is checked here where arm64 code can't run.
#include "runtime/relocation.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace boltbeam::runtime {
namespace {

constexpr std::uint64_t kPlace = 0x7f0000001ffc;

std::string Refusal(std::uint16_t machine, std::uint32_t type, std::uint64_t place, std::uint64_t target) {
  std::uint64_t word = 0;
  const auto bytes = std::as_writable_bytes(std::span(&word, 1));
  const auto applied = ApplyRelocation(machine, type, bytes, place, target);
  return applied ? "" : applied.error().found;
}

TEST(Relocation, InstructionsOfArm) {
  struct Case {
    std::uint32_t type, before;
    std::uint64_t target;
    std::uint32_t after;
  };
  static constexpr Case kCases[] = {
      {R_AARCH64_ADR_PREL_PG_HI21, 0x90000008, 0x7f0000004123, 0xf0000008},     // adrp x8, three pages on
      {R_AARCH64_ADR_PREL_PG_HI21, 0x90000008, 0x7f0000006fff, 0xb0000028},     // five
      {R_AARCH64_ADR_PREL_PG_HI21, 0x90000008, 0x7f0000000000, 0xf0ffffe8},     // one back
      {R_AARCH64_ADR_PREL_LO21, 0x10000008, kPlace + 5, 0x30000028},            // adr x8, 5
      {R_AARCH64_ADD_ABS_LO12_NC, 0x91000108, 0x7f0000004123, 0x91048d08},      // add x8, x8, #0x123
      {R_AARCH64_LDST8_ABS_LO12_NC, 0x39400100, 0x7f0000004001, 0x39400500},    // ldrb w0, [x8, #1]
      {R_AARCH64_LDST16_ABS_LO12_NC, 0x79400100, 0x7f0000004002, 0x79400500},   // ldrh w0, [x8, #2]
      {R_AARCH64_LDST32_ABS_LO12_NC, 0xb9400100, 0x7f0000004004, 0xb9400500},   // ldr w0, [x8, #4]
      {R_AARCH64_LDST64_ABS_LO12_NC, 0xf9400100, 0x7f0000004008, 0xf9400500},   // ldr x0, [x8, #8]
      {R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc00100, 0x7f0000004120, 0x3dc04900},  // ldr q0, [x8, #0x120]
      {R_AARCH64_LDST128_ABS_LO12_NC, 0x3dfffd00, 0x7f0000004120, 0x3dc04900},  // bits that were there go
      {R_AARCH64_CALL26, 0x94000000, kPlace + 0x100, 0x94000040},               // bl 0x100 on
      {R_AARCH64_JUMP26, 0x14000000, kPlace - 4, 0x17ffffff},                   // b one instruction back
      {R_AARCH64_PREL32, 0xdeadbeef, kPlace - 4, 0xfffffffc},
  };
  for (const Case& c : kCases) {
    std::uint32_t word = c.before;
    ASSERT_EQ(RelocationWidth(EM_AARCH64, c.type), 4U);
    const auto applied =
        ApplyRelocation(EM_AARCH64, c.type, std::as_writable_bytes(std::span(&word, 1)), kPlace, c.target);
    ASSERT_TRUE(applied) << c.type << ": " << applied.error().Message();
    EXPECT_EQ(word, c.after) << std::hex << c.before << " became " << word;
  }
}

TEST(Relocation, Data) {
  for (const auto& [machine, type, expected] :
       {std::tuple{EM_X86_64, R_X86_64_64, kPlace + 7}, std::tuple{EM_AARCH64, R_AARCH64_ABS64, kPlace + 7},
        std::tuple{EM_AARCH64, R_AARCH64_PREL64, std::uint64_t{7}}}) {
    std::uint64_t word = 1;
    ASSERT_EQ(RelocationWidth(machine, type), 8U);
    ASSERT_TRUE(ApplyRelocation(machine, type, std::as_writable_bytes(std::span(&word, 1)), kPlace, kPlace + 7));
    EXPECT_EQ(word, expected);
  }
}

TEST(Relocation, Refusals) {
  constexpr char kFar[] = "a relocation that does not reach";
  constexpr char kUneven[] = "a relocation to what is not aligned";
  constexpr std::uint64_t kFarAway = std::uint64_t{1} << 33;
  EXPECT_EQ(Refusal(EM_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, kPlace, kPlace + kFarAway), kFar);
  EXPECT_EQ(Refusal(EM_AARCH64, R_AARCH64_ADR_PREL_LO21, kPlace, kPlace - (1 << 20) - 1), kFar);
  EXPECT_EQ(Refusal(EM_AARCH64, R_AARCH64_CALL26, kPlace, kPlace + (1 << 27)), kFar);
  EXPECT_EQ(Refusal(EM_AARCH64, R_AARCH64_JUMP26, kPlace, kPlace + 2), kUneven);
  EXPECT_EQ(Refusal(EM_AARCH64, R_AARCH64_PREL32, kPlace, kPlace + kFarAway), kFar);
  EXPECT_EQ(Refusal(EM_AARCH64, R_AARCH64_LDST128_ABS_LO12_NC, kPlace, kPlace + 8), kUneven);
  EXPECT_EQ(Refusal(EM_X86_64, R_X86_64_PC32, kPlace, kPlace + kFarAway), kFar);
  EXPECT_EQ(Refusal(EM_X86_64, R_AARCH64_CALL26, kPlace, kPlace), "a relocation of an unknown type");
  EXPECT_FALSE(RelocationWidth(EM_AARCH64, R_AARCH64_TSTBR14));
  EXPECT_FALSE(RelocationWidth(EM_RISCV, R_X86_64_64));
}

}  // namespace
}  // namespace boltbeam::runtime
