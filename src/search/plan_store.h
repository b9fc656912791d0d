// The plans that searches installed: a file each, in a folder of the data folder.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/paths.h"
#include "search/plan_file.h"

namespace boltbeam::search {

class PlanStore {
 public:
  explicit PlanStore(std::string folder) : folder_(std::move(folder)) {}
  /// data/plans
  static PlanStore In(const base::Paths& paths) { return PlanStore((paths.data / "plans").string()); }

  struct Listing {
    std::vector<PlanFile> plans;  // the newest first
    std::vector<Error> damaged;   // files that can't be read: they are left alone, and not used
  };
  [[nodiscard]] Listing List() const;
  /// Of one chip, the newest first.
  [[nodiscard]] std::vector<PlanFile> ForChip(const std::string& chip) const;
  /// By name or its beginning. kPlanUnknown: none or several.
  [[nodiscard]] Result<PlanFile> Find(const std::string& name) const;

  /// Takes the place of a plan that was made for the same tables on the same chip. Gives it its name.
  Result<PlanFile> Install(PlanFile plan) const;
  /// Writes a plan of the store again, as after a new check.
  [[nodiscard]] Result<void> Update(const PlanFile& plan) const;
  [[nodiscard]] Result<void> Remove(const PlanFile& plan) const;

  [[nodiscard]] std::string PathOf(const std::string& name) const { return folder_ + "/" + name + ".json"; }

 private:
  std::string folder_;
};

/// The names of a plan's tables, sorted: what tells plans for different shapes apart.
std::vector<std::string> TableNames(const PlanFile& plan);

}  // namespace boltbeam::search
