#include "report/kernel_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/listing_facts.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

constexpr std::size_t kShownId = 12;

/// Bytes of weights that a turn of a product's inner loop reads: its counter is their address. 0: no product.
double BytesPerTurn(const kernel::Program& program) {
  if (program.buffers.empty() || program.buffers.front().name != "weights") return 0;
  const kernel::Region* region = &program.body;
  const kernel::Instruction* innermost = nullptr;
  for (bool found = true; found;) {
    found = false;
    for (const kernel::Instruction& instruction : region->code) {
      if (instruction.op != kernel::Op::kLoop) continue;
      innermost = &instruction;
      region = &instruction.body.front();
      found = true;
      break;
    }
  }
  if (innermost == nullptr) return 0;
  for (const kernel::Instruction& instruction : program.body.code) {
    if (instruction.op == kernel::Op::kConstant && instruction.results.front() == innermost->operands.at(2)) {
      return static_cast<double>(instruction.imm);
    }
  }
  return 0;
}

std::string Number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "";
}

}  // namespace

Result<std::vector<KernelCost>> CostsOf(const std::vector<PlannedKernel>& kernels, const chip::Chip& machine,
                                        const codegen::Target& target,
                                        const std::map<std::string, measure::KernelTime>& times) {
  const chip::Fact* memory = machine.Bandwidth();
  const std::optional<double> memory_gb_s = memory != nullptr ? std::optional(memory->value) : std::nullopt;
  const std::optional<double> cache_gb_s = machine.Get("cache_bandwidth_gb_s");
  std::vector<KernelCost> costs;
  for (const PlannedKernel& kernel : kernels) {
    KernelCost cost;
    const auto bytes = static_cast<double>(kernel.stored_bytes);
    const std::optional<double>& gb_s = kernel.streams ? memory_gb_s : cache_gb_s;  // as `bound` has it
    if (gb_s && bytes > 0) cost.floor_ns = bytes / *gb_s;
    BOLTBEAM_ASSIGN(const std::string listing,
                    codegen::EmitListing(*kernel.program, target, codegen::Listing::kAssembly));
    const codegen::ListingFacts facts = codegen::FactsOfListing(listing);
    cost.vector_registers = facts.vector_registers;
    cost.spills = facts.spills;
    const double turn = BytesPerTurn(*kernel.program);
    if (turn > 0) cost.instructions_per_byte = facts.loop_instructions / turn;
    const auto time = times.find(kernel.id);
    if (time != times.end()) {
      cost.now_ns = time->second.ns;
      if (bytes > 0 && time->second.ticks > 0) cost.cycles_per_byte = time->second.ticks / bytes;
    }
    costs.push_back(cost);
  }
  return costs;
}

std::vector<std::pair<std::string, std::optional<double>>> CostFields(const KernelCost& cost) {
  return {{"floor_ns", cost.floor_ns}, {"vector_registers", cost.vector_registers},
          {"spills", cost.spills},     {"instructions_per_byte", cost.instructions_per_byte},
          {"now_ns", cost.now_ns},     {"cycles_per_byte", cost.cycles_per_byte}};
}

std::string CostText(const std::vector<PlannedKernel>& kernels, const std::vector<KernelCost>& costs) {
  const bool is_timed = std::ranges::any_of(costs, [](const KernelCost& cost) { return cost.now_ns.has_value(); });
  std::vector<Column> columns{
      {"id", "", Align::kLeft}, {"kernel", "", Align::kLeft}, {"floor", ""}, {"registers", ""}, {"spills", ""},
      {"instr/B", ""}};
  if (is_timed) columns.insert(columns.end(), {{"now", ""}, {"cycles/B", ""}});
  Table table(columns);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const KernelCost& cost = costs[i];
    const std::string& name = kernels[i].program->name;
    std::vector<Cell> cells{kernels[i].id.substr(0, kShownId),
                            name.substr(0, name.find('.')),
                            cost.floor_ns ? Duration(*cost.floor_ns) : "",
                            Number(cost.vector_registers, 0),
                            Number(cost.spills, 0),
                            Number(cost.instructions_per_byte, 3)};
    if (is_timed) {
      cells.emplace_back(cost.now_ns ? Duration(*cost.now_ns) : "");
      cells.emplace_back(Number(cost.cycles_per_byte, 3));
    }
    table.Add(std::move(cells));
  }
  return table.Text() + "\n" +
         Wrap(
             "floor: a token's bytes over the memory's bandwidth, of small vectors the cache's, where they are "
             "measured. "
             "registers, spills: vector "
             "registers of the listing, and those that it moves to or from the stack. instr/B: instructions of a "
             "product's loop over the bytes of weights that it reads. now, cycles/B (--time): in real tokens, by the "
             "processor's counter, all threads together.") +
         "\n";
}

}  // namespace boltbeam::report
