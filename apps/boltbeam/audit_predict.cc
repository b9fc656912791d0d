#include "audit_predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "audit/floors.h"
#include "audit/token_prediction.h"
#include "base/paths.h"
#include "judge/record.h"
#include "judge_sides.h"
#include "ledger/index.h"
#include "ledger_commands.h"

namespace boltbeam::app {
namespace {

// Beside the token's time its time per byte is kept: what later audits foretell from.
constexpr const char* kTokenTime = "token_ns";
constexpr const char* kTimePerByte = "ns_per_byte";

// Of this model on this chip when it was audited before, else of any model on it.
Result<std::vector<double>> Earlier(ledger::Index& index, const ledger::Subject& subject) {
  std::vector<double> of_model, of_chip;
  ledger::Filter filter;
  filter.kind = ledger::Kind::kMeasurement;
  filter.chip = subject.chip;
  BOLTBEAM_ASSIGN(const std::vector<ledger::Row> rows, index.List(filter));
  for (const ledger::Row& row : rows) {
    BOLTBEAM_ASSIGN(const ledger::Measurement measured, ledger::MeasurementFrom(row.payload));
    if (measured.quantity != kTimePerByte) continue;
    of_chip.push_back(measured.value);
    if (measured.subject.model_hash == subject.model_hash) of_model.push_back(measured.value);
  }
  constexpr std::size_t kEnough = 3;
  return of_model.size() >= kEnough ? of_model : of_chip;
}

}  // namespace

Result<AuditPredictions> AuditPredictions::Write(const Globals& globals, const model::Model& model,
                                                 const std::string& path, const chip::Chip& machine,
                                                 const engine::Engine& engine, const std::vector<std::uint64_t>& depths,
                                                 double gb_s) {
  BOLTBEAM_ASSIGN(ledger::Ledger memory, ledger::Ledger::Open(ledger::OptionsFor(base::ResolvePaths(globals.home))));
  BOLTBEAM_TRY(memory.CheckWritable());
  AuditPredictions all(std::move(memory));
  ledger::Subject subject;
  subject.candidate = "default";
  subject.chip = machine.id;
  subject.model = std::filesystem::path(path).filename().string();
  subject.model_hash = HeaderHash(path);
  subject.plan = engine.plan_id();
  BOLTBEAM_ASSIGN(ledger::Index index, OpenIndex(all.memory_));
  BOLTBEAM_ASSIGN(const std::vector<double> earlier, Earlier(index, subject));
  for (const std::uint64_t depth : depths) {
    const std::uint64_t bytes = audit::MemoryBytes(audit::PartFloors(model, depth, engine.options().cache));
    BOLTBEAM_ASSIGN(const audit::TokenPrediction expected, audit::PredictToken(bytes, gb_s, earlier));
    One one;
    one.bytes = static_cast<double>(bytes);
    one.prediction.subject = subject;
    one.prediction.depth = depth;
    one.prediction.quantity = kTokenTime;
    one.prediction.value = expected.value_ns;
    one.prediction.low = expected.low_ns;
    one.prediction.high = expected.high_ns;
    one.prediction.confidence = audit::kPredictionConfidence;
    one.prediction.method = expected.method;
    BOLTBEAM_ASSIGN(const ledger::Receipt receipt, all.memory_.AppendPrediction(one.prediction));
    one.hash = receipt.hash;
    all.predictions_.push_back(std::move(one));
  }
  return all;
}

Result<std::vector<std::string>> AuditPredictions::Answer(const audit::Audit& audit) {
  std::vector<std::string> lines;
  for (const One& one : predictions_) {
    const auto account = std::ranges::find(audit.accounts, *one.prediction.depth, &audit::Account::depth);
    if (account == audit.accounts.end()) continue;
    const audit::Token& token = account->token;
    ledger::Measurement measured;
    measured.subject = one.prediction.subject;
    measured.depth = one.prediction.depth;
    measured.quantity = kTokenTime;
    measured.value = token.now_ns;
    measured.low = std::min(token.now_low_ns, token.now_ns);
    measured.high = std::max(token.now_high_ns, token.now_ns);
    measured.repetitions = account->pairs_used;
    measured.prediction = one.hash;
    measured.environment = judge::EnvironmentJson(audit.environment);
    BOLTBEAM_TRY(memory_.AppendMeasurement(measured));
    measured.prediction.clear();
    measured.quantity = kTimePerByte;
    for (double* value : {&measured.value, &measured.low, &measured.high}) *value /= one.bytes;
    BOLTBEAM_TRY(memory_.AppendMeasurement(measured));
    const bool hit = token.now_ns >= one.prediction.low && token.now_ns <= one.prediction.high;
    lines.push_back(fmt::format("depth {}: foretold {:.3f} ms ({:.3f} to {:.3f}), took {:.3f}: {}",
                                *one.prediction.depth, one.prediction.value / 1e6, one.prediction.low / 1e6,
                                one.prediction.high / 1e6, token.now_ns / 1e6, hit ? "inside" : "outside"));
  }
  return lines;
}

}  // namespace boltbeam::app
