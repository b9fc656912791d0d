// From the names that a kernel of Linux gives instruction sets to those that LLVM gives them.
#include <algorithm>
#include <array>
#include <string_view>

#include "codegen/codegen.h"

namespace boltbeam::codegen {
namespace {

enum class Machine : std::uint8_t { kX86, kArm };

/// One instruction set that the lowering or LLVM makes use of. A row counts only when what it rests on is declared too:
/// LLVM would switch that on silently, and a virtual machine may hide it.
struct Row {
  Machine machine;
  std::string_view declared;
  std::string_view llvm;
  std::array<std::string_view, 3> needs;  // declared names; rows above
};

constexpr Row kRows[] = {
    {Machine::kX86, "pni", "sse3", {}},
    {Machine::kX86, "ssse3", "ssse3", {"pni"}},
    {Machine::kX86, "sse4_1", "sse4.1", {"ssse3"}},
    {Machine::kX86, "sse4_2", "sse4.2", {"sse4_1"}},
    {Machine::kX86, "popcnt", "popcnt", {}},
    {Machine::kX86, "avx", "avx", {"sse4_2"}},
    {Machine::kX86, "f16c", "f16c", {"avx"}},
    {Machine::kX86, "fma", "fma", {"avx"}},
    {Machine::kX86, "avx2", "avx2", {"avx"}},
    {Machine::kX86, "bmi1", "bmi", {}},
    {Machine::kX86, "bmi2", "bmi2", {}},
    {Machine::kX86, "avx_vnni", "avxvnni", {"avx2"}},
    {Machine::kX86, "avx512f", "avx512f", {"avx2", "fma", "f16c"}},
    {Machine::kX86, "avx512cd", "avx512cd", {"avx512f"}},
    {Machine::kX86, "avx512dq", "avx512dq", {"avx512f"}},
    {Machine::kX86, "avx512bw", "avx512bw", {"avx512f"}},
    {Machine::kX86, "avx512vl", "avx512vl", {"avx512f"}},
    {Machine::kX86, "avx512vbmi", "avx512vbmi", {"avx512bw"}},
    {Machine::kX86, "avx512_vnni", "avx512vnni", {"avx512f", "avx512bw"}},
    {Machine::kArm, "asimd", "neon", {}},
    {Machine::kArm, "asimddp", "dotprod", {"asimd"}},
    {Machine::kArm, "asimdhp", "fullfp16", {"asimd"}},
    {Machine::kArm, "i8mm", "i8mm", {"asimd"}},
};

constexpr std::string_view kTriples[] = {"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"};

#if defined(__aarch64__)
constexpr Machine kHost = Machine::kArm;
#else
constexpr Machine kHost = Machine::kX86;
#endif

Machine MachineOf(const chip::Chip& chip) {
  for (const Row& row : kRows) {
    if (std::ranges::find(chip.features, row.declared) != chip.features.end()) return row.machine;
  }
  return kHost;
}

}  // namespace

Target TargetFor(const chip::Chip& chip) {
  const Machine machine = MachineOf(chip);
  Target target;
  target.triple = kTriples[static_cast<std::size_t>(machine)];
  std::vector<std::string_view> have;
  const auto has = [&have](std::string_view name) {
    return name.empty() || std::ranges::find(have, name) != have.end();
  };
  for (const Row& row : kRows) {
    if (row.machine != machine || !std::ranges::all_of(row.needs, has)) continue;
    if (std::ranges::find(chip.features, row.declared) == chip.features.end()) continue;
    have.push_back(row.declared);
    target.features.emplace_back(row.llvm);
  }
  return target;
}

}  // namespace boltbeam::codegen
