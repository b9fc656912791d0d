#include "search_record.h"

#include <algorithm>

#include "ledger/index.h"

namespace boltbeam::search {
namespace {

constexpr std::string_view kMethod = "search_bench";

}  // namespace

Result<std::unique_ptr<Record>> Record::Open(const base::Paths& paths, const chip::Chip& chip, std::uint32_t threads) {
  BOLTBEAM_ASSIGN(ledger::Ledger ledger, ledger::Ledger::Open(ledger::OptionsFor(paths)));
  auto record = std::unique_ptr<Record>(new Record(std::move(ledger), chip, threads));
  BOLTBEAM_ASSIGN(ledger::Index index, ledger::Index::Open(record->ledger_));
  BOLTBEAM_ASSIGN(record->past_, SamplesOf(index, chip.id));
  ledger::Filter filter;
  filter.kind = ledger::Kind::kPrediction;
  filter.chip = chip.id;
  BOLTBEAM_ASSIGN(const std::vector<ledger::Row> rows, index.List(filter));
  for (const ledger::Row& row : rows) {
    const auto prediction = ledger::PredictionFrom(row.payload);
    if (!prediction || prediction->method != kMethod) continue;
    record->foretold_[{prediction->subject.shape, prediction->subject.candidate}] = {prediction->value, row.hash};
  }
  return record;
}

Coefficients Record::CoefficientsFor(const Part& part) const {
  std::vector<Sample> others = past_;
  std::erase_if(others, [&](const Sample& sample) {
    return sample.part.format == part.format || sample.part.ShapeText() == part.ShapeText();
  });
  const Result<Fit> fit = FitCoefficients(others, chip_, threads_);
  return fit ? fit->coefficients : Coefficients{};
}

Result<void> Record::Predict(const Part& part, const Prediction& prediction) {
  BOLTBEAM_TRY(ledger_.AppendPrediction(ToRecord(part, prediction, chip_.id, kMethod)));
  return {};
}

const Record::Foretold* Record::Find(const Part& part, const std::string& candidate) const {
  const auto found = foretold_.find({part.table, candidate});
  return found == foretold_.end() ? nullptr : &found->second;
}

Result<void> Record::Measure(const Part& part, const Contender& contender, double ns, std::uint64_t sweeps,
                             double read_gb_s) {
  ledger::Measurement record;
  record.subject = SubjectOf(part, contender.geometry, chip_.id);
  record.quantity = kKernelQuantity;
  record.value = record.low = record.high = ns;
  record.repetitions = sweeps;
  if (const Foretold* foretold = Find(part, contender.name)) record.prediction = foretold->record;
  record.environment[kThreadsField] = threads_;
  record.environment[kBandwidthField] = read_gb_s;
  AddStream(record.environment, contender.stream);
  record.environment["machine_code"] = contender.code;
  BOLTBEAM_TRY(ledger_.AppendMeasurement(record));
  return {};
}

}  // namespace boltbeam::search
