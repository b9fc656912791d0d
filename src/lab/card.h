// A machine's card: the two numbers of its line and what they stand beside, with date and versions, because a release
// of the runtime can move either.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chip/facts.h"
#include "lab/fit.h"

namespace boltbeam::lab {

struct CardLine {
  std::string label, key;  // key: the field of JSON, with its unit
  std::string shown;       // with its unit, for people; "unknown" when nobody measured it
  std::optional<double> value;
  /// Of a line that shows an interval and no value: its ends, where they are finite.
  std::optional<double> low = {}, high = {};
  bool is_interval = false;
};

struct Card {
  std::string alias, device, program;  // "boltbeam 0.1.0"
  std::string date;
  std::vector<CardLine> lines;     // the same labels in the same order on every card
  std::vector<std::string> notes;  // what makes the unknown known, and what is odd
  std::vector<Point> points;       // of the line: drawn
  double fixed_s = 0, bandwidth_bytes_s = 0;
};

/// machine: its measured facts, for what the line does not say (dispatch, barrier, M*); nullptr for another machine's.
Card MakeCard(const MachineFit& fit, const chip::Chip* machine);

}  // namespace boltbeam::lab
