// Eight processes write 200 records each into one chain and are killed at random; who is killed starts again.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "ledger/testing/scenario.h"
#include "ledger/verify.h"

namespace boltbeam::ledger {
namespace {

namespace fs = std::filesystem;

constexpr int kProcesses = 8;
constexpr int kRecords = 200;
constexpr int kKills = 150;  // at most: fewer where all records are written before
constexpr int kLeastKills = 40;

/// In memory where there is such a folder: what a killed process leaves does not depend on the disk.
fs::path NewFolder() {
  const fs::path root = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::path(testing::TempDir());
  fs::path folder = root / ("boltbeam_ledger_test." + std::to_string(::getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

Options RealOptions(const fs::path& folder) {
  Options options;
  options.folder = (folder / "ledger").string();
  options.writer = "writer";
  options.lock_timeout = std::chrono::minutes(2);
  return options;
}

/// What a process does: continues after what it knows was acknowledged. Its notes go to a file, one write a record.
[[noreturn]] void Work(const fs::path& folder, int process, int done) {
  const fs::path notes = folder / ("acknowledged." + std::to_string(process));
  const int file = ::open(notes.c_str(), O_CREAT | O_APPEND | O_WRONLY, 0644);
  Ledger ledger = *Ledger::Open(RealOptions(folder));
  for (int i = done; i < kRecords; ++i) {
    const std::string marker = std::to_string(process) + "/" + std::to_string(i);
    const Result<Receipt> receipt = ledger.AppendPrediction(MarkedPrediction(marker));
    if (!receipt) ::_exit(3);
    const std::string line = marker + " " + receipt->hash + "\n";
    if (::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) ::_exit(4);
  }
  ::_exit(0);
}

std::map<std::string, std::string> Acknowledged(const fs::path& folder, int process) {
  std::map<std::string, std::string> hashes;
  std::ifstream notes(folder / ("acknowledged." + std::to_string(process)));
  std::string marker, hash;
  while (notes >> marker >> hash) hashes[marker] = hash;
  return hashes;
}

pid_t StartProcess(const fs::path& folder, int process) {
  const int done = static_cast<int>(Acknowledged(folder, process).size());
  const pid_t child = ::fork();
  if (child == 0) Work(folder, process, done);
  return child;
}

/// Until every process has ended by itself; how many were killed.
int KillAtRandom(const fs::path& folder, std::map<pid_t, int> running) {
  std::mt19937 random(5);
  int kills = 0;
  while (!running.empty()) {
    if (kills < kKills) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 1'000));
      auto victim = running.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % running.size()));
      ::kill(victim->first, SIGKILL);
    }
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, kills < kKills ? WNOHANG : 0);
    const auto found = running.find(ended);
    if (ended <= 0 || found == running.end()) continue;
    const int process = found->second;
    running.erase(found);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "a record was refused: " << WEXITSTATUS(status);
    if (!WIFSIGNALED(status)) continue;
    ++kills;
    running[StartProcess(folder, process)] = process;
  }
  return kills;
}

TEST(LedgerProcesses, EightWithTwoHundredRecordsEachKilledAtRandom) {
  const fs::path folder = NewFolder();
  std::map<pid_t, int> running;
  for (int process = 0; process < kProcesses; ++process) running[StartProcess(folder, process)] = process;
  const int kills = KillAtRandom(folder, std::move(running));

  const Result<Verification> verified = Verify(RealFiles(), RealOptions(folder).folder);
  ASSERT_TRUE(verified) << verified.error().Message();
  for (const Error& fault : verified->faults) ADD_FAILURE() << fault.Message();
  ASSERT_EQ(verified->chains.size(), 1U);
  const Chain& chain = verified->chains[0];
  EXPECT_EQ(chain.state, ChainState::kWhole);

  std::multimap<std::string, std::string> present;
  std::uint64_t recoveries = 0;
  for (const Entry& entry : chain.entries) {
    if (entry.record.kind == Kind::kRecovery)
      ++recoveries;
    else
      present.emplace(entry.record.payload.at("method").get<std::string>(), entry.record.hash);
  }
  std::uint64_t acknowledged = 0;
  for (int process = 0; process < kProcesses; ++process) {
    const std::map<std::string, std::string> own = Acknowledged(folder, process);
    EXPECT_EQ(own.size(), static_cast<std::size_t>(kRecords));
    for (const auto& [marker, hash] : own) {
      const auto [from, to] = present.equal_range(marker);
      EXPECT_TRUE(std::any_of(from, to, [&](const auto& one) { return one.second == hash; })) << marker;
      ++acknowledged;
    }
  }
  std::printf("%llu records acknowledged, %zu present, %llu recoveries, %d kills\n",
              static_cast<unsigned long long>(acknowledged), present.size(),
              static_cast<unsigned long long>(recoveries), kills);
  EXPECT_EQ(acknowledged, static_cast<std::uint64_t>(kProcesses * kRecords));
  EXPECT_GE(kills, kLeastKills);
  // At most one that nobody heard of for each kill.
  EXPECT_LE(present.size(), acknowledged + static_cast<std::uint64_t>(kills));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace boltbeam::ledger
