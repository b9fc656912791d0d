// A plan as it is kept: which geometry runs which table on which chip, what that was made for, and what proved it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/geometry_choice.h"

namespace boltbeam::search {

struct PlanTable {
  std::string table;    // as engine::TableName: "Q4_K.4096x14336"; or "attention"
  std::string knobs;    // all of them: kernel::GeometryText
  std::string checked;  // CheckKey of what was found correct; another one now, and it is checked again
};

/// Times are nanoseconds of a whole token.
struct PlanGain {
  double ratio = 0, low = 0, high = 0;  // of the token's time over that of what it was compared with
  std::string ruling;                   // of the verdict
  std::string verdict;                  // hash of its record; empty: none was kept
};

struct PlanFile {
  std::string name;       // of the file in the store, without .json; not in the file
  std::string chip;       // id
  std::string chip_name;  // for people
  std::string made_for;   // the model's name, for people
  std::string baseline;   // what it was compared with: "default", ...
  std::uint32_t threads = 0;
  std::string date;  // UTC
  std::string boltbeam_version;
  std::vector<PlanTable> tables;           // by name
  std::vector<std::string> with, without;  // routes; they and attention only for a model of exactly these tables
  std::string llvm;                        // release of the compiler that it was measured with
  std::vector<std::string> features;       // of the machine code that was measured, as codegen::Target has them
  std::optional<PlanGain> gain;

  [[nodiscard]] std::vector<engine::GeometryChoice> Choices() const;
  [[nodiscard]] const PlanTable* Find(std::string_view table) const;
};

std::string ToJson(const PlanFile& plan);
/// where names the text in errors. kPlanFile says which field breaks which rule.
Result<PlanFile> ParsePlan(std::string_view text, const std::string& where);
Result<PlanFile> LoadPlanFile(const std::string& path);

}  // namespace boltbeam::search
