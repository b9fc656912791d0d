// What the process's other threads use of the CPUs, by the side that they work for. A thread that works while its
// side's timer stands still works outside the timer, whether at once or, when it has slept for a while, in the other
// side's window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace boltbeam::judge {

class ThreadMeter {
 public:
  /// Threads that are alive now work for neither side until Learn sees them work.
  ThreadMeter();

  /// Threads that came since the last reading, or worked in it and in another of this side, work for this side; nothing
  /// of that is charged. To be called twice for each side.
  void Learn(bool is_b);
  /// The others' work since the last reading is charged to nobody: a probe's threads.
  void Skip();

  /// What a side's threads use between the two is inside its timer.
  void BeginTimer(bool is_b);
  void EndTimer(bool is_b);

  /// Nanoseconds that a side's threads used outside its timers since it was asked for last. Threads that came since the
  /// last reading are the side's, with all that they used; what works for neither side is charged to both. To be asked
  /// while all of them sleep: the process's clock lags behind running ones.
  double Outside(bool is_b);

 private:
  struct Thread {
    std::array<bool, 2> works_for{};        // A, B
    std::array<std::uint32_t, 2> spans{};   // that a side was learned from, in which this thread worked
    double ns = 0;                          // of CPU time, at the last reading
    double timed_ns = 0;                    // of that inside the timers of its side
    double begin_ns = 0;                    // when its side's timer began
    std::array<double, 2> charged_ns = {};  // outside them, to A and to B

    [[nodiscard]] bool IsChargedTo(std::size_t side) const { return works_for[side] || !works_for[1 - side]; }
    /// What is owed since the last call.
    double Charge(std::size_t side);
  };

  void Read(std::optional<std::size_t> newcomers);
  void Bury(const Thread& thread);

  std::map<int, Thread> threads_;            // by their numbers
  double ended_ns_ = 0;                      // CPU time of threads that have ended
  std::array<double, 2> ended_charge_ns_{};  // of that what is owed
};

}  // namespace boltbeam::judge
