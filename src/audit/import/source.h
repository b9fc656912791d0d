// The text to import, cleaned of what terminals and spreadsheets add, as lines and as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json_members.h"

namespace boltbeam::imports {

class Source {
 public:
  /// bytes must outlive the source.
  Source(std::string_view name, std::string_view bytes);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }  // as they are in the file
  /// Without a byte-order mark, carriage returns before line ends and terminal colours.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Of text(); line n of the file is lines()[n - 1].
  [[nodiscard]] const std::vector<std::string_view>& lines() const { return lines_; }
  /// Where each line of lines() begins in text().
  [[nodiscard]] std::size_t OffsetOf(std::size_t index) const {
    return static_cast<std::size_t>(lines_[index].data() - text_.data());
  }
  [[nodiscard]] bool Contains(std::string_view part) const { return text_.find(part) != std::string::npos; }

  /// Objects of the file: one document, or one for each line (JSON lines), which then begin at json_lines(). Empty
  /// when it is neither.
  [[nodiscard]] const std::vector<nlohmann::json>& json() const { return json_; }
  [[nodiscard]] const std::vector<std::size_t>& json_lines() const { return json_lines_; }
  /// Why text that begins as JSON is not: where it ends too early, or the first wrong byte.
  [[nodiscard]] const std::string& json_fault() const { return json_fault_; }
  [[nodiscard]] bool json_cut() const { return json_cut_; }

  /// "name:12"
  [[nodiscard]] std::string At(std::size_t line) const;

 private:
  void ReadJson();
  void ReadJsonLines();

  std::string name_, text_, json_fault_;
  std::string_view bytes_;
  std::vector<std::string_view> lines_;
  std::vector<nlohmann::json> json_;
  std::vector<std::size_t> json_lines_;
  bool json_cut_ = false;
};

using base::NumberAt;
using base::ObjectAt;
using base::TextAt;
bool HasAll(const nlohmann::json& object, std::initializer_list<std::string_view> keys);

}  // namespace boltbeam::imports
