// The vector instructions that machine code spends on a range of work items: counted in its listing, loop by loop, and
// multiplied with how often each loop turns.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/listing_loops.h"
#include "kernel/loop_turns.h"

namespace boltbeam::codegen {

struct CodeCount {
  chip::VectorCounts vector_instructions = {};
  bool is_from_listing = false;  // false: the loop program's own operations on lanes were counted
  std::string why = {};          // they were
};

/// Compiles each program once.
class CodeCounter {
 public:
  /// bits: of the target's vectors.
  CodeCounter(Target target, std::uint32_t bits) : target_(std::move(target)), bits_(bits) {}

  /// Where nothing can be compiled, or the compiler made other loops than the program has, the program is counted.
  CodeCount Count(const kernel::Program& program, std::int64_t begin, std::int64_t end,
                  std::span<const kernel::KnownWord> known = {});

 private:
  struct Code {
    std::vector<ListingLoop> loops;
    std::string why_not;
  };
  const Code& CodeOf(const kernel::Program& program);

  Target target_;
  std::uint32_t bits_;
  std::map<std::string, Code> codes_;  // by identity
};

/// One count from the two: loops are taken in order, those that turn once at most left out. Counts the program when
/// they are not the same loops, its operations as instructions on vectors of so many bits.
CodeCount CountLoops(const std::vector<ListingLoop>& listing, const std::vector<kernel::LoopTurns>& program,
                     std::uint32_t bits);

}  // namespace boltbeam::codegen
