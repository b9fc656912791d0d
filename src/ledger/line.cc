#include "ledger/line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"
#include "base/printable.h"

namespace boltbeam::ledger {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 6> kKindNames = {"chip_facts", "prediction", "measurement",
                                                        "verdict",    "reopening",  "recovery"};
constexpr std::string_view kHashField = ",\"hash\":\"";
constexpr std::size_t kHashDigits = 64;
// ,"hash":"<64 digits>"}
constexpr std::size_t kSealBytes = kHashField.size() + kHashDigits + 2;
// Deeper than any record; a hostile line must not exhaust the stack of what walks it.
constexpr int kMostDepth = 64;

bool AllFinite(const json& value) {
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  return !value.is_structured() || std::ranges::all_of(value, AllFinite);
}

bool TooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && (text[i] == '{' || text[i] == '[')) {
      if (++depth > kMostDepth) return true;
    } else if (!in_string && (text[i] == '}' || text[i] == ']')) {
      --depth;
    }
  }
  return false;
}

json Body(const Record& record) {
  return {{"kind", KindName(record.kind)}, {"payload", record.payload}, {"prev", record.prev},
          {"schema", kRecordSchema},       {"seq", record.seq},         {"time", record.time},
          {"writer", record.writer}};
}

std::unexpected<Error> Bad(std::string found, std::string expected) {
  return Fail(Code::kLedgerDamaged, {}, std::move(found), std::move(expected));
}

/// A line that says it is a record, but whose fields have other names or types.
Result<Record> FromBody(const json& body) {
  if (!body.is_object() || body.value("schema", json()) != kRecordSchema) {
    return Bad("a line of another schema", std::string(kRecordSchema));
  }
  const auto text = [&](const char* key) -> Result<std::string> {
    const auto found = body.find(key);
    if (found != body.end() && found->is_string()) return found->get<std::string>();
    return Bad(fmt::format("no text in the field {}", key), "the fields of a record");
  };
  Record record;
  BOLTBEAM_ASSIGN(record.time, text("time"));
  BOLTBEAM_ASSIGN(record.writer, text("writer"));
  BOLTBEAM_ASSIGN(record.prev, text("prev"));
  BOLTBEAM_ASSIGN(const std::string kind, text("kind"));
  BOLTBEAM_ASSIGN(record.kind, ParseKind(kind));
  const auto seq = body.find("seq");
  const auto payload = body.find("payload");
  if (seq == body.end() || !seq->is_number_unsigned() || payload == body.end() || !payload->is_object()) {
    return Bad("no sequence number or no payload", "the fields of a record");
  }
  record.seq = seq->get<std::uint64_t>();
  record.payload = *payload;
  if (!IsWriterName(record.writer) || !IsHash(record.prev)) return Bad("a writer or hash that is none", "both");
  return record;
}

}  // namespace

std::string_view KindName(Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

Result<Kind> ParseKind(std::string_view name) {
  for (const Kind kind : kKinds) {
    if (KindName(kind) == name) return kind;
  }
  return Fail(Code::kLedgerRecord, "kind", base::Printable(name), fmt::format("{}", fmt::join(kKindNames, ", ")));
}

Result<std::string> Canonical(const json& value) {
  if (!AllFinite(value)) {
    return Fail(Code::kLedgerRecord, "a record", "a number that is not finite", "finite numbers, or a state in words");
  }
  try {
    return value.dump();
  } catch (const json::exception&) {
    return Fail(Code::kLedgerRecord, "a record", "text that is not UTF-8", "UTF-8");
  }
}

Result<json> ParseJson(std::string_view text, const std::string& where) {
  if (TooDeep(text)) return Fail(Code::kJson, where, "deeply nested JSON", fmt::format("{} levels", kMostDepth));
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return Fail(Code::kJson, where, base::Printable(text, 60), "JSON");
  return value;
}

Result<std::string> WriteLine(Record& record) {
  if (!record.payload.is_object()) {  // ReadLine would refuse the line, and the chain with it
    return Fail(Code::kLedgerRecord, "a record", std::string("a payload that is ") + record.payload.type_name(),
                "an object");
  }
  BOLTBEAM_ASSIGN(std::string line, Canonical(Body(record)));
  record.hash = base::Sha256Hex(line);
  line.pop_back();
  line += fmt::format("{}{}\"}}\n", kHashField, record.hash);
  if (line.size() <= kMostLineBytes) return line;
  return Fail(Code::kLedgerRecord, "a record", fmt::format("{} bytes", line.size()),
              fmt::format("at most {}; put samples into a blob", kMostLineBytes));
}

Result<Record> ReadLine(std::string_view line) {
  if (line.size() > kMostLineBytes) return Bad("a line longer than 1 MiB", "one record");
  if (line.starts_with("\xEF\xBB\xBF") || line.ends_with('\r')) {
    return Bad("a byte order mark or a carriage return: saved by a text editor", "the file as boltbeam wrote it");
  }
  const bool sealed = line.size() > kSealBytes && line.ends_with("\"}") &&
                      line.substr(line.size() - kSealBytes, kHashField.size()) == kHashField;
  if (!sealed) return Bad("a line that does not end with its hash", "a whole record");
  const std::string stated(line.substr(line.size() - kHashDigits - 2, kHashDigits));
  const std::string body_text = std::string(line.substr(0, line.size() - kSealBytes)) + '}';
  const std::string hash = base::Sha256Hex(body_text);
  if (hash != stated) {
    return Bad("the content has the hash " + hash.substr(0, 12) + "…: it was changed",
               "the hash that the line states, " + base::Printable(stated.substr(0, 12)) + "…");
  }
  BOLTBEAM_ASSIGN(const json body, ParseJson(body_text, "a line"));
  BOLTBEAM_ASSIGN(Record record, FromBody(body));
  // Two readers must not understand one line differently: a key given twice, a number in another spelling.
  const Result<std::string> canonical = Canonical(Body(record));
  if (!canonical || *canonical != body_text) return Bad("JSON that is not canonical", "the form that boltbeam writes");
  record.hash = hash;
  return record;
}

bool IsWriterName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= 100 && name.front() != '.' && std::ranges::all_of(name, allowed);
}

bool IsHash(std::string_view text) {
  return text.size() == kHashDigits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace boltbeam::ledger
