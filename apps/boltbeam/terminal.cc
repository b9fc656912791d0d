#include "terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "base/pending_file.h"
#include "base/ticks.h"

namespace boltbeam::app {
namespace {

constexpr int kInterruptedStatus = 130;  // as a shell reports a process that SIGINT ended
volatile std::sig_atomic_t interrupted = 0;

void OnInterrupt(int /*signal*/) {
  if (interrupted != 0) {
    base::PendingFile::RemoveAll();
    constexpr std::string_view kLine = "boltbeam: stopped at once\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine.data(), kLine.size());
    _exit(kInterruptedStatus);
  }
  interrupted = 1;
}

}  // namespace

Progress::Progress(std::string label) : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (last_drawn_ns_ != 0) std::fputs("\r\033[K", stderr);
}

void Progress::Show(std::uint64_t done, std::uint64_t total) {
  constexpr std::uint64_t kRedrawNs = 100'000'000;
  constexpr std::uint64_t kWidth = 30;
  const std::uint64_t now = base::MonotonicNs();
  if (!terminal_ || total == 0 || now - last_drawn_ns_ < kRedrawNs) return;
  last_drawn_ns_ = now;
  const std::uint64_t full = std::min(kWidth, done * kWidth / total);
  std::fputs(fmt::format("\r{} [{:#<{}}{:.<{}}] {:3} %\033[K", label_, "", full, "", kWidth - full,
                         std::min<std::uint64_t>(100, done * 100 / total))
                 .c_str(),
             stderr);
}

Status::Status(std::string label) : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) != 0) {}

Status::~Status() {
  if (last_drawn_ns_ != 0) std::fputs("\r\033[K", stderr);
}

void Status::Show(const std::string& text) {
  constexpr std::uint64_t kRedrawNs = 200'000'000;
  constexpr std::size_t kWidth = 79;
  const std::uint64_t now = base::MonotonicNs();
  if (!terminal_ || now - last_drawn_ns_ < kRedrawNs) return;
  last_drawn_ns_ = now;
  std::fputs(("\r" + (label_ + " " + text).substr(0, kWidth) + "\033[K").c_str(), stderr);
}

void Note(const std::string& text) { std::fprintf(stderr, "boltbeam: %s\n", text.c_str()); }

void CatchInterrupts() {
  struct sigaction action{};
  action.sa_handler = OnInterrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

}  // namespace boltbeam::app
