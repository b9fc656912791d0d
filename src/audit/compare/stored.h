// Accounts that `audit -o json` stored: reading them back, and setting two side by side.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "audit/account.h"
#include "audit/compare/comparison.h"
#include "base/error.h"

namespace boltbeam::audit {

struct StoredAudit {
  std::string name;  // of the file
  std::string model, machine, date;
  std::uint64_t threads = 0;
  std::vector<Account> accounts;  // the fields that are stored
};

bool IsStoredAudit(const nlohmann::json& document);

/// kStoredAccount: no stored account, a field that is missing, or one whose lines do not add up to its token.
Result<StoredAudit> ReadStoredAudit(std::string_view name, const nlohmann::json& document);

/// One for each depth that both have; kStoredAccount when there is none.
Result<std::vector<Comparison>> CompareStored(const StoredAudit& ours, const StoredAudit& theirs);

}  // namespace boltbeam::audit
