#include "codegen/listing_loops.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "codegen/listing_facts.h"

namespace boltbeam::codegen {
namespace {

using Set = std::vector<bool>;  // of blocks

struct Block {
  chip::VectorCounts vector_instructions;
  std::vector<std::string> targets;  // labels that it may jump to
  bool falls_through = true;         // into the next block
  std::vector<std::size_t> next;
};

std::string_view FirstWord(std::string_view text) { return text.substr(0, text.find_first_of(" \t")); }

bool IsJump(std::string_view word) {
  return word.starts_with('j') || word == "b" || word.starts_with("b.") || word.starts_with("cb") ||
         word.starts_with("tb");
}

/// The label that a jump names; empty: none.
std::string TargetOf(std::string_view text) {
  const std::size_t begin = text.find(".L");
  if (begin == std::string_view::npos) return {};
  std::size_t end = begin + 2;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
  return std::string(text.substr(begin, end - begin));
}

/// The function cut at its labels and behind its jumps, from the label `kernel` on.
std::vector<Block> BlocksOf(std::string_view assembly) {
  std::vector<Block> blocks;
  std::map<std::string, std::size_t> starts;
  bool is_open = false, is_inside = false;
  while (!assembly.empty()) {
    const std::string_view line = assembly.substr(0, assembly.find('\n'));
    assembly.remove_prefix(std::min(assembly.size(), line.size() + 1));
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    const std::string_view text = line.substr(begin);
    if (begin == 0 && text.find(':') != std::string_view::npos) {
      is_inside = is_inside || text.starts_with("kernel:");
      if (!is_inside || text.starts_with(".Lfunc")) continue;
      starts.emplace(std::string(text.substr(0, text.find(':'))), blocks.size());
      blocks.emplace_back();
      is_open = true;
      continue;
    }
    if (!is_inside || text.empty() || begin == 0 || text.front() == '.' || text.front() == '#' || text.front() == '/')
      continue;
    if (!is_open) blocks.emplace_back();
    is_open = true;
    Block& block = blocks.back();
    const std::string_view word = FirstWord(text);
    if (const std::uint32_t bits = VectorInstructionBits(text); bits > 0)
      block.vector_instructions += chip::VectorCounts::Of(bits, 1);
    if (word.starts_with("ret")) {
      block.falls_through = false;
      is_open = false;
    } else if (IsJump(word)) {
      block.targets.push_back(TargetOf(text));
      block.falls_through = word != "jmp" && word != "b";
      is_open = false;
    }
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].falls_through && i + 1 < blocks.size()) blocks[i].next.push_back(i + 1);
    for (const std::string& target : blocks[i].targets) {
      if (const auto start = starts.find(target); start != starts.end()) blocks[i].next.push_back(start->second);
    }
  }
  return blocks;
}

/// The blocks that the function can come to.
Set ReachableOf(const std::vector<Block>& blocks) {
  Set reachable(blocks.size(), false);
  std::vector<std::size_t> open{0};
  while (!open.empty()) {
    const std::size_t block = open.back();
    open.pop_back();
    if (reachable[block]) continue;
    reachable[block] = true;
    open.insert(open.end(), blocks[block].next.begin(), blocks[block].next.end());
  }
  return reachable;
}

/// [block]: the blocks that every way to it passes.
std::vector<Set> DominatorsOf(const std::vector<Block>& blocks) {
  std::vector<Set> dominators(blocks.size(), Set(blocks.size(), true));
  dominators[0].assign(blocks.size(), false);
  dominators[0][0] = true;
  for (bool changes = true; changes;) {
    changes = false;
    for (std::size_t from = 0; from < blocks.size(); ++from) {
      for (const std::size_t to : blocks[from].next) {
        for (std::size_t i = 0; i < blocks.size(); ++i) {
          if (i == to || !dominators[to][i] || dominators[from][i]) continue;
          dominators[to][i] = false;
          changes = true;
        }
      }
    }
  }
  return dominators;
}

/// A loop's blocks, by its header: those that reach a jump back to it.
std::map<std::size_t, Set> BodiesOf(const std::vector<Block>& blocks) {
  const std::vector<Set> dominators = DominatorsOf(blocks);
  const Set reachable = ReachableOf(blocks);
  std::vector<std::vector<std::size_t>> before(blocks.size());
  for (std::size_t from = 0; from < blocks.size(); ++from) {
    for (const std::size_t to : blocks[from].next) before[to].push_back(from);
  }
  std::map<std::size_t, Set> bodies;
  for (std::size_t from = 0; from < blocks.size(); ++from) {
    for (const std::size_t header : blocks[from].next) {
      if (!reachable[from] || !dominators[from][header]) continue;
      Set& body = bodies.try_emplace(header, Set(blocks.size(), false)).first->second;
      body[header] = true;
      std::vector<std::size_t> open{from};
      while (!open.empty()) {
        const std::size_t block = open.back();
        open.pop_back();
        if (body[block]) continue;
        body[block] = true;
        open.insert(open.end(), before[block].begin(), before[block].end());
      }
    }
  }
  return bodies;
}

bool IsMove(std::string_view word, std::string_view text) {
  const bool is_memory = text.find('(') != std::string_view::npos || text.find('[') != std::string_view::npos;
  constexpr std::array<std::string_view, 3> kShuffles = {"vmovshdup", "vmovsldup", "vmovddup"};
  if (std::ranges::find(kShuffles, word) != kShuffles.end()) return false;
  if (word.starts_with("vmov") || word.starts_with("mov") || word.starts_with("fmov")) return true;
  if (word.starts_with("vbroadcast") || word.starts_with("vpbroadcast")) return is_memory;
  return word.starts_with("ld") || word.starts_with("st");
}

/// xor of a register with itself.
bool IsClearing(std::string_view word, std::string_view text) {
  if (!word.starts_with("vxorp") && !word.starts_with("vpxor") && !word.starts_with("xorp") &&
      !word.starts_with("pxor"))
    return false;
  const std::size_t first = text.find('%');
  const std::size_t comma = text.find(',', first);
  if (first == std::string_view::npos || comma == std::string_view::npos) return false;
  const std::size_t second = text.find('%', comma);
  return second != std::string_view::npos && text.substr(second, comma - first) == text.substr(first, comma - first);
}

}  // namespace

std::uint32_t VectorInstructionBits(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return 0;
  const std::string_view text = line.substr(begin);
  const std::string_view word = FirstWord(text);
  return IsMove(word, text) || IsClearing(word, text) ? 0 : VectorBits(text);
}

std::vector<ListingLoop> LoopsOfListing(std::string_view assembly) {
  const std::vector<Block> blocks = BlocksOf(assembly);
  std::vector<ListingLoop> loops(1);
  if (blocks.empty()) return loops;
  const std::map<std::size_t, Set> bodies = BodiesOf(blocks);
  std::vector<std::size_t> headers;
  for (const auto& [header, body] : bodies) {
    // The smallest loop around it; what comes before it in the listing may only be around it.
    ListingLoop loop{.parent = 0};
    std::size_t smallest = blocks.size() + 1;
    for (std::size_t i = 0; i < headers.size(); ++i) {
      const Set& other = bodies.at(headers[i]);
      const auto size = static_cast<std::size_t>(std::ranges::count(other, true));
      if (!other[header] || size >= smallest) continue;
      smallest = size;
      loop.parent = static_cast<std::int32_t>(i) + 1;
    }
    headers.push_back(header);
    loops.push_back(loop);
  }
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    std::size_t innermost = 0, smallest = blocks.size() + 1;
    for (std::size_t i = 0; i < headers.size(); ++i) {
      const Set& body = bodies.at(headers[i]);
      const auto size = static_cast<std::size_t>(std::ranges::count(body, true));
      if (!body[block] || size >= smallest) continue;
      smallest = size;
      innermost = i + 1;
    }
    loops[innermost].vector_instructions += blocks[block].vector_instructions;
  }
  return loops;
}

}  // namespace boltbeam::codegen
