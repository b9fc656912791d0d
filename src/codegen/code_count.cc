#include "codegen/code_count.h"

#include <fmt/format.h>

#include <algorithm>

namespace boltbeam::codegen {
namespace {

CodeCount OfProgram(const std::vector<kernel::LoopTurns>& loops, std::uint32_t bits, std::string why) {
  double operations = 0;
  for (const kernel::LoopTurns& loop : loops) operations += loop.turns * loop.vector_operations;
  return {.vector_instructions = chip::VectorCounts::Of(bits, operations), .why = std::move(why)};
}

/// The loops that a compiler leaves as loops; of the others, what is in them belongs to the loop around them.
std::vector<kernel::LoopTurns> RealLoops(const std::vector<kernel::LoopTurns>& loops) {
  std::vector<kernel::LoopTurns> real;
  std::vector<std::int32_t> place(loops.size());
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const std::int32_t parent = loops[i].parent < 0 ? -1 : place[static_cast<std::size_t>(loops[i].parent)];
    if (i > 0 && loops[i].is_single) {
      place[i] = parent;
      continue;
    }
    place[i] = static_cast<std::int32_t>(real.size());
    real.push_back(loops[i]);
    real.back().parent = parent;
  }
  return real;
}

bool AreSame(const std::vector<ListingLoop>& listing, const std::vector<kernel::LoopTurns>& loops) {
  return std::ranges::equal(listing, loops, {}, &ListingLoop::parent, &kernel::LoopTurns::parent);
}

}  // namespace

CodeCount CountLoops(const std::vector<ListingLoop>& listing, const std::vector<kernel::LoopTurns>& program,
                     std::uint32_t bits) {
  // A compiler may leave a loop that turns once, too: it need not see that its end is no smaller than its beginning.
  std::vector<kernel::LoopTurns> loops = program;
  if (!AreSame(listing, loops)) loops = RealLoops(program);
  if (!AreSame(listing, loops)) {
    return OfProgram(
        program, bits,
        fmt::format("the compiler made {} loops of the program's {}", listing.size() - 1, program.size() - 1));
  }
  CodeCount count{.is_from_listing = true};
  for (std::size_t i = 0; i < loops.size(); ++i) {
    count.vector_instructions += listing[i].vector_instructions * loops[i].turns;
  }
  return count;
}

const CodeCounter::Code& CodeCounter::CodeOf(const kernel::Program& program) {
  const auto [place, is_new] = codes_.try_emplace(kernel::Identity(program));
  if (is_new) {
    const Result<std::string> listing = EmitListing(program, target_, Listing::kAssembly);
    if (listing) {
      place->second.loops = LoopsOfListing(*listing);
    } else {
      place->second.why_not = listing.error().Message();
    }
  }
  return place->second;
}

CodeCount CodeCounter::Count(const kernel::Program& program, std::int64_t begin, std::int64_t end,
                             std::span<const kernel::KnownWord> known) {
  const std::vector<kernel::LoopTurns> turns = kernel::TurnsOf(program, begin, end, known);
  const Code& code = CodeOf(program);
  return code.why_not.empty() ? CountLoops(code.loops, turns, bits_) : OfProgram(turns, bits_, code.why_not);
}

}  // namespace boltbeam::codegen
