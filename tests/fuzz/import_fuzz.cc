// Any bytes are what some program printed, or an error that says where: never a crash, never a figure that is no
// number.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "audit/compare/attribution.h"
#include "audit/compare/stored.h"
#include "audit/import/imported.h"
#include "audit/recorded/recorded.h"
#include "report/import_format.h"

namespace {

using namespace boltbeam;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

bool Finite(const std::optional<double>& value) { return !value || std::isfinite(*value); }

void TryImport(std::string_view bytes) {
  auto imported = imports::ImportText("fuzz", bytes);
  if (!imported) {
    Require(!imported.error().found.empty());
    return;
  }
  for (const imports::Row& row : imported->rows)
    Require(Finite(row.total_ns) && Finite(row.start_ns) && Finite(row.bytes));
  for (const imports::Rate& rate : imported->rates) Require(Finite(rate.tok_s) && Finite(rate.checked));
  const audit::PartFloor floors[] = {{"a", "F32", 4, 4096, 0}, {"b", "F32", 4, 8192, 0}};
  const audit::Attribution attribution = audit::Attribute(*imported, floors, 0);
  const report::ShownImport shown{"fuzz", std::move(*imported), {attribution}};
  for (const char* format : {"text", "md", "json"}) Require(!report::ImportReport(shown, format).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  TryImport(bytes);
  const nlohmann::json document = nlohmann::json::parse(bytes, nullptr, false);
  if (const auto recorded = audit::DeriveRecorded("fuzz", document)) {
    Require(!report::RecordedReport("fuzz", *recorded, "text").empty());
  }
  if (const auto stored = audit::ReadStoredAudit("fuzz", document)) {
    const auto same = audit::CompareStored(*stored, *stored);
    Require(same.has_value() && !same->empty());
  }
  return 0;
}
