#include "runner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "chip/facts.h"
#include "kernel/interpreter.h"
#include "runtime/code.h"

namespace boltbeam::kernel_tests {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xA5};

bool Has(const codegen::Target& target, std::string_view feature) {
  return std::ranges::find(target.features, feature) != target.features.end();
}

Outcome Interpreted(const kernel::Program& program, std::vector<Bytes> buffers, std::int64_t begin, std::int64_t end) {
  std::vector<kernel::BufferView> views;
  for (Bytes& buffer : buffers) views.push_back({buffer.data(), buffer.size()});
  const auto ran = kernel::Interpret(program, views, begin, end);
  EXPECT_TRUE(ran) << ran.error().Message();
  return {"interpreter", std::move(buffers)};
}

/// Compiled once: the same program runs on many data.
Result<runtime::KernelFunction> FunctionOf(const kernel::Program& program, const NamedTarget& target) {
  static std::map<std::string, runtime::Code> codes;
  const std::string key = kernel::Identity(program) + target.name;
  auto place = codes.find(key);
  if (place == codes.end()) {
    BOLTBEAM_ASSIGN(const std::string object, codegen::Compile(program, target.target));
    BOLTBEAM_ASSIGN(runtime::Code code, runtime::Code::Load(object));
    place = codes.emplace(key, std::move(code)).first;
  }
  return place->second.function();
}

Outcome Compiled(const kernel::Program& program, const NamedTarget& target, std::vector<Bytes> buffers,
                 std::int64_t begin, std::int64_t end) {
  std::vector<Bytes> guarded = std::move(buffers);
  std::vector<void*> pointers;
  for (Bytes& buffer : guarded) {
    buffer.insert(buffer.begin(), kGuardBytes, kGuard);
    buffer.insert(buffer.end(), kGuardBytes, kGuard);
    pointers.push_back(buffer.data() + kGuardBytes);
  }
  Outcome outcome{target.name, {}};
  const auto function = FunctionOf(program, target);
  EXPECT_TRUE(function) << target.name << ": " << function.error().Message();
  if (!function) return outcome;
  (*function)(pointers.data(), begin, end);
  for (const Bytes& buffer : guarded) {
    const auto is_guard = [](std::byte byte) { return byte == kGuard; };
    EXPECT_TRUE(std::all_of(buffer.begin(), buffer.begin() + kGuardBytes, is_guard) &&
                std::all_of(buffer.end() - kGuardBytes, buffer.end(), is_guard))
        << program.name << " for " << target.name << " writes outside of its buffers";
    outcome.buffers.emplace_back(buffer.begin() + kGuardBytes, buffer.end() - kGuardBytes);
  }
  return outcome;
}

}  // namespace

std::vector<NamedTarget> Targets(bool all) {
  std::vector<NamedTarget> targets;
  static const auto machine = chip::DetectThisMachine();
  EXPECT_TRUE(machine) << machine.error().Message();
  const codegen::Target native = machine ? codegen::TargetFor(*machine) : codegen::Target{};
  targets.push_back({"this machine", native, Has(native, "fma")});
  codegen::Target less = native;
  std::erase_if(less.features, [](const std::string& name) { return name.starts_with("avx512") || name == "avxvnni"; });
  if (all && less.features != native.features) targets.push_back({"without AVX-512 and VNNI", less, Has(less, "fma")});
  // A chip without any declared feature: the plain target of this machine's architecture.
  targets.push_back({"plain", codegen::TargetFor(chip::Chip{}), false});
  return targets;
}

std::vector<Outcome> RunEverywhere(const kernel::Program& program, const std::vector<Bytes>& buffers,
                                   std::int64_t begin, std::int64_t end, bool all_targets) {
  std::vector<Outcome> outcomes{Interpreted(program, buffers, begin, end)};
  for (const NamedTarget& target : Targets(all_targets)) {
    Outcome outcome = Compiled(program, target, buffers, begin, end);
    if (outcome.buffers.size() != buffers.size()) continue;
    for (std::size_t i = 0; target.has_fma && i < buffers.size(); ++i) {
      const auto& expected = outcomes[0].buffers[i];
      const auto [e, f] = std::ranges::mismatch(expected, outcome.buffers[i]);
      EXPECT_TRUE(e == expected.end()) << program.name << " for " << target.name << " differs from the interpreter in "
                                       << program.buffers[i].name << " at byte " << (e - expected.begin());
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

void Agreement::Add(double found, double expected, double absolute_terms, const std::string& place) {
  const double difference = std::abs(found - expected);
  double relative = absolute_terms > 0 ? difference / absolute_terms : difference;
  if (difference == 0) relative = 0;
  if (std::isnan(found)) relative = std::numeric_limits<double>::infinity();
  if (relative <= worst) return;
  worst = relative;
  where = fmt::format("{}: {} instead of {} (absolute terms {})", place, found, expected, absolute_terms);
}

}  // namespace boltbeam::kernel_tests
