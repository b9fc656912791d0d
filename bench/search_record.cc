#include "search_record.h"

#include "ledger/index.h"

namespace boltbeam::search {

Result<std::unique_ptr<Record>> Record::Open(const base::Paths& paths, const chip::Chip& chip, std::uint32_t threads) {
  BOLTBEAM_ASSIGN(ledger::Ledger ledger, ledger::Ledger::Open(ledger::OptionsFor(paths)));
  auto record = std::unique_ptr<Record>(new Record(std::move(ledger), chip, threads));
  BOLTBEAM_ASSIGN(ledger::Index index, ledger::Index::Open(record->ledger_));
  BOLTBEAM_ASSIGN(record->past_, SamplesOf(index, chip.id));
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

Result<std::string> Record::Predict(const Part& part, const Prediction& prediction) {
  BOLTBEAM_ASSIGN(ledger::Receipt receipt,
                  ledger_.AppendPrediction(ToRecord(part, prediction, chip_.id, "search_bench")));
  return std::move(receipt.hash);
}

Result<void> Record::Measure(const Part& part, const Contender& contender, double ns, std::uint64_t sweeps,
                             double read_gb_s, const std::string& foretold) {
  ledger::Measurement record;
  record.subject = SubjectOf(part, contender.geometry, chip_.id);
  record.quantity = kKernelQuantity;
  record.value = record.low = record.high = ns;
  record.repetitions = sweeps;
  record.prediction = foretold;
  record.environment[kThreadsField] = threads_;
  record.environment[kBandwidthField] = read_gb_s;
  AddStream(record.environment, contender.stream);
  record.environment["machine_code"] = contender.code;
  BOLTBEAM_TRY(ledger_.AppendMeasurement(record));
  return {};
}

}  // namespace boltbeam::search
