#include "codegen/listing_facts.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
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

constexpr std::int64_t kLineBytes = 64;

/// A read of a whole vector register.
struct Read {
  std::size_t at = 0;  // instruction
  std::int64_t offset = 0, bytes = 0;
};

/// The read of an x86-64 instruction and the registers of its address: "(%rax,%r8)"; nothing when it has none, or
/// another one than of a stream.
std::optional<std::pair<std::string_view, Read>> ReadOf(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.find(')', open);
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  for (const std::string_view other : {"broadcast", "{1to", "prefetch", "%rsp", "%rip"}) {
    if (text.find(other) != std::string_view::npos) return std::nullopt;
  }
  Read read;
  if (text.find("%xmm") != std::string_view::npos) read.bytes = 16;
  if (text.find("%ymm") != std::string_view::npos) read.bytes = 32;
  if (text.find("%zmm") != std::string_view::npos) read.bytes = 64;
  if (read.bytes == 0) return std::nullopt;
  std::size_t digits = open;
  while (digits > 0 && (IsDigit(text[digits - 1]) || text[digits - 1] == '-')) --digits;
  std::from_chars(text.data() + digits, text.data() + open, read.offset);
  return std::pair(text.substr(open, close - open), read);
}

/// Places in the loop of the first read of every line, in the lines' order.
std::vector<std::size_t> FirstReads(const std::vector<Read>& reads) {
  const std::int64_t least = std::ranges::min(reads, {}, &Read::offset).offset;
  std::map<std::int64_t, std::size_t> first;
  for (const Read& read : reads) {
    const std::int64_t from = (read.offset - least) / kLineBytes;
    const std::int64_t to = (read.offset - least + read.bytes - 1) / kLineBytes;
    for (std::int64_t line = from; line <= to; ++line) first.try_emplace(line, read.at);
  }
  std::vector<std::size_t> places;
  for (const auto& [line, place] : first) places.push_back(place);
  return places;
}

/// code: the loop's instructions.
std::optional<StreamFacts> StreamOf(std::span<const std::string_view> code) {
  std::map<std::string_view, std::vector<Read>> by_address;
  for (std::size_t i = 0; i < code.size(); ++i) {
    auto read = ReadOf(code[i]);
    if (!read) continue;
    read->second.at = i;
    by_address[read->first].push_back(read->second);
  }
  if (by_address.empty()) return std::nullopt;
  const auto most = std::ranges::max_element(by_address, {}, [](const auto& entry) { return entry.second.size(); });
  std::vector<std::size_t> places = FirstReads(most->second);
  const auto lines = static_cast<double>(places.size());
  StreamFacts facts;
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t k = i + 1; k < places.size(); ++k) facts.disorder += places[k] < places[i] ? 1 / lines : 0;
  }
  std::ranges::sort(places);
  double squares = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t next = i + 1 < places.size() ? places[i + 1] : places.front() + code.size();
    const auto gap = static_cast<double>(next - places[i]);
    squares += gap * gap;
  }
  facts.unevenness = std::sqrt(squares / lines) / (static_cast<double>(code.size()) / lines);
  return facts;
}

}  // namespace

std::uint32_t VectorBits(std::string_view line) {
  if (VectorRegisters(line).empty()) return 0;
  if (line.find("%zmm") != std::string_view::npos) return 512;
  return line.find("%ymm") != std::string_view::npos ? 256 : 128;
}

ListingFacts FactsOfListing(std::string_view assembly) {
  ListingFacts facts;
  std::set<int> registers;
  std::map<std::string, std::size_t, std::less<>> labels;
  std::vector<Loop> loops;
  std::vector<std::string_view> code;  // so far
  while (!assembly.empty()) {
    const std::string_view line = assembly.substr(0, assembly.find('\n'));
    assembly.remove_prefix(std::min(assembly.size(), line.size() + 1));
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    std::string_view text = line.substr(begin);
    const std::size_t colon = text.find(':');
    if (begin == 0 && colon != std::string_view::npos) {
      labels.emplace(std::string(text.substr(0, colon)), code.size());
      continue;
    }
    if (text.empty() || begin == 0 || text.front() == '.' || text.front() == '#' || text.front() == '/') continue;
    code.push_back(text);
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
    if (label != labels.end()) loops.push_back({label->second, code.size()});
  }
  Loop largest{0, 0};
  for (const Loop& loop : loops) {
    const auto inside = [&](const Loop& other) {
      return other.first >= loop.first && other.last <= loop.last && other.last - other.first < loop.last - loop.first;
    };
    if (std::ranges::any_of(loops, inside)) continue;
    if (loop.last - loop.first > largest.last - largest.first) largest = loop;
  }
  facts.loop_instructions = static_cast<std::uint32_t>(largest.last - largest.first);
  facts.stream = StreamOf(std::span(code).subspan(largest.first, facts.loop_instructions));
  facts.vector_registers = static_cast<std::uint32_t>(registers.size());
  return facts;
}

}  // namespace boltbeam::codegen
