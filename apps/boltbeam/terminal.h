// What a person at a terminal sees while a command works: a progress bar on stderr, notes, and Ctrl-C.
#pragma once

#include <cstdint>
#include <string>

namespace boltbeam::app {

/// A bar on stderr while the object lives; nothing at all when stderr is not a terminal.
class Progress {
 public:
  explicit Progress(std::string label);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // clears the line
  /// Redraws at most some times a second. Not to be called from inside a timed part.
  void Show(std::uint64_t done, std::uint64_t total);

 private:
  std::string label_;
  bool terminal_;
  std::uint64_t last_drawn_ns_ = 0;
};

/// A line of text on stderr that changes, while the object lives; nothing at all when stderr is not a terminal.
class Status {
 public:
  explicit Status(std::string label);
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;
  ~Status();  // clears the line
  /// Redraws at most some times a second, cut to the terminal's width. Not to be called from inside a timed part.
  void Show(const std::string& text);

 private:
  std::string label_;
  bool terminal_;
  std::uint64_t last_drawn_ns_ = 0;
};

/// One line on stderr.
void Note(const std::string& text);

/// From now on Ctrl-C only sets what Interrupted() tells, so that a command can end tidily; a second Ctrl-C ends the
/// process at once. For commands that poll.
void CatchInterrupts();
bool Interrupted();

}  // namespace boltbeam::app
