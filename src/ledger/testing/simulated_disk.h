// Test support: a disk in memory that knows what was confirmed and what was only written, fails when told to, and
// loses its power.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ledger/file_ops.h"

namespace boltbeam::ledger {

enum class Fault : std::uint8_t { kNone, kNoSpace, kIo, kInterrupted, kShort, kSync, kPower };

/// What of the unconfirmed changes a power loss leaves.
enum class Survives : std::uint8_t {
  kNothing,
  kAll,      // as when only the process dies
  kFront,    // those up to a random one, which is cut
  kAnything  // a random part of them, in any order, writes by sectors
};

class SimulatedDisk final : public FileOps {
 public:
  static constexpr std::size_t kSectorBytes = 64;  // small, so that one line lies in several

  /// From now on operation number `at` (counted from 1) meets the fault; with `always`, so does every later one.
  void Arm(Fault fault, std::uint64_t at, bool always);
  void Disarm() { Arm(Fault::kNone, 0, false); }
  /// Since Arm.
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  /// Since Arm: calls that failed.
  [[nodiscard]] std::uint64_t failures() const { return failures_; }
  /// The power comes back.
  void Restart(Survives survives, std::uint32_t seed);

  /// All that decides how the disk behaves from now on, while nothing is open and no fault is armed: two disks with the
  /// same text are the same to every program.
  [[nodiscard]] std::string State() const;

  /// The bytes of a file as a program sees them; for tests that damage one.
  [[nodiscard]] std::string Bytes(const std::string& path) const;
  void SetBytes(const std::string& path, const std::string& bytes);  // confirmed
  void Erase(const std::string& path);                               // confirmed
  /// What somebody else does before the next lock is taken: once.
  void BeforeALock(std::function<void(SimulatedDisk&)> act) { before_lock_ = std::move(act); }
  [[nodiscard]] bool Exists(const std::string& path) const { return names_.contains(path); }

  int Open(const std::string& path, Access access) override;
  int Close(int file) override;
  std::int64_t ReadAt(int file, char* to, std::size_t size, std::uint64_t offset) override;
  std::int64_t WriteAt(int file, const char* from, std::size_t size, std::uint64_t offset) override;
  std::int64_t Size(int file) override;
  int Truncate(int file, std::uint64_t size) override;
  int Sync(int file) override;
  int TryLock(int file) override;
  int Names(const std::string& path, int file) override;
  int Rename(const std::string& from, const std::string& to) override;
  int Remove(const std::string& path) override;
  int MakeFolder(const std::string& path) override;
  int SyncFolder(const std::string& path) override;
  int List(const std::string& path, std::vector<std::string>& names) override;

 private:
  struct Node {
    bool folder = false;
    std::string bytes;      // as programs see them
    std::string confirmed;  // as they lie on the disk
    int locked_by = -1;
  };
  /// One change that is not confirmed yet. Of a file's bytes, or of the names in a folder.
  struct Change {
    enum class What : std::uint8_t { kWrite, kTruncate, kLink, kUnlink, kRename } what = What::kWrite;
    int node = -1;
    std::uint64_t offset = 0;  // or the size
    std::string bytes;
    std::string path, from;
  };

  std::optional<int> Begin(bool may_be_short, bool is_sync);
  bool PowerFailsNow() const { return fault_ == Fault::kPower && operations_ == fault_at_; }
  static void Put(std::string& bytes, std::uint64_t offset, std::string_view what);
  void ApplyToDisk(const Change& change);
  void Confirm(const std::vector<Change>& changes);

  std::vector<Node> nodes_ = {Node{true, {}, {}, -1}};
  std::map<std::string, int> names_ = {{"/", 0}};
  std::map<std::string, int> confirmed_names_ = {{"/", 0}};
  std::vector<Change> changes_;
  std::function<void(SimulatedDisk&)> before_lock_;
  std::map<int, int> open_;  // descriptor -> node
  int next_file_ = 3;

  Fault fault_ = Fault::kNone;
  std::uint64_t fault_at_ = 0;
  bool always_ = false;
  std::uint64_t operations_ = 0, failures_ = 0;
  bool now_short_ = false;
};

}  // namespace boltbeam::ledger
