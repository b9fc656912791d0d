#include "model/symbol_table.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace boltbeam::model {
namespace {

std::uint32_t HashText(std::string_view text) {
  const std::size_t hash = std::hash<std::string_view>{}(text);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

// A power of two that stays at most half full.
std::size_t TableSize(std::size_t entries) { return std::bit_ceil(std::max<std::size_t>(16, 2 * entries)); }

}  // namespace

SymbolTable::SymbolTable(std::span<const std::string> tokens) : tokens_(tokens), slots_(TableSize(tokens.size())) {
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty()) Insert(tokens[id], static_cast<std::int32_t>(id));
  }
}

std::string_view SymbolTable::Text(std::int32_t symbol) const {
  const auto at = static_cast<std::size_t>(symbol);
  return at < tokens_.size() ? tokens_[at] : extra_[at - tokens_.size()];
}

// The slot that holds the text, or the free one where it belongs.
std::size_t SymbolTable::Place(std::string_view text, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].symbol >= 0 && (slots_[at].hash != hash || Text(slots_[at].symbol) != text)) at = (at + 1) & mask;
  return at;
}

void SymbolTable::Grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.symbol < 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].symbol >= 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void SymbolTable::Insert(std::string_view text, std::int32_t symbol) {
  if (2 * (used_ + 1) > slots_.size()) Grow();
  const std::uint32_t hash = HashText(text);
  Slot& slot = slots_[Place(text, hash)];
  if (slot.symbol < 0) ++used_;
  slot = {hash, symbol};
}

std::int32_t SymbolTable::Find(std::string_view text) const { return slots_[Place(text, HashText(text))].symbol; }

std::int32_t SymbolTable::FindOrAdd(std::string_view text) {
  const std::int32_t found = Find(text);
  if (found >= 0) return found;
  const auto symbol = static_cast<std::int32_t>(tokens_.size() + extra_.size());
  extra_.emplace_back(text);
  Insert(extra_.back(), symbol);
  return symbol;
}

}  // namespace boltbeam::model
