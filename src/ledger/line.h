// One line of a chain: a record and the hashes that tie it to its content and to the line before it.
//
//   {"kind":…,"payload":{…},"prev":"<64 hex>","schema":"boltbeam.ledger.v1","seq":N,"time":…,"writer":…,"hash":"<64
//   hex>"}
//
// Without its last field a line is canonical JSON: keys sorted, no spaces, the shortest decimal that gives the same
// double back. hash is the SHA-256 of exactly that text, so a line can be checked without a JSON library too: put a
// brace in the place of ,"hash":"…"} and hash what is there.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace boltbeam::ledger {

inline constexpr std::string_view kRecordSchema = "boltbeam.ledger.v1";
inline constexpr std::size_t kMostLineBytes = 1 << 20;
/// What the first record of a chain names as the one before it.
inline constexpr std::string_view kNoHash = "0000000000000000000000000000000000000000000000000000000000000000";

enum class Kind : std::uint8_t { kChipFacts, kPrediction, kMeasurement, kVerdict, kReopening, kRecovery };
inline constexpr Kind kKinds[] = {Kind::kChipFacts, Kind::kPrediction, Kind::kMeasurement,
                                  Kind::kVerdict,   Kind::kReopening,  Kind::kRecovery};

/// "chip_facts", "prediction", ...
std::string_view KindName(Kind kind);
Result<Kind> ParseKind(std::string_view name);

struct Record {
  std::uint64_t seq = 0;  // from 1, without gaps
  std::string time;       // UTC, ISO 8601
  std::string writer;     // machine and user; also the name of the chain's file
  std::string prev;       // hash of the record before it
  Kind kind = Kind::kVerdict;
  nlohmann::json payload;
  std::string hash;
};

/// Canonical JSON. kLedgerRecord: a number that is not finite, or text that is not UTF-8.
Result<std::string> Canonical(const nlohmann::json& value);
/// JSON of any origin; deep nesting and other trouble is an error like any other. kJson.
Result<nlohmann::json> ParseJson(std::string_view text, const std::string& where);

/// Fills in hash and gives the line, with its line feed. kLedgerRecord when it would be too long.
Result<std::string> WriteLine(Record& record);
/// line: without its line feed. The hash and the canonical form are checked; what the record says is not.
Result<Record> ReadLine(std::string_view line);

/// Letters, digits and ._- only, so that it can name a file.
bool IsWriterName(std::string_view name);
bool IsHash(std::string_view text);

}  // namespace boltbeam::ledger
