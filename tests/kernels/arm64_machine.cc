// arm64 processors under qemu's emulator of user programs, each with its instruction sets and no more.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <map>

#include "arm64_protocol.h"
#include "chip/instruction_sets.h"
#include "machine.h"

namespace boltbeam::kernel_tests {
namespace {

/// A processor that has the set and none above, by qemu's name.
struct Processor {
  const char* set;
  const char* name;
};
constexpr Processor kProcessors[] = {{"neon", "cortex-a72"}, {"dotprod", "neoverse-n1"}, {"i8mm", "max"}};

/// One emulator that serves a test program until it ends.
class Emulator {
 public:
  explicit Emulator(const char* processor) {
    std::array<int, 2> to{}, from{};
    if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      const std::string guard = std::to_string(kGuardBytes);
      ::execl(BOLTBEAM_QEMU, BOLTBEAM_QEMU, "-cpu", processor, BOLTBEAM_ARM64_RUNNER, guard.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;
  ~Emulator() { End(); }

  Result<void> Run(const std::string& object, std::vector<Bytes>& buffers, std::int64_t begin, std::int64_t end) {
    if (child_ <= 0) return Fail(Code::kInternal, BOLTBEAM_QEMU, "it does not run");
    bool alive = WriteBytes(to_, object) && WriteNumber(to_, buffers.size());
    for (const Bytes& buffer : buffers) alive = alive && WriteBytes(to_, buffer);
    alive = alive && WriteNumber(to_, static_cast<std::uint64_t>(begin)) &&
            WriteNumber(to_, static_cast<std::uint64_t>(end));
    std::uint64_t status = 0;
    alive = alive && ReadNumber(from_, status);
    if (alive && status != 0) {
      std::string why;
      ReadBytes(from_, why);
      return Fail(Code::kInternal, BOLTBEAM_ARM64_RUNNER, why);
    }
    for (Bytes& buffer : buffers) alive = alive && ReadBytes(from_, buffer);
    if (alive) return {};
    return Fail(Code::kInternal, BOLTBEAM_QEMU, fmt::format("it ended with status {:#x}", End()));
  }

 private:
  int End() {
    if (child_ <= 0) return -1;
    ::close(to_);
    ::close(from_);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return status;
  }

  pid_t child_ = -1;
  int to_ = -1, from_ = -1;
};

Emulator& EmulatorOf(const Way& way) {
  static std::map<std::string, Emulator> emulators;
  for (const Processor& processor : kProcessors) {
    if (way.name == processor.set) return emulators.try_emplace(way.name, processor.name).first->second;
  }
  return emulators.try_emplace("", "max").first->second;
}

/// Skips every test where there is no emulator or no compiler for arm64; fails instead when the environment asks.
class NeedsEmulator : public testing::Environment {
 public:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    if (std::string_view(BOLTBEAM_QEMU).starts_with('/') && ::access(BOLTBEAM_ARM64_RUNNER, X_OK) == 0) return;
    constexpr const char* kMissing = "qemu-aarch64 or aarch64-linux-gnu-g++ is missing: scripts/setup arm64";
    if (std::getenv("BOLTBEAM_REQUIRE_ARM64") != nullptr) FAIL() << kMissing;
    GTEST_SKIP() << kMissing;
  }
};
const testing::Environment* const kNeedsEmulator = testing::AddGlobalTestEnvironment(new NeedsEmulator);

}  // namespace

const std::vector<Way>& AllWays() {
  static const std::vector<Way> kWays = [] {
    std::vector<Way> ways;
    for (const Processor& processor : kProcessors) {
      Way way{processor.set, {}, {}, true};
      way.chip.name = processor.name;
      way.chip.features = {"fp", "asimd", "asimddp", "i8mm"};
      EXPECT_TRUE(chip::HoldTo(way.chip, processor.set));
      way.target = codegen::TargetFor(way.chip);
      ways.push_back(std::move(way));
    }
    return ways;
  }();
  return kWays;
}

Result<void> Execute(const Way& way, const std::string& object, std::vector<Bytes>& guarded, std::int64_t begin,
                     std::int64_t end) {
  return EmulatorOf(way).Run(object, guarded, begin, end);
}

}  // namespace boltbeam::kernel_tests
