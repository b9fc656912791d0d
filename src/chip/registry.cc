#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/embedded.h"
#include "base/paths.h"
#include "chip/facts.h"
#include "chip/system.h"

namespace boltbeam::chip {
namespace {

namespace fs = std::filesystem;

Result<Chip> ReadRow(const fs::path& path) {
  BOLTBEAM_ASSIGN(const std::string text, base::ReadWholeFile(path));
  return ChipFromJson(text, path.string());
}

std::vector<fs::path> UserRows(const std::string& config_folder) {
  std::vector<fs::path> rows;
  std::error_code error;
  if (config_folder.empty()) return rows;
  for (fs::directory_iterator it(fs::path(config_folder) / "chips", error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".json") rows.push_back(it->path());
  }
  std::ranges::sort(rows);
  return rows;
}

/// A user's row of the same name takes the place of ours.
void Put(std::vector<Chip>& chips, Chip chip) {
  const auto found = std::ranges::find(chips, chip.id, &Chip::id);
  if (found == chips.end()) {
    chips.push_back(std::move(chip));
  } else {
    *found = std::move(chip);
  }
}

}  // namespace

Result<std::vector<Chip>> LoadRegistry(const std::string& config_folder) {
  std::vector<Chip> chips;
  for (const base::EmbeddedFile& file : base::EmbeddedFiles()) {
    if (!file.path.starts_with("chips/")) continue;
    BOLTBEAM_ASSIGN(Chip chip, ChipFromJson(file.text, std::string(file.path)));
    Put(chips, std::move(chip));
  }
  for (const fs::path& path : UserRows(config_folder)) {
    BOLTBEAM_ASSIGN(Chip chip, ReadRow(path));
    Put(chips, std::move(chip));
  }
  std::ranges::sort(chips, {}, &Chip::id);
  return chips;
}

Result<std::vector<Fact>> FactsOfFamily(const CpuInfo& cpu) {
  std::vector<Fact> facts;
  for (const base::EmbeddedFile& file : base::EmbeddedFiles()) {
    if (!file.path.starts_with("cpus/")) continue;
    BOLTBEAM_ASSIGN(Chip row, ChipFromJson(file.text, std::string(file.path)));
    const nlohmann::json json = nlohmann::json::parse(file.text);
    const auto is = [&json](const char* key, const std::string& value) {
      return json.contains(key) && json[key].is_string() && !value.empty() && json[key] == value;
    };
    if (!is("vendor", cpu.vendor) || !is("family", cpu.family)) continue;
    std::ranges::move(row.facts, std::back_inserter(facts));
  }
  return facts;
}

Result<Chip> FindChip(const std::string& id_or_file, const std::string& config_folder) {
  if (id_or_file.ends_with(".json") || id_or_file.contains('/')) return ReadRow(id_or_file);
  BOLTBEAM_ASSIGN(const std::vector<Chip> chips, LoadRegistry(config_folder));
  std::string known;
  for (const Chip& chip : chips) {
    if (chip.id == id_or_file) return chip;
    known += (known.empty() ? "" : ", ") + chip.id;
  }
  return Fail(Code::kChipUnknown, "--chip", id_or_file, "a file that ends in .json, or one of " + known);
}

}  // namespace boltbeam::chip
