// The trials of a draw in a file, a line each: what a later run goes on with.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace boltbeam {

/// One trial: what was put in and what the audit said.
struct FaultRow {
  std::size_t index = 0;
  std::string kind, row;  // row: empty for kinds without one
  double worth = 0;       // of the token
  std::string said, said_row;
  double said_share = 0;
  std::size_t redrawn = 0;  // faults that could not be made to be worth enough before this one
  bool is_right = false;
};

/// All rows of the file; none where there is no file, or no name.
std::vector<FaultRow> ReadFaultRows(const std::string& path);

/// Nothing without a name.
void AppendFaultRow(const std::string& path, const FaultRow& row);

}  // namespace boltbeam
