// Texts and their numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace boltbeam::model {

/// The tokens first, then texts that merging passes through without their being tokens.
class SymbolTable {
 public:
  /// The tokens must outlive the table and stay where they are. Of equal texts the last one counts; empty ones are
  /// never found.
  explicit SymbolTable(std::span<const std::string> tokens);
  std::int32_t Find(std::string_view text) const;  // -1 when absent
  std::int32_t FindOrAdd(std::string_view text);
  std::string_view Text(std::int32_t symbol) const;
  bool IsToken(std::int32_t symbol) const { return static_cast<std::size_t>(symbol) < tokens_.size(); }
  std::size_t extra() const { return extra_.size(); }

 private:
  // Open addressing; eight bytes a slot, so that the table of a large vocabulary stays in the second-level cache.
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t symbol = -1;
  };
  std::size_t Place(std::string_view text, std::uint32_t hash) const;
  void Insert(std::string_view text, std::int32_t symbol);
  void Grow();

  std::span<const std::string> tokens_;
  std::vector<std::string> extra_;
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace boltbeam::model
