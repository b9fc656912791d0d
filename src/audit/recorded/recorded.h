// Ledgers of other sessions, as published: every line that follows from other fields of the file is derived again and
// set beside what was printed. Where the two differ, the file may say so itself (a `check` beside the field); a line
// that differs and is not explained leaves the account open.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/toll_fit.h"
#include "base/error.h"

namespace boltbeam::audit {

/// A figure as printed and as it follows from the others; both in the unit that ends the line's name.
struct DerivedLine {
  std::string section, line;
  std::optional<double> recorded;  // nullopt: derived only
  double derived = 0;
  double tolerance = 0;   // absolute: half of the last printed place, or as the file states it
  std::string explained;  // the file's own check; empty where the two agree or nothing explains it

  [[nodiscard]] bool Agrees() const;
};

struct RecordedAccount {
  std::string schema, chip, model;
  std::vector<DerivedLine> lines;
  std::vector<TollFit> fits;          // of each set of weight kernels
  std::vector<std::string> findings;  // in words
  std::vector<std::string> checks;    // the file's own, in its order: "endpoint: ..."

  /// Lines that differ from what was printed and that no check of the file explains.
  [[nodiscard]] std::vector<const DerivedLine*> Open() const;
};

/// Whether the document is one of the ledgers that can be derived again.
bool IsRecorded(const nlohmann::json& document);

/// kStoredAccount: a ledger of an unknown kind, or one whose fields are missing.
Result<RecordedAccount> DeriveRecorded(std::string_view name, const nlohmann::json& document);

}  // namespace boltbeam::audit
