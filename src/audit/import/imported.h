// What other programs measured, read from their own output: kernels, calls, rates and facts, with what is doubtful or
// left out beside them (docs/compare.md, "Imports").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace boltbeam::imports {

enum class RowKind : std::uint8_t {
  kKernel,     // work on the chip inside a run
  kCopy,       // of memory, by the chip or its copy engine
  kHostCall,   // of a driver's or runtime's function, timed on the host: not the chip's time
  kOperation,  // one operation timed alone and repeated
};
std::string_view RowKindName(RowKind kind);

/// One line of a trace or a summary. What the file does not say is nullopt and never 0.
struct Row {
  RowKind kind = RowKind::kKernel;
  std::string name;
  std::string group;  // device and process, or channel: rows of different groups are never added up
  double calls = 1;
  std::optional<double> total_ns;      // of all calls
  std::optional<double> start_ns;      // of a trace's row, on the file's own clock
  std::optional<double> bytes;         // moved by one call, as the file counts them
  std::optional<double> printed_gb_s;  // as the file prints it, 1 GB = 1e9 bytes
  std::string doubt;                   // why a figure can't be true; such a row has no rate
  bool name_cut = false;               // the tool shortened it
  std::size_t line = 0;
  std::string launch = {};  // grid and block, where the file has them: kernels of one name may differ in them
};

/// "device 0, process 42"; what the file does not say is left out.
std::string GroupOf(std::string_view device, std::string_view process);

/// Tokens per second of one test: prompt ("pp512") or generation ("tg128", "tg128 @ d512").
struct Rate {
  std::string test;
  std::optional<double> tokens;   // of one sequence
  std::optional<double> tok_s;    // nullopt: not measured
  std::optional<double> spread;   // standard deviation, tok/s
  std::optional<double> checked;  // tok/s from the file's own tokens and times, where it has them
  std::optional<double> threads;
  std::string note;  // what the figure is not
  std::size_t line = 0;
};

struct Fact {
  std::string name;  // with its unit: "ttft_ms", "device"
  std::string text;
  std::optional<double> value;
};

struct Refused {
  std::size_t line = 0;
  std::string reason;
};

struct Imported {
  std::string kind;     // "nsys trace (CSV)"
  std::string version;  // of the tool, where the file says it
  std::vector<Row> rows;
  std::vector<Rate> rates;
  std::vector<Fact> facts;
  std::vector<std::string> notes;  // what these figures can't tell
  std::vector<Refused> refused;    // lines that were left out, and why
};

struct Totals {
  std::size_t rows = 0, names = 0, untimed = 0;
  double calls = 0, ns = 0;
};
/// Of one group, or without one of all rows.
Totals TotalsOf(const Imported& imported, RowKind kind, std::optional<std::string_view> group = {});

/// The groups that rows of this kind belong to, in the order of the file; one, perhaps without a name, for most files.
std::vector<std::string> GroupsOf(const Imported& imported, RowKind kind);

/// Of a group's kernels that have a start: union is the time in which at least one ran, never last end minus first
/// start. Two devices are two groups: what runs at once on both is no overlap of either.
struct Timeline {
  double span_ns = 0, union_ns = 0, overlap_ns = 0, gaps_ns = 0;
};
std::optional<Timeline> TimelineOf(const Imported& imported, std::string_view group);

/// Recognises the kind by the content and reads it. `name` is for messages. kImportUnknown: no reader knows it, and
/// what it looks like; kImportEmpty: a known kind without figures, and why; kImportDamaged: with the line.
Result<Imported> ImportText(std::string_view name, std::string_view bytes);

/// The kinds that can be read, in words, for a message.
std::vector<std::string_view> Kinds();

}  // namespace boltbeam::imports
