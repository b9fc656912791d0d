#include "search/plan_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "base/hash.h"
#include "engine/attention_choice.h"

namespace boltbeam::search {
namespace {

constexpr std::size_t kNameDigits = 8;
constexpr std::size_t kMostName = 40;
constexpr std::string_view kExtension = ".json";

std::string Slug(std::string_view text) {
  std::string slug;
  for (const char c : text.substr(0, kMostName)) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    slug += is_plain ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '-';
  }
  return slug;
}

/// The same for the same chip and tables, so that a newer plan replaces an older one.
std::string NameOf(const PlanFile& plan) {
  const std::string key = fmt::format("{}\n{}", plan.chip, fmt::join(TableNames(plan), "\n"));
  return fmt::format("{}-{}", Slug(plan.made_for), base::Sha256Hex(key).substr(0, kNameDigits));
}

}  // namespace

std::vector<std::string> TableNames(const PlanFile& plan) {
  std::vector<std::string> names;
  for (const PlanTable& table : plan.tables) {
    if (table.table != engine::kAttentionTable) names.push_back(table.table);
  }
  std::ranges::sort(names);
  return names;
}

PlanStore::Listing PlanStore::List() const {
  Listing listing;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (entry.path().extension() != kExtension) continue;
    auto plan = LoadPlanFile(entry.path().string());
    if (!plan) {
      listing.damaged.push_back(std::move(plan).error());
      continue;
    }
    plan->name = entry.path().stem().string();
    listing.plans.push_back(std::move(*plan));
  }
  std::ranges::sort(listing.plans, [](const PlanFile& a, const PlanFile& b) {
    return std::pair(b.date, a.name) < std::pair(a.date, b.name);
  });
  return listing;
}

std::vector<PlanFile> PlanStore::ForChip(const std::string& chip) const {
  std::vector<PlanFile> plans = List().plans;
  std::erase_if(plans, [&](const PlanFile& plan) { return plan.chip != chip; });
  return plans;
}

Result<PlanFile> PlanStore::Find(const std::string& name) const {
  const std::vector<PlanFile> plans = List().plans;
  std::vector<const PlanFile*> found;
  std::string names;
  for (const PlanFile& plan : plans) {
    if (plan.name == name) return plan;
    if (!name.empty() && plan.name.starts_with(name)) found.push_back(&plan);
    names += (names.empty() ? "" : ", ") + plan.name;
  }
  if (found.size() == 1) return *found.front();
  return Fail(Code::kPlanUnknown, "plan " + name, found.empty() ? "no such plan" : "several begin so",
              names.empty() ? "an installed plan; there is none" : "one of " + names);
}

Result<PlanFile> PlanStore::Install(PlanFile plan) const {
  const std::vector<std::string> tables = TableNames(plan);
  plan.name = NameOf(plan);
  for (const PlanFile& other : ForChip(plan.chip)) {
    if (other.name != plan.name && TableNames(other) == tables) BOLTBEAM_TRY(Remove(other));
  }
  BOLTBEAM_TRY(Update(plan));
  return plan;
}

Result<void> PlanStore::Update(const PlanFile& plan) const {
  return base::WriteFileAtomically(PathOf(plan.name), ToJson(plan));
}

Result<void> PlanStore::Remove(const PlanFile& plan) const {
  std::error_code error;
  if (std::filesystem::remove(PathOf(plan.name), error)) return {};
  return Fail(Code::kFileWrite, PathOf(plan.name), error ? error.message() : "not there", "a plan that can be removed");
}

}  // namespace boltbeam::search
