#include "fault_log.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace boltbeam {
namespace {

constexpr const char* kNoRow = "-";

std::string Word(const std::string& row) { return row.empty() ? kNoRow : row; }
std::string Row(const std::string& word) { return word == kNoRow ? "" : word; }

}  // namespace

std::vector<FaultRow> ReadFaultRows(const std::string& path) {
  std::vector<FaultRow> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    FaultRow row;
    if (!(words >> row.index >> row.is_right >> row.kind >> row.row >> row.worth >> row.said >> row.said_row >>
          row.said_share >> row.redrawn)) {
      continue;  // cut off while it was written
    }
    row.row = Row(row.row);
    row.said_row = Row(row.said_row);
    rows.push_back(row);
  }
  return rows;
}

void AppendFaultRow(const std::string& path, const FaultRow& row) {
  if (path.empty()) return;
  std::ofstream(path, std::ios::app) << fmt::format("{} {:d} {} {} {:.4f} {} {} {:.4f} {}\n", row.index, row.is_right,
                                                    row.kind, Word(row.row), row.worth, row.said, Word(row.said_row),
                                                    row.said_share, row.redrawn);
}

}  // namespace boltbeam
