// boltbeam predict: models' rates before anyone has run them, written down first; with --check run and compared.
#include "lab/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/paths.h"
#include "lab_commands.h"
#include "ledger/ledger.h"
#include "predict_check.h"
#include "report/lab_format.h"
#include "roofline/formulas.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::vector<std::string> models;
  std::uint32_t layers = 0;
  double bytes = 0;
  LineFlags line;
  double fixed_ms = 0, bandwidth_gb_s = 0;  // a stated line; 0: none
  lab::ForecastOptions options;
  std::optional<double> rate_tok_s;
  bool is_unseen = false, is_checked = false, no_record = false;
  RunnerFlags runners;
  lab::VisitOptions visit;
  std::uint32_t passes = 1;
};

Result<lab::ModelFacts> FactsOf(const Arguments& arguments, const std::string& model) {
  const bool is_shape = lab::IsShapeName(model);
  if (arguments.bytes > 0 && is_shape) {
    return Fail(Code::kUsage, "--bytes", "a shape, whose bytes are known", "one of both, or a file beside it");
  }
  if (is_shape) return lab::ShapeFacts(model, arguments.layers);
  return arguments.bytes > 0 ? lab::ReadHeaderFacts(model, arguments.bytes) : lab::ReadHeaderFacts(model);
}

Result<std::vector<lab::ModelFacts>> FindModels(const Arguments& arguments) {
  const std::vector<std::string>& models = arguments.models;
  if (models.empty() && arguments.bytes > 0) return std::vector{lab::StatedFacts(arguments.bytes)};
  if (models.empty()) return Fail(Code::kUsage, "predict", "no model", "a GGUF file, NAME:TYPE, or --bytes");
  if (models.size() > 1 && (arguments.bytes > 0 || arguments.rate_tok_s)) {
    return Fail(Code::kUsage, arguments.bytes > 0 ? "--bytes" : "--rate", fmt::format("{} models", models.size()),
                "one model");
  }
  std::vector<lab::ModelFacts> facts;
  for (const std::string& model : models) {
    BOLTBEAM_ASSIGN(lab::ModelFacts one, FactsOf(arguments, model));
    facts.push_back(std::move(one));
  }
  return facts;
}

/// A line that somebody states has no scatter, so its forecasts have no interval.
Result<std::vector<lab::Forecast>> StatedForecasts(const Arguments& arguments, const lab::ModelFacts& model) {
  BOLTBEAM_ASSIGN(const model::CacheFormats cache, arguments.runners.engine.Cache());
  std::vector<lab::Forecast> forecasts;
  for (const std::uint64_t depth : arguments.options.depths) {
    const std::optional<double> kv = model.kv_bytes(depth, cache);
    if (!kv) continue;
    const double bytes = model.weight_bytes + *kv;
    const double seconds = roofline::LineSeconds(arguments.fixed_ms / 1e3, bytes, arguments.bandwidth_gb_s);
    const measure::Interval none{seconds, 0, std::numeric_limits<double>::infinity()};
    forecasts.push_back({depth, bytes, *kv, none, none, 0, {}, {}});
  }
  return forecasts;
}

/// The line that foretells the model; with --unseen that of the other models' rows.
Result<lab::MachineFit> LineFor(const Arguments& arguments, std::span<const lab::Row> rows,
                                report::ForecastSubject& subject) {
  if (!arguments.is_unseen) return arguments.line.OneFit(rows);
  const std::vector<lab::Row> others = lab::RowsOfOthers(rows, subject.model);
  const std::size_t own = rows.size() - others.size();
  subject.own_rows_out = own;
  Result<lab::MachineFit> fit = arguments.line.OneFit(others);
  if (fit && fit->line.HasIntervals()) return fit;
  Error error = fit ? Error{Code::kLabLine, "the line", fmt::format("{} models", fit->points.size()),
                            "at least three, better four: a line through fewer has no interval"}
                    : std::move(fit).error();
  error.where =
      fmt::format("--unseen: {} row{} of {} left out: {}", own, own == 1 ? "" : "s", subject.model.name, error.where);
  return std::unexpected(std::move(error));
}

/// Writes every forecast down, before anything is run.
Result<void> Record(const Globals& globals, std::span<report::ForecastSubject> subjects) {
  BOLTBEAM_ASSIGN(ledger::Ledger memory, ledger::Ledger::Open(ledger::OptionsFor(base::ResolvePaths(globals.home))));
  for (report::ForecastSubject& subject : subjects) {
    for (report::ForecastRow& row : subject.rows) {
      if (!row.forecast.HasInterval()) continue;
      BOLTBEAM_ASSIGN(const ledger::Receipt receipt,
                      memory.AppendPrediction(lab::ToRecord(*subject.fit, subject.model, row.forecast,
                                                            subject.confidence, subject.own_rows_out.has_value())));
      row.record = receipt.hash;
    }
  }
  return {};
}

/// What a rate that somebody states says about itself. kMeasurementImpossible above the published bandwidth.
Result<std::optional<lab::RateCheck>> CheckStated(const Arguments& arguments, const report::ForecastSubject& subject) {
  if (!arguments.rate_tok_s) return std::nullopt;
  const lab::FitOptions& stated = arguments.line.options;
  std::optional<double> streamed = stated.streamed_gb_s, published = stated.published_gb_s;
  if (subject.fit && !streamed) streamed = subject.fit->gap.streamed_gb_s;
  if (subject.fit && !published) published = subject.fit->gap.published_gb_s;
  lab::RateCheck check = lab::CheckRate(subject.model.weight_bytes, *arguments.rate_tok_s, streamed, published);
  if (check.is_above_published) {
    return Fail(Code::kMeasurementImpossible, "--rate", check.text, "the rate of one token at a time");
  }
  return check;
}

Result<report::ForecastSubject> Foretell(const Arguments& arguments, lab::ModelFacts model,
                                         std::span<const lab::Row> rows) {
  report::ForecastSubject subject{std::move(model), {}, arguments.fixed_ms, arguments.bandwidth_gb_s};
  subject.confidence = arguments.line.options.confidence;
  subject.at_gb_s = arguments.options.at_gb_s;
  std::vector<lab::Forecast> forecasts;
  if (arguments.bandwidth_gb_s > 0) {
    BOLTBEAM_ASSIGN(forecasts, StatedForecasts(arguments, subject.model));
  } else {
    BOLTBEAM_ASSIGN(subject.fit, LineFor(arguments, rows, subject));
    subject.fixed_ms = 1e3 * subject.fit->line.fixed_s();
    subject.bandwidth_gb_s = subject.fit->bandwidth_gb_s.estimate;
    subject.worst_residual_ms = 1e3 * subject.fit->worst_residual_s;
    lab::ForecastOptions options = arguments.options;
    options.confidence = subject.confidence;
    BOLTBEAM_ASSIGN(options.cache, arguments.runners.engine.Cache());
    BOLTBEAM_ASSIGN(forecasts, lab::Predict(*subject.fit, subject.model, options));
  }
  BOLTBEAM_ASSIGN(subject.rate, CheckStated(arguments, subject));
  for (lab::Forecast& forecast : forecasts) subject.rows.push_back({std::move(forecast), {}, {}});
  return subject;
}

void NoteWarnings(const Arguments& arguments, std::span<const report::ForecastSubject> subjects) {
  std::vector<report::Said> said;
  for (const report::ForecastSubject& subject : subjects) {
    report::Said& of_model = said.emplace_back(subject.model.name);
    if (subject.fit) of_model.texts = subject.fit->warnings;
    if (subject.rows.size() < arguments.options.depths.size()) {
      of_model.texts.emplace_back("at other depths than 0 the KV cache of this model is not known");
    }
  }
  for (const std::string& text : report::SaidTogether(said)) Note("warning: " + text);
}

Result<void> Predict(const Globals& globals, const Arguments& arguments) {
  const bool is_stated = arguments.bandwidth_gb_s > 0;
  if (is_stated && arguments.is_unseen) {
    return Fail(Code::kUsage, "--unseen", "a line that was stated", "a ladder's line");
  }
  BOLTBEAM_ASSIGN(std::vector<lab::ModelFacts> models, FindModels(arguments));
  std::vector<lab::Row> rows;
  if (!is_stated) {
    BOLTBEAM_ASSIGN(rows, arguments.line.Rows(globals));
  }
  std::vector<report::ForecastSubject> subjects;
  for (lab::ModelFacts& model : models) {
    BOLTBEAM_ASSIGN(report::ForecastSubject subject, Foretell(arguments, std::move(model), rows));
    subjects.push_back(std::move(subject));
  }
  NoteWarnings(arguments, subjects);
  std::unique_ptr<ForecastCheck> check;
  if (arguments.is_checked) {
    BOLTBEAM_ASSIGN(check, ForecastCheck::Create(globals, arguments.runners, arguments.visit, arguments.passes));
    for (const report::ForecastSubject& subject : subjects) BOLTBEAM_TRY(check->Accept(subject));
  }
  if (!is_stated && !arguments.no_record) BOLTBEAM_TRY(Record(globals, subjects));
  if (check) BOLTBEAM_TRY(check->Run(subjects));
  return WriteOutput(globals, report::ForecastReport(subjects, report::FormOf(globals.format)));
}

}  // namespace

void AddPredict(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("predict", "A model's tokens per second before it is run or downloaded");
  command
      ->add_option("models", arguments->models,
                   "GGUF files (their headers are enough), or shapes such as qwen3-8b:Q4_K_M")
      ->type_name("MODEL");
  command->add_option("--bytes", arguments->bytes, "Bytes that a token reads: instead of a model, or of a file's own")
      ->check(NumberFrom(1, 1e15));
  command->add_option("--layers", arguments->layers, "Of a shape: only N layers")->check(CLI::Range(1, 1024));
  command
      ->add_option("--ladder", arguments->line.files, "Rows of a ladder (those of `boltbeam ladder`); may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  arguments->line.Add(*command);
  CLI::Option* fixed = command->add_option("--fixed-ms", arguments->fixed_ms, "Instead of a ladder: ms of each token")
                           ->check(NumberFrom(0, 1e6));
  CLI::Option* bandwidth = command->add_option("--bandwidth", arguments->bandwidth_gb_s, "and GB/s of its bytes")
                               ->check(NumberFrom(kLeastGbS, kMostGbS));
  fixed->needs(bandwidth);
  command->add_option("-d,--depth", arguments->options.depths, "Tokens in the context; a list by comma")
      ->delimiter(',')
      ->check(CLI::Range(0, 1 << 24))
      ->default_str("0,512,4096")
      ->type_name("N,...");
  command->add_option("--at", arguments->options.at_gb_s, "GB/s that the memory streams then, instead of the ladder's")
      ->check(NumberFrom(kLeastGbS, kMostGbS));
  command->add_option("--rate", arguments->rate_tok_s, "A rate somebody states: can the memory deliver it?")
      ->check(NumberFrom(1e-6, 1e9));
  command->add_flag("--unseen", arguments->is_unseen,
                    "Each model by the line of the other models: its own rows are left out (leave-one-out)");
  command->add_flag("--check", arguments->is_checked,
                    "Run the models then, when all is foretold, and record the misses");
  command->add_option("--passes", arguments->passes, "Visits of each model that is checked, in turns up and down")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--seconds", arguments->visit.seconds, "Of windows, at each visit of a check")
      ->check(NumberFrom(0.01, 600))
      ->capture_default_str();
  command->add_flag("--no-record", arguments->no_record, "Write nothing to the ledger");
  arguments->runners.Add(*command);
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([arguments, &globals] { Finish(globals, Predict(globals, *arguments)); });
}

}  // namespace boltbeam::app
