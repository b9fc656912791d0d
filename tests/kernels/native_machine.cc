#include <gtest/gtest.h>

#include <map>

#include "chip/instruction_sets.h"
#include "machine.h"
#include "runtime/code.h"

namespace boltbeam::kernel_tests {
namespace {

std::vector<Way> FindWays() {
  const auto machine = chip::DetectThisMachine();
  EXPECT_TRUE(machine) << machine.error().Message();
  if (!machine) return {};
  std::vector<Way> ways;
  for (const std::string_view set : chip::InstructionSetsOf(*machine)) {
    Way way{std::string(set), *machine, {}, false};
    EXPECT_TRUE(chip::HoldTo(way.chip, set)) << set;
    way.target = codegen::TargetFor(way.chip);
    way.has_fma = way.chip.Has("fma") || way.chip.Has("asimd");
    ways.push_back(std::move(way));
  }
  return ways;
}

}  // namespace

const std::vector<Way>& AllWays() {
  static const std::vector<Way> kWays = FindWays();
  return kWays;
}

Result<void> Execute(const Way&, const std::string& object, std::vector<Bytes>& guarded, std::int64_t begin,
                     std::int64_t end) {
  static std::map<std::string, runtime::Code> codes;  // by object: the same program runs on many data
  auto place = codes.find(object);
  if (place == codes.end()) {
    BOLTBEAM_ASSIGN(runtime::Code code, runtime::Code::Load(object));
    place = codes.emplace(object, std::move(code)).first;
  }
  std::vector<void*> pointers;
  for (Bytes& buffer : guarded) pointers.push_back(buffer.data() + kGuardBytes);
  place->second.function()(pointers.data(), begin, end);
  return {};
}

}  // namespace boltbeam::kernel_tests
