// boltbeam predict: a model's rate before anyone has run it, written down first; with --check run and compared.
#include "lab/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/paths.h"
#include "lab_commands.h"
#include "ledger/ledger.h"
#include "report/lab_format.h"
#include "roofline/formulas.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::string model;
  std::uint32_t layers = 0;
  double bytes = 0;
  LineFlags line;
  double fixed_ms = 0, bandwidth_gb_s = 0;  // a stated line; 0: none
  lab::ForecastOptions options;
  std::optional<double> rate_tok_s;
  bool is_checked = false, no_record = false;
  RunnerFlags runners;
  lab::VisitOptions visit;
};

Result<lab::ModelFacts> FactsOf(const Arguments& arguments) {
  if (arguments.bytes > 0 && !arguments.model.empty() && lab::IsShapeName(arguments.model)) {
    return Fail(Code::kUsage, "--bytes", "a shape, whose bytes are known", "one of both, or a file beside it");
  }
  if (arguments.bytes > 0 && !arguments.model.empty()) return lab::ReadHeaderFacts(arguments.model, arguments.bytes);
  if (arguments.bytes > 0) return lab::StatedFacts(arguments.bytes);
  if (arguments.model.empty()) return Fail(Code::kUsage, "predict", "no model", "a GGUF file, NAME:TYPE, or --bytes");
  if (lab::IsShapeName(arguments.model)) return lab::ShapeFacts(arguments.model, arguments.layers);
  return lab::ReadHeaderFacts(arguments.model);
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

/// Writes every forecast down, before anything is run.
Result<void> Record(const Globals& globals, const lab::MachineFit& fit, const lab::ModelFacts& model, double confidence,
                    std::vector<report::ForecastRow>& rows) {
  BOLTBEAM_ASSIGN(ledger::Ledger memory, ledger::Ledger::Open(ledger::OptionsFor(base::ResolvePaths(globals.home))));
  for (report::ForecastRow& row : rows) {
    if (!row.forecast.HasInterval()) continue;
    BOLTBEAM_ASSIGN(const ledger::Receipt receipt,
                    memory.AppendPrediction(lab::ToRecord(fit, model, row.forecast, confidence)));
    row.record = receipt.hash;
  }
  return {};
}

Result<void> Check(const Globals& globals, const Arguments& arguments, const lab::MachineFit& fit,
                   const lab::ModelFacts& model, std::vector<report::ForecastRow>& rows) {
  CatchInterrupts();
  if (model.path.empty()) {
    return Fail(Code::kUsage, "--check", model.name, "a model's file; `boltbeam synth` writes one of a known shape");
  }
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::DetectThisMachine());
  if (!fit.device.empty() && fit.device != machine.name) {
    return Fail(Code::kUsage, "--check", fmt::format("a line of {}, and this is {}", fit.device, machine.name),
                "rows of this machine (--alias, --ladder)");
  }
  BOLTBEAM_ASSIGN(const auto probe, MemoryProbe::Create(globals, arguments.runners.engine.threads));
  const auto differs = [](const char* flag, const std::string& line, const std::string& here) {
    return Fail(Code::kUsage, flag, fmt::format("a line of {}, to be checked with {}", line, here),
                "the ladder's own setting, or a ladder of this one");
  };
  const std::string isa = arguments.runners.engine.isa.empty() ? "native" : arguments.runners.engine.isa;
  if (fit.threads != 0 && fit.threads != probe->threads) {
    return differs("--threads", fmt::format("{} threads", fit.threads), std::to_string(probe->threads));
  }
  if (fit.isa != isa) return differs("--isa", fit.isa, isa);
  for (report::ForecastRow& row : rows) {
    lab::VisitOptions visit_options = arguments.visit;
    visit_options.depth = row.forecast.depth;
    BOLTBEAM_ASSIGN(visit_options.cache, arguments.runners.engine.Cache());
    RunnerFlags flags = arguments.runners;
    flags.no_engine = !flags.llama.empty() || !flags.command.empty();  // one program answers
    BOLTBEAM_ASSIGN(const auto runners, flags.Make(globals, *probe, row.forecast.depth));
    if (!fit.engine.empty() && runners.front()->name() != fit.engine) {
      return Fail(Code::kUsage, "--check",
                  fmt::format("a line of {}, to be checked by {}", fit.engine, runners.front()->name()),
                  "the program of the rows: --llama, --command with --name, or neither; or --program");
    }
    BOLTBEAM_ASSIGN(const lab::Visit visit, runners.front()->Run(model, visit_options));
    row.miss = lab::Compare(fit, model, row.forecast, visit, arguments.options.at_gb_s);
    if (row.record.empty()) continue;
    BOLTBEAM_ASSIGN(ledger::Ledger memory, ledger::Ledger::Open(ledger::OptionsFor(base::ResolvePaths(globals.home))));
    BOLTBEAM_TRY(memory.AppendMeasurement(lab::ToRecord(fit, model, row.forecast, *row.miss, visit, row.record)));
  }
  return {};
}

/// What a rate that somebody states says about itself. kMeasurementImpossible above the published bandwidth.
Result<std::optional<lab::RateCheck>> CheckStated(const Arguments& arguments, const lab::ModelFacts& model,
                                                  const std::optional<lab::MachineFit>& fit) {
  if (!arguments.rate_tok_s) return std::nullopt;
  const lab::FitOptions& stated = arguments.line.options;
  std::optional<double> streamed = stated.streamed_gb_s, published = stated.published_gb_s;
  if (fit && !streamed) streamed = fit->gap.streamed_gb_s;
  if (fit && !published) published = fit->gap.published_gb_s;
  lab::RateCheck check = lab::CheckRate(model.weight_bytes, *arguments.rate_tok_s, streamed, published);
  if (check.is_above_published) {
    return Fail(Code::kMeasurementImpossible, "--rate", check.text, "the rate of one token at a time");
  }
  return check;
}

Result<void> Predict(const Globals& globals, const Arguments& arguments) {
  BOLTBEAM_ASSIGN(const lab::ModelFacts model, FactsOf(arguments));
  report::ForecastSubject subject;
  subject.model = &model;
  subject.confidence = arguments.line.options.confidence;
  subject.at_gb_s = arguments.options.at_gb_s;
  std::optional<lab::MachineFit> fit;
  std::vector<lab::Forecast> forecasts;
  if (arguments.bandwidth_gb_s > 0) {
    subject.fixed_ms = arguments.fixed_ms;
    subject.bandwidth_gb_s = arguments.bandwidth_gb_s;
    BOLTBEAM_ASSIGN(forecasts, StatedForecasts(arguments, model));
    if (arguments.is_checked) return Fail(Code::kUsage, "--check", "a line that was stated", "a ladder's line");
  } else {
    BOLTBEAM_ASSIGN(fit, arguments.line.OneFit(globals));
    subject.fit = &*fit;
    subject.fixed_ms = 1e3 * fit->line.fixed_s();
    subject.bandwidth_gb_s = fit->bandwidth_gb_s.estimate;
    subject.worst_residual_ms = 1e3 * fit->worst_residual_s;
    lab::ForecastOptions options = arguments.options;
    options.confidence = arguments.line.options.confidence;
    BOLTBEAM_ASSIGN(options.cache, arguments.runners.engine.Cache());
    BOLTBEAM_ASSIGN(forecasts, lab::Predict(*fit, model, options));
    for (const std::string& warning : fit->warnings) Note("warning: " + warning);
  }
  if (forecasts.size() < arguments.options.depths.size()) {
    Note("at other depths than 0 the KV cache of this model is not known");
  }
  BOLTBEAM_ASSIGN(subject.rate, CheckStated(arguments, model, fit));
  std::vector<report::ForecastRow> rows;
  for (lab::Forecast& forecast : forecasts) rows.push_back({std::move(forecast), {}, {}});
  if (fit && !arguments.no_record) {
    BOLTBEAM_TRY(Record(globals, *fit, model, arguments.line.options.confidence, rows));
  }
  if (arguments.is_checked) BOLTBEAM_TRY(Check(globals, arguments, *fit, model, rows));
  return WriteOutput(globals, report::ForecastReport(subject, rows, report::FormOf(globals.format)));
}

}  // namespace

void AddPredict(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("predict", "A model's tokens per second before it is run or downloaded");
  command
      ->add_option("model", arguments->model, "A GGUF file (its header is enough), or a shape such as qwen3-8b:Q4_K_M")
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
  command->add_flag("--check", arguments->is_checked, "Run the model then, and record the miss");
  command->add_option("--seconds", arguments->visit.seconds, "Of windows, at each depth that is checked")
      ->check(NumberFrom(0.01, 600))
      ->capture_default_str();
  command->add_flag("--no-record", arguments->no_record, "Write nothing to the ledger");
  arguments->runners.Add(*command);
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([arguments, &globals] { Finish(globals, Predict(globals, *arguments)); });
}

}  // namespace boltbeam::app
