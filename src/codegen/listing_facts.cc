#include "codegen/listing_facts.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace boltbeam::codegen {
namespace {

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The numbers of the vector registers that a line names: xmm, ymm and zmm; or v and q.
std::set<int> VectorRegisters(std::string_view line) {
  std::set<int> registers;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool is_x86 = line.substr(at).starts_with("mm") && at >= 2 && line[at - 2] == '%';
    const bool is_arm = (line[at] == 'v' || line[at] == 'q') && at > 0 && !IsWord(line[at - 1]) && line[at - 1] != '%';
    if (!is_x86 && !is_arm) continue;
    std::size_t digit = at + (is_x86 ? 2 : 1);
    if (digit >= line.size() || !IsDigit(line[digit])) continue;
    int number = 0;
    while (digit < line.size() && IsDigit(line[digit])) number = 10 * number + (line[digit++] - '0');
    const bool ends = digit == line.size() || !IsWord(line[digit]);
    if (ends) registers.insert(number);
  }
  return registers;
}

/// The code between a label and a jump back to it, in lines.
struct Loop {
  std::size_t first, last;
};

}  // namespace

bool NamesVectorRegister(std::string_view line) { return !VectorRegisters(line).empty(); }

ListingFacts FactsOfListing(std::string_view assembly) {
  ListingFacts facts;
  std::set<int> registers;
  std::map<std::string, std::size_t, std::less<>> labels;
  std::vector<Loop> loops;
  std::size_t instructions = 0;  // so far
  while (!assembly.empty()) {
    const std::string_view line = assembly.substr(0, assembly.find('\n'));
    assembly.remove_prefix(std::min(assembly.size(), line.size() + 1));
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    std::string_view text = line.substr(begin);
    const std::size_t colon = text.find(':');
    if (begin == 0 && colon != std::string_view::npos) {
      labels.emplace(std::string(text.substr(0, colon)), instructions);
      continue;
    }
    if (text.empty() || begin == 0 || text.front() == '.' || text.front() == '#' || text.front() == '/') continue;
    ++instructions;
    const std::set<int> named = VectorRegisters(text);
    registers.insert(named.begin(), named.end());
    const bool on_stack = text.find("%rsp") != std::string_view::npos || text.find("[sp") != std::string_view::npos;
    if (on_stack && !named.empty()) ++facts.spills;
    const std::size_t target = text.find(".L");
    if (target == std::string_view::npos || (text.front() != 'j' && text.front() != 'b' && text.front() != 'c'))
      continue;
    std::size_t end = target + 1;
    while (end < text.size() && IsWord(text[end])) ++end;
    const auto label = labels.find(text.substr(target, end - target));
    if (label != labels.end()) loops.push_back({label->second, instructions});
  }
  for (const Loop& loop : loops) {
    const auto inside = [&](const Loop& other) {
      return other.first >= loop.first && other.last <= loop.last && other.last - other.first < loop.last - loop.first;
    };
    if (std::ranges::any_of(loops, inside)) continue;
    facts.loop_instructions = std::max(facts.loop_instructions, static_cast<std::uint32_t>(loop.last - loop.first));
  }
  facts.vector_registers = static_cast<std::uint32_t>(registers.size());
  return facts;
}

}  // namespace boltbeam::codegen
