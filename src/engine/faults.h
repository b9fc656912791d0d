// Faults that are put into a token on purpose, so that tests can ask whether the account names them. No command line
// reaches them.
#pragma once

#include <cstdint>
#include <string>

namespace boltbeam::engine {

struct Plan;

/// What is wrong with the steps of `part` while a token is decoded; a default object: nothing.
struct Faults {
  std::string part;
  std::uint32_t late_thread = 0, late_ns = 0;  // this thread begins the part's kernels so much later
  bool scattered = false;                      // the part's row groups are read in no order
  std::uint32_t launches = 1;                  // each kernel of the part is launched in so many pieces
  std::uint32_t barrier_ns = 0;                // every barrier of the token lets its threads go so much later

  friend bool operator==(const Faults&, const Faults&) = default;
  [[nodiscard]] bool IsNone() const { return *this == Faults{}; }
};

/// What a step needs to know of it while it runs.
struct StepFault {
  std::uint32_t late_ns = 0;  // of the thread whose call it is
  bool scattered = false;
};

/// Splits the part's steps into pieces of equal shares, with a barrier after each.
void SplitLaunches(Plan& plan, const Faults& faults, std::uint32_t threads);

}  // namespace boltbeam::engine
