#include "audit/recorded/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "audit/recorded/derive.h"
#include "base/json_members.h"
#include "base/printable.h"

namespace boltbeam::audit {
namespace {

struct Kind {
  std::string_view name;  // within the schema
  void (*derive)(Deriver& deriver);
};

constexpr std::array kKinds{Kind{"seed_tie_outs", DeriveTieOuts},           Kind{"decode_ledger", DeriveDecodeLedger},
                            Kind{"active_body_ledger", DeriveActiveBodies}, Kind{"lifecycle_ledger", DeriveLifecycle},
                            Kind{"wall_account", DeriveWallAccount},        Kind{"kernel_census", DeriveCensus}};

const Kind* KindOf(const Json& document) {
  if (!document.is_object()) return nullptr;
  const std::string schema = base::TextOf(document, "schema");
  const auto found =
      std::ranges::find_if(kKinds, [&](const Kind& kind) { return schema.find(kind.name) != std::string::npos; });
  return found == kKinds.end() ? nullptr : found;
}

std::string NoteOf(const Json& check) {
  if (check.is_string()) return check.get<std::string>();
  if (check.is_object()) return base::TextOf(check, "note");
  std::string notes;
  if (check.is_array()) {
    for (const Json& one : check) notes += (notes.empty() ? "" : "; ") + NoteOf(one);
  }
  return notes;
}

constexpr std::size_t kDeepest = 32;

void CollectChecks(const Json& value, const std::string& path, std::size_t depth, std::vector<std::string>& checks) {
  if (depth > kDeepest) return;
  if (value.is_object()) {
    if (const auto check = value.find("check"); check != value.end()) {
      const std::string note = NoteOf(*check);
      if (!note.empty()) checks.push_back(fmt::format("{}: {}", path.empty() ? "the file" : path, note));
    }
    for (const auto& [key, child] : value.items()) {
      if (key != "check") CollectChecks(child, path.empty() ? key : path + "." + key, depth + 1, checks);
    }
  } else if (value.is_array()) {
    for (const Json& child : value) {
      CollectChecks(child, child.is_object() && child.contains("name") ? path + "." + NameOf(child) : path, depth + 1,
                    checks);
    }
  }
}

bool HoldsNumber(const Json& value, double number) {
  constexpr double kAsPrinted = 2e-4;  // relative
  if (value.is_number()) {
    const double held = value.get<double>();
    return std::fabs(held - number) <= kAsPrinted * std::max(std::fabs(held), std::fabs(number));
  }
  if (!value.is_structured()) return false;
  return std::ranges::any_of(value, [&](const Json& one) { return HoldsNumber(one, number); });
}

/// The note of a check that has this very figure as recorded and that one as recomputed; empty: it is of something
/// else.
std::string Explains(const Json& check, double recorded, double derived) {
  if (check.is_array()) {
    for (const Json& one : check) {
      if (std::string note = Explains(one, recorded, derived); !note.empty()) return note;
    }
    return {};
  }
  const bool is_of_it = check.is_object() && check.contains("recorded") && check.contains("recomputed") &&
                        HoldsNumber(check.at("recorded"), recorded) && HoldsNumber(check.at("recomputed"), derived);
  if (!is_of_it) return {};
  const std::string note = NoteOf(check);
  return note.empty() ? "the file has another figure of its own" : note;
}

/// The nearest check at the section or above it that is of this difference.
std::string Explanation(const Json& document, std::string section, double recorded, double derived) {
  for (;;) {
    const Json* object = At(document, section);
    if (object != nullptr && object->is_object() && object->contains("check")) {
      if (std::string note = Explains(object->at("check"), recorded, derived); !note.empty()) return note;
    }
    if (section.empty()) return {};
    section.resize(section.rfind('/'));
  }
}

}  // namespace

bool DerivedLine::Agrees() const { return !recorded || std::fabs(*recorded - derived) <= tolerance; }

std::vector<const DerivedLine*> RecordedAccount::Open() const {
  std::vector<const DerivedLine*> open;
  for (const DerivedLine& line : lines) {
    if (!line.Agrees() && line.explained.empty()) open.push_back(&line);
  }
  return open;
}

const Json* At(const Json& document, const std::string& path) {
  if (path.empty()) return &document;
  const Json::json_pointer pointer(path);
  return document.contains(pointer) ? &document.at(pointer) : nullptr;
}

std::optional<double> NumberOf(const Json& document, const std::string& path) {
  const Json* value = At(document, path);
  return value != nullptr && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::span<const Json> ListOf(const Json& document, const std::string& path) {
  const Json* value = At(document, path);
  if (value == nullptr || !value->is_array()) return {};
  return value->get_ref<const Json::array_t&>();
}

double SumOf(std::span<const Json> rows, const std::string& key) {
  double sum = 0;
  for (const Json& row : rows) sum += NumberOf(row, "/" + key).value_or(0);
  return sum;
}

std::string NameOf(const Json& row) {
  const auto name = row.is_object() ? row.find("name") : row.end();
  return row.is_object() && name != row.end() && name->is_string() ? base::Printable(name->get<std::string>(), 60)
                                                                   : "?";
}

std::optional<double> Minus(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(*a - *b) : std::nullopt;
}

std::optional<double> Plus(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

void Deriver::Line(const std::string& section, std::string line, std::optional<double> recorded,
                   std::optional<double> derived, double tolerance) {
  if (!derived) return;
  DerivedLine made{section.empty() ? "" : section.substr(1), std::move(line), recorded, *derived, tolerance, {}};
  std::ranges::replace(made.section, '/', '.');
  if (!made.Agrees()) made.explained = Explanation(document_, section, *recorded, *derived);
  account_.lines.push_back(std::move(made));
}

bool IsRecorded(const Json& document) { return KindOf(document) != nullptr; }

Result<RecordedAccount> DeriveRecorded(std::string_view name, const Json& document) {
  const Kind* kind = KindOf(document);
  if (kind == nullptr) {
    return Fail(Code::kStoredAccount, std::string(name),
                fmt::format("the schema \"{}\"", base::Printable(base::TextOf(document, "schema"), 60)),
                "a decode, active-body, lifecycle or wall ledger, a kernel census or tie-outs");
  }
  RecordedAccount account;
  account.schema = base::TextOf(document, "schema");
  account.chip = base::TextOf(document, "chip");
  account.model = base::TextOf(document, "model");
  Deriver deriver(document, account);
  kind->derive(deriver);
  CollectChecks(document, "", 0, account.checks);
  if (account.lines.empty()) {
    return Fail(Code::kStoredAccount, std::string(name), "a ledger without figures from which a line follows",
                "the fields of its schema");
  }
  return account;
}

}  // namespace boltbeam::audit
