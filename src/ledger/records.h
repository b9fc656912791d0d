// What the ledger remembers, as types: each knows its rules, and what breaks them is refused before it is written.
//
// Times are in nanoseconds, ratios are time of the candidate over time of the baseline: below 1 is faster.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace boltbeam::ledger {

/// What a record is about. candidate: the identity of a kernel, plan or program, or a name; shape: what part of a model
/// it is for, empty for the whole token.
struct Subject {
  std::string candidate;
  std::string chip;
  std::string model;       // its name
  std::string model_hash;  // SHA-256 of the file or of its header, or empty
  std::string shape;
  std::string plan;
  std::string baseline;  // what it was compared with, or empty
  // How a person named the two; says nothing about what they are.
  std::string candidate_words = {}, baseline_words = {};
};

/// Raw samples in a blob, and the form in which they are written there: rederive.h finds by it what recomputes them.
struct Samples {
  std::string sha256;  // empty: none were kept
  std::string format;
};

struct ChipFacts {
  std::string chip;
  nlohmann::json facts = nlohmann::json::object();  // name -> value or object
  nlohmann::json environment = nlohmann::json::object();
  Samples samples;
};

/// Written before what it foretells is measured.
struct Prediction {
  Subject subject;
  std::optional<std::uint64_t> depth;
  std::string quantity;  // with its unit: "token_ns", "ratio", "floor_ns"
  double value = 0, low = 0, high = 0;
  double confidence = 0.9;  // the chance that the interval is meant to have
  std::string method;       // what foretold it: "audit", "judge", "search", a fitted line
};

struct Measurement {
  Subject subject;
  std::optional<std::uint64_t> depth;
  std::string quantity;
  double value = 0, low = 0, high = 0;
  std::uint64_t repetitions = 0;
  std::string prediction;  // hash of the record that foretold it, or empty
  Samples samples;
  nlohmann::json environment = nlohmann::json::object();
};

enum class Ruling : std::uint8_t {
  kDiagnostic,
  kCandidate,
  kPromote,
  kRefute,
  kDefer,
  kInconclusive,
  kSearchSpaceIncomplete,
  kAdapterIncomplete,
};
std::string_view RulingName(Ruling ruling);  // "search-space-incomplete"
Result<Ruling> ParseRuling(std::string_view name);
std::vector<std::string> RulingNames();

enum class State : std::uint8_t { kPass, kFail, kUnknown };
std::string_view StateName(State state);

struct Condition {
  std::string name;  // "output", "route", "speed", "memory", "off_switch", ...
  State state = State::kUnknown;
  std::string detail;
};

enum class Comparison : std::uint8_t {
  kChanges,  // is another one than `value`
  kAtLeast,  // numbers, or versions such as 19.1.7, part by part
  kBelow,
  kStated,  // only in words: a person decides
};

/// What would make a refuted idea worth another look.
struct ReopenWhen {
  std::string fact;  // as in Facts of reopen.h: "llvm_version", "chip.l2_bytes", "kernel_family.gemv"
  Comparison comparison = Comparison::kStated;
  nlohmann::json value;  // text or a number
  std::string text;      // for people
};

struct DepthRatio {
  std::uint64_t depth = 0;
  double ratio = 0, low = 0, high = 0;
  std::uint64_t windows = 0;
};

struct Verdict {
  Subject subject;
  Ruling ruling = Ruling::kInconclusive;
  std::string outcome;  // "faster", "slower", "no difference shown", or empty
  std::optional<double> ratio, ratio_low, ratio_high;
  std::optional<double> smallest_difference;  // that the session could have shown, as a part of 1
  std::vector<DepthRatio> depths;
  std::vector<Condition> conditions;
  std::string reason;
  bool refused = false;    // the session's own measurement: its ratio stands for nothing
  std::string tier;        // "A", "B", or empty
  std::string off_switch;  // how it is turned off again
  std::string prediction;  // hash of the record that foretold it, or empty
  Samples samples;
  std::uint64_t repetitions = 0;  // windows or pairs of this session
  std::uint64_t sessions = 1;     // runs of the judge; its own fresh processes are part of one (details.processes)
  std::vector<ReopenWhen> reopen_when;
  nlohmann::json environment = nlohmann::json::object();
  nlohmann::json details = nlohmann::json::object();  // thresholds, command line, what the judge wants to keep
  nlohmann::json origin;                              // of an imported verdict: where from; otherwise null
};

/// Says that a refuted idea may be judged again. It never says that it is good.
struct Reopening {
  Subject subject;
  std::string refutation;  // hash of the verdict
  std::string reason;
};

nlohmann::json ToJson(const ChipFacts& record);
nlohmann::json ToJson(const Prediction& record);
nlohmann::json ToJson(const Measurement& record);
nlohmann::json ToJson(const Verdict& record);
nlohmann::json ToJson(const Reopening& record);
nlohmann::json ToJson(const ReopenWhen& condition);

/// The rules of each kind: kLedgerRecord says which field breaks which.
Result<void> Check(const ChipFacts& record);
Result<void> Check(const Prediction& record);
Result<void> Check(const Measurement& record);
Result<void> Check(const Verdict& record);
Result<void> Check(const Reopening& record);

/// From the payload of a record. Unknown fields are ignored; a wrong type is kLedgerRecord.
Result<ChipFacts> ChipFactsFrom(const nlohmann::json& payload);
Result<Prediction> PredictionFrom(const nlohmann::json& payload);
Result<Measurement> MeasurementFrom(const nlohmann::json& payload);
Result<Verdict> VerdictFrom(const nlohmann::json& payload);
Result<Reopening> ReopeningFrom(const nlohmann::json& payload);
Result<ReopenWhen> ReopenWhenFrom(const nlohmann::json& condition);

}  // namespace boltbeam::ledger
