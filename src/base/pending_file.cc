#include "base/pending_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/paths.h"

namespace boltbeam::base {
namespace {

// What RemoveAll walks. A command has one or two pending files; one beyond the last slot would only not be removed
// when a second Ctrl-C ends the process at once.
constexpr std::size_t kSlots = 16;
std::array<std::atomic<const char*>, kSlots> pending{};
static_assert(std::atomic<const char*>::is_always_lock_free, "a signal handler reads it");

void Register(const char* name) {
  for (std::atomic<const char*>& slot : pending) {
    const char* empty = nullptr;
    if (slot.compare_exchange_strong(empty, name)) return;
  }
}

void Forget(const char* name) {
  for (std::atomic<const char*>& slot : pending) {
    const char* expected = name;
    if (slot.compare_exchange_strong(expected, nullptr)) return;
  }
}

}  // namespace

Result<PendingFile> PendingFile::Create(std::string path) {
  BOLTBEAM_TRY(CheckFileName(path));
  std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  const int fd = ::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return Fail(Code::kFileWrite, path, std::strerror(errno), "a folder that can be written to");
  return PendingFile(std::move(path), std::move(temporary), fd);
}

PendingFile::PendingFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(new std::string(std::move(temporary))), fd_(fd) {
  Register(temporary_->c_str());
}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, nullptr)),
      fd_(std::exchange(other.fd_, -1)) {}

PendingFile::~PendingFile() {
  if (fd_ >= 0) ::close(fd_);
  if (temporary_ == nullptr) return;
  ::unlink(temporary_->c_str());
  Forget(temporary_->c_str());
  delete temporary_;
}

std::unexpected<Error> PendingFile::WriteError(int error) const {
  return Fail(Code::kFileWrite, path_, std::strerror(error), "a folder with free space");
}

Result<void> PendingFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return WriteError(count < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> PendingFile::Commit() {
  if (::fsync(fd_) != 0 || ::rename(temporary_->c_str(), path_.c_str()) != 0) return WriteError(errno);
  Forget(temporary_->c_str());
  delete std::exchange(temporary_, nullptr);
  return {};
}

void PendingFile::RemoveAll() noexcept {
  for (const std::atomic<const char*>& slot : pending) {
    if (const char* name = slot.load()) ::unlink(name);
  }
}

}  // namespace boltbeam::base
