// What `compare --import` shows: what another program measured, with what is doubtful, left out or can't be told.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "audit/compare/attribution.h"
#include "audit/import/imported.h"
#include "audit/recorded/recorded.h"

namespace boltbeam::report {

struct ShownImport {
  std::string file;
  imports::Imported imported;
  std::vector<audit::Attribution> attributions;  // when a model was named: of each device and process
};

/// format: text, md or json.
std::string ImportReport(const ShownImport& shown, std::string_view format);

/// A published ledger: every line as recorded and as derived, and which differences the file itself explains.
std::string RecordedReport(std::string_view file, const audit::RecordedAccount& account, std::string_view format);

}  // namespace boltbeam::report
