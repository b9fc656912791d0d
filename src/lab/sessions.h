// Sessions of a machine: rows that were measured in one go. Another hour has other neighbours on a shared machine,
// another clock, another heat: what one session says of the next is less than what its own rows say of each other.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/row.h"
#include "lab/variance.h"

namespace boltbeam::lab {

/// A pause longer than this ends a session.
inline constexpr double kSessionGapSeconds = 600;
/// By how much two sessions differ where nobody has measured it: standard deviation of the difference, as a part of the
/// time. docs/lab.md says where it comes from.
inline constexpr double kAssumedBetween = 0.05;

/// "2026-11-30T11:40:38Z" in seconds since 1970; nullopt for anything else.
std::optional<double> UtcSeconds(const std::string& date);

/// The number of each row's session, from 0 in the order of time. Rows without a date are of the first.
std::vector<std::size_t> SplitSessions(std::span<const Row* const> rows);

/// What one session measured of one model.
struct Cell {
  std::size_t model = 0, session = 0;
  double seconds = 0;
};

struct Sessions {
  std::vector<std::string> begins;  // the date of the first row of each; empty without dates
  std::vector<double> factors;      // of the times of each, about 1
  /// Of one further session's times against the mean of these, as parts of a time: of all its models together, and of
  /// one model beyond that.
  Variance spread, of_model;
  double between = 0;        // standard deviation of two sessions' difference, as a part of a time
  bool is_assumed = true;    // fewer than three sessions with models in common: nobody has measured it
  bool is_connected = true;  // their models are the same ones, directly or through other sessions
};

/// Takes each model's time apart into its own and its session's factor, by least squares of the logarithms, and says
/// what the next session may differ by. seconds gets each model's time in the mean session. assumed: the difference of
/// two sessions that is taken where fewer than three are there; of two, what they differ by when that is more.
Sessions CompareSessions(std::span<const Cell> cells, std::size_t models, std::size_t sessions, double assumed,
                         std::vector<double>& seconds);

}  // namespace boltbeam::lab
