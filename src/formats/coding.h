// Formats whose numbers are not bits in fixed places: indices into tables of groups, and digits to base 3. Each has a
// plain format beside it, derived here: the same codes as bits, a byte for a scale, the same d.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.h"
#include "formats/row_json.h"

namespace boltbeam::formats {

struct GridTable {
  std::uint32_t elements = 0;         // of an entry
  std::vector<std::int32_t> numbers;  // entry after entry
};
using GridTables = std::map<std::string, GridTable>;

/// A field with one number for every `elements` elements of a block.
struct GroupField {
  std::uint32_t elements = 0;
  Field field;
};

/// `bytes` bytes from base_byte, each with so many digits to base 3; elements go byte by byte, then digit by digit.
struct TritRun {
  std::uint32_t bytes = 0, base_byte = 0, digits = 0;
};

struct Coding {
  std::optional<GroupField> index;   // into table, whose entries have as many elements
  std::vector<std::int32_t> table;   // times the row's multiplier
  std::optional<GroupField> signs;   // a bit an element, 1 is minus; without the last one where parity gives it
  bool has_parity = false;           // the number of minus signs of a group is even
  std::optional<GroupField> shifts;  // +1 on every element, -1 where the bit is set
  std::vector<TritRun> trits;        // instead of all these
  std::optional<Field> scales;
  std::int32_t step = 1;  // scale = step * stored - bias
  std::uint32_t elements_per_scale = 0;
  Field d;  // the bits of an f16
  float factor = 1;
};

/// grids.json as text.
Result<GridTables> ParseGrids(std::string_view grids_json);
/// A row of `coded` in rows.json; every bit of the block has to be in use once.
Result<Coding> ParseCoding(const Json& row, const std::string& where, const Format& format, const GridTables& grids);
Result<Format> PlainOf(const Format& format, const Coding& coding, const std::string& where);

}  // namespace boltbeam::formats
