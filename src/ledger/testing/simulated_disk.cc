#include "ledger/testing/simulated_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ledger/durable.h"

namespace boltbeam::ledger {

void SimulatedDisk::Arm(Fault fault, std::uint64_t at, bool always) {
  fault_ = fault;
  fault_at_ = at;
  always_ = always;
  operations_ = failures_ = 0;
  now_short_ = false;
}

/// Counts the operation; what it has to return when it fails.
std::optional<int> SimulatedDisk::Begin(bool may_be_short, bool is_sync) {
  ++operations_;
  now_short_ = false;
  if (fault_ == Fault::kNone || operations_ < fault_at_ || (operations_ > fault_at_ && !always_)) {
    return std::nullopt;
  }
  const auto fail = [&](int error) {
    ++failures_;
    return std::optional(-error);
  };
  switch (fault_) {
    case Fault::kNoSpace:
      return fail(ENOSPC);
    case Fault::kIo:
    case Fault::kPower:
      return fail(EIO);
    case Fault::kInterrupted:
      return fail(EINTR);
    case Fault::kShort:
      now_short_ = may_be_short;
      return std::nullopt;
    case Fault::kSync:
      return is_sync ? fail(EIO) : std::nullopt;
    case Fault::kNone:
      break;
  }
  return std::nullopt;
}

void SimulatedDisk::Put(std::string& bytes, std::uint64_t offset, std::string_view what) {
  if (bytes.size() < offset + what.size()) bytes.resize(offset + what.size(), '\0');
  bytes.replace(offset, what.size(), what);
}

void SimulatedDisk::ApplyToDisk(const Change& change) {
  switch (change.what) {
    case Change::What::kWrite:
      Put(nodes_[change.node].confirmed, change.offset, change.bytes);
      break;
    case Change::What::kTruncate:
      nodes_[change.node].confirmed.resize(change.offset, '\0');
      break;
    case Change::What::kLink:
      confirmed_names_[change.path] = change.node;
      break;
    case Change::What::kUnlink:
      confirmed_names_.erase(change.path);
      break;
    case Change::What::kRename:
      confirmed_names_.erase(change.from);
      confirmed_names_[change.path] = change.node;
      break;
  }
}

void SimulatedDisk::Restart(Survives survives, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Change> left;
  for (const Change& change : changes_) {
    if (survives != Survives::kAnything || change.what != Change::What::kWrite) {
      left.push_back(change);
      continue;
    }
    for (std::size_t at = 0; at < change.bytes.size(); at += kSectorBytes) {
      Change sector = change;
      sector.offset = change.offset + at;
      sector.bytes = change.bytes.substr(at, kSectorBytes);
      left.push_back(std::move(sector));
    }
  }
  if (survives == Survives::kNothing) left.clear();
  if (survives == Survives::kFront && !left.empty()) {
    left.resize(random() % left.size() + 1);
    left.back().bytes.resize(random() % (left.back().bytes.size() + 1));
  }
  if (survives == Survives::kAnything) {
    std::erase_if(left, [&](const Change&) { return random() % 2 == 0; });
    std::shuffle(left.begin(), left.end(), random);
  }
  for (const Change& change : left) ApplyToDisk(change);
  // A name whose folder is gone is gone.
  for (auto name = confirmed_names_.begin(); name != confirmed_names_.end();) {
    const bool orphan = name->first != "/" && !confirmed_names_.contains(FolderOf(name->first));
    name = orphan ? confirmed_names_.erase(name) : std::next(name);
  }
  names_ = confirmed_names_;
  for (Node& node : nodes_) {
    node.bytes = node.confirmed;
    node.locked_by = -1;
  }
  changes_.clear();
  open_.clear();
  Disarm();
}

std::string SimulatedDisk::State() const {
  std::string text;
  const auto add = [&](std::string_view part) { text.append(std::to_string(part.size())).append(":").append(part); };
  // Nodes by the order in which they are met: one that nothing refers to any more decides nothing.
  std::map<int, std::size_t> met;
  const auto add_node = [&](int number) {
    const bool first = number >= 0 && met.emplace(number, met.size()).second;
    add(number < 0 ? "-" : std::to_string(met.at(number)));
    if (!first) return;
    add(nodes_[number].folder ? "folder" : "file");
    add(nodes_[number].bytes);
    add(nodes_[number].confirmed);
  };
  for (const auto* names : {&names_, &confirmed_names_}) {
    for (const auto& [name, node] : *names) {
      add(name);
      add_node(node);
    }
    add("");
  }
  for (const Change& change : changes_) {
    add(std::to_string(static_cast<int>(change.what)));
    add_node(change.node);
    add(std::to_string(change.offset));
    add(change.bytes);
    add(change.path);
    add(change.from);
  }
  return text;
}

std::string SimulatedDisk::Bytes(const std::string& path) const {
  const auto found = names_.find(path);
  return found == names_.end() ? std::string() : nodes_[found->second].bytes;
}

void SimulatedDisk::SetBytes(const std::string& path, const std::string& bytes) {
  if (!names_.contains(path)) {
    nodes_.emplace_back();
    names_[path] = confirmed_names_[path] = static_cast<int>(nodes_.size()) - 1;
  }
  Node& node = nodes_[names_[path]];
  node.bytes = node.confirmed = bytes;
}

void SimulatedDisk::Erase(const std::string& path) {
  names_.erase(path);
  confirmed_names_.erase(path);
}

int SimulatedDisk::Open(const std::string& path, Access access) {
  if (const auto failed = Begin(false, false)) return *failed;
  auto found = names_.find(path);
  if (found == names_.end()) {
    if (access == Access::kRead || !names_.contains(FolderOf(path))) return -ENOENT;
    nodes_.emplace_back();
    const int node = static_cast<int>(nodes_.size()) - 1;
    found = names_.emplace(path, node).first;
    changes_.push_back({Change::What::kLink, node, 0, {}, path, {}});
  }
  Node& node = nodes_[found->second];
  if (node.folder) return -EISDIR;
  if (access == Access::kReplace && !node.bytes.empty()) {
    node.bytes.clear();
    changes_.push_back({Change::What::kTruncate, found->second, 0, {}, {}, {}});
  }
  open_[next_file_] = found->second;
  return next_file_++;
}

int SimulatedDisk::Close(int file) {
  const auto found = open_.find(file);
  if (found == open_.end()) return -EBADF;
  Node& node = nodes_[found->second];
  if (node.locked_by == file) node.locked_by = -1;
  open_.erase(found);
  // Counted and failed like the others, but the descriptor is gone, as on Linux.
  return Begin(false, false).value_or(0);
}

std::int64_t SimulatedDisk::ReadAt(int file, char* to, std::size_t size, std::uint64_t offset) {
  if (const auto failed = Begin(true, false)) return *failed;
  const std::string& bytes = nodes_[open_.at(file)].bytes;
  if (offset >= bytes.size()) return 0;
  std::size_t count = std::min<std::size_t>(size, bytes.size() - offset);
  if (now_short_ && count > 1) count /= 2;
  std::memcpy(to, bytes.data() + offset, count);
  return static_cast<std::int64_t>(count);
}

std::int64_t SimulatedDisk::WriteAt(int file, const char* from, std::size_t size, std::uint64_t offset) {
  const auto failed = Begin(true, false);
  // A write that fails may have got some way; one that the power fails in certainly may.
  const bool partly = failed && (*failed == -EIO) && (fault_ == Fault::kIo || PowerFailsNow());
  if (failed && !partly) return *failed;
  std::size_t count = size;
  if ((partly || now_short_) && count > 1) count /= 2;
  const int node = open_.at(file);
  const std::string bytes(from, count);
  Put(nodes_[node].bytes, offset, bytes);
  changes_.push_back({Change::What::kWrite, node, offset, bytes, {}, {}});
  return failed ? *failed : static_cast<std::int64_t>(count);
}

std::int64_t SimulatedDisk::Size(int file) {
  if (const auto failed = Begin(false, false)) return *failed;
  return static_cast<std::int64_t>(nodes_[open_.at(file)].bytes.size());
}

int SimulatedDisk::Truncate(int file, std::uint64_t size) {
  if (const auto failed = Begin(false, false)) return *failed;
  const int node = open_.at(file);
  nodes_[node].bytes.resize(size, '\0');
  changes_.push_back({Change::What::kTruncate, node, size, {}, {}, {}});
  return 0;
}

void SimulatedDisk::Confirm(const std::vector<Change>& changes) {
  for (const Change& change : changes) ApplyToDisk(change);
}

int SimulatedDisk::Sync(int file) {
  const auto failed = Begin(false, true);
  if (failed && *failed == -EINTR) return *failed;
  const int node = open_.at(file);
  const auto of_file = [&](const Change& change) {
    return change.node == node && (change.what == Change::What::kWrite || change.what == Change::What::kTruncate);
  };
  std::vector<Change> own;
  std::ranges::copy_if(changes_, std::back_inserter(own), of_file);
  if (failed && fault_ == Fault::kPower) return *failed;
  std::erase_if(changes_, of_file);
  // As Linux does after a failed fsync: the changes stay visible, count as written, and never reach the disk.
  if (failed) return *failed;
  Confirm(own);
  return 0;
}

int SimulatedDisk::TryLock(int file) {
  if (const auto failed = Begin(false, false)) return *failed;
  if (before_lock_) std::exchange(before_lock_, nullptr)(*this);
  Node& node = nodes_[open_.at(file)];
  if (node.locked_by >= 0 && node.locked_by != file) return -EWOULDBLOCK;
  node.locked_by = file;
  return 0;
}

int SimulatedDisk::Names(const std::string& path, int file) {
  if (const auto failed = Begin(false, false)) return *failed;
  const auto found = names_.find(path);
  return found != names_.end() && found->second == open_.at(file) ? 1 : 0;
}

int SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  if (const auto failed = Begin(false, false)) return *failed;
  const auto found = names_.find(from);
  if (found == names_.end()) return -ENOENT;
  const int node = found->second;
  names_.erase(found);
  names_[to] = node;
  changes_.push_back({Change::What::kRename, node, 0, {}, to, from});
  return 0;
}

int SimulatedDisk::Remove(const std::string& path) {
  if (const auto failed = Begin(false, false)) return *failed;
  if (names_.erase(path) == 0) return -ENOENT;
  changes_.push_back({Change::What::kUnlink, -1, 0, {}, path, {}});
  return 0;
}

int SimulatedDisk::MakeFolder(const std::string& path) {
  if (const auto failed = Begin(false, false)) return *failed;
  if (names_.contains(path)) return -EEXIST;
  if (!names_.contains(FolderOf(path))) return -ENOENT;
  nodes_.push_back(Node{true, {}, {}, -1});
  const int node = static_cast<int>(nodes_.size()) - 1;
  names_[path] = node;
  changes_.push_back({Change::What::kLink, node, 0, {}, path, {}});
  return 0;
}

int SimulatedDisk::SyncFolder(const std::string& path) {
  if (const auto failed = Begin(false, true)) return *failed;
  if (!names_.contains(path)) return -ENOENT;
  const auto of_folder = [&](const Change& change) { return !change.path.empty() && FolderOf(change.path) == path; };
  std::vector<Change> own;
  std::ranges::copy_if(changes_, std::back_inserter(own), of_folder);
  std::erase_if(changes_, of_folder);
  Confirm(own);
  return 0;
}

int SimulatedDisk::List(const std::string& path, std::vector<std::string>& names) {
  if (const auto failed = Begin(false, false)) return *failed;
  if (!names_.contains(path)) return -ENOENT;
  for (const auto& [name, node] : names_) {
    if (name != "/" && FolderOf(name) == path) names.push_back(name.substr(name.find_last_of('/') + 1));
  }
  return 0;
}

}  // namespace boltbeam::ledger
