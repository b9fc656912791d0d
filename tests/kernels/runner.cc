#include "runner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kernel/interpreter.h"

namespace boltbeam::kernel_tests {
namespace {

constexpr std::byte kGuard{0xA5};

Outcome Interpreted(const kernel::Program& program, std::vector<Bytes> buffers, std::int64_t begin, std::int64_t end) {
  std::vector<kernel::BufferView> views;
  for (Bytes& buffer : buffers) views.push_back({buffer.data(), buffer.size()});
  const auto ran = kernel::Interpret(program, views, begin, end);
  EXPECT_TRUE(ran) << ran.error().Message();
  return {"interpreter", std::move(buffers)};
}

/// Compiled once: the same program runs on many data.
Result<std::string> ObjectOf(const kernel::Program& program, const Way& way) {
  static std::map<std::string, std::string> objects;
  const std::string key = kernel::Identity(program) + way.name;
  auto place = objects.find(key);
  if (place == objects.end()) {
    BOLTBEAM_ASSIGN(std::string object, codegen::Compile(program, way.target));
    place = objects.emplace(key, std::move(object)).first;
  }
  return place->second;
}

/// No buffers when it could not be run.
Outcome Compiled(const kernel::Program& program, const Way& way, std::vector<Bytes> buffers, std::int64_t begin,
                 std::int64_t end) {
  for (Bytes& buffer : buffers) {
    buffer.insert(buffer.begin(), kGuardBytes, kGuard);
    buffer.insert(buffer.end(), kGuardBytes, kGuard);
  }
  Outcome outcome{way.name, {}};
  const auto object = ObjectOf(program, way);
  EXPECT_TRUE(object) << way.name << ": " << object.error().Message();
  if (!object) return outcome;
  const auto ran = Execute(way, *object, buffers, begin, end);
  EXPECT_TRUE(ran) << program.name << " for " << way.name << ": " << ran.error().Message();
  if (!ran) return outcome;
  for (const Bytes& buffer : buffers) {
    const auto is_guard = [](std::byte byte) { return byte == kGuard; };
    EXPECT_TRUE(std::all_of(buffer.begin(), buffer.begin() + kGuardBytes, is_guard) &&
                std::all_of(buffer.end() - kGuardBytes, buffer.end(), is_guard))
        << program.name << " for " << way.name << " writes outside of its buffers";
    outcome.buffers.emplace_back(buffer.begin() + kGuardBytes, buffer.end() - kGuardBytes);
  }
  return outcome;
}

}  // namespace

const std::vector<Way>& UsualWays() {
  static const std::vector<Way> kWays = [] {
    std::vector<Way> ways = AllWays();
    if (ways.size() > 2) ways.erase(ways.begin() + 1, ways.end() - 1);
    return ways;
  }();
  return kWays;
}

std::vector<Outcome> RunEverywhere(const kernel::Program& program, const std::vector<Bytes>& buffers,
                                   std::int64_t begin, std::int64_t end, const std::vector<Way>& ways) {
  std::vector<Outcome> outcomes{Interpreted(program, buffers, begin, end)};
  for (const Way& way : ways) {
    Outcome outcome = Compiled(program, way, buffers, begin, end);
    if (outcome.buffers.size() != buffers.size()) continue;
    for (std::size_t i = 0; way.has_fma && i < buffers.size(); ++i) {
      const auto& expected = outcomes[0].buffers[i];
      const auto [e, f] = std::ranges::mismatch(expected, outcome.buffers[i]);
      EXPECT_TRUE(e == expected.end()) << program.name << " for " << way.name << " differs from the interpreter in "
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
