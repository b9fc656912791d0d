#include "search_survey.h"

#include <optional>
#include <string>

#include "base/paths.h"
#include "chip/facts.h"
#include "engine/thread_choice.h"
#include "judge/thresholds.h"
#include "ledger/ledger.h"
#include "ledger/reopen.h"
#include "ledger_commands.h"
#include "loading.h"
#include "model/model.h"
#include "report/search.h"
#include "search/fit.h"
#include "search/survey.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

Result<chip::Chip> ChipOf(const Globals& globals, const base::Paths& paths, const SurveyArguments& arguments) {
  if (arguments.chip.empty()) {
    EngineFlags flags;
    flags.isa = arguments.isa;
    return MachineFor(globals, flags);
  }
  return chip::FindChip(arguments.chip, paths.config.string());
}

/// What was measured of this chip's kernels fits the predictor; what was refuted on it is not proposed.
Result<void> AskLedger(const base::Paths& paths, const chip::Chip& chip, search::SurveyOptions& options) {
  BOLTBEAM_ASSIGN(const ledger::Ledger memory, ledger::Ledger::Open(ledger::OptionsFor(paths)));
  BOLTBEAM_ASSIGN(ledger::Index index, OpenIndex(memory));
  BOLTBEAM_ASSIGN(const std::optional<search::Fit> fit, search::FitFromLedger(index, chip, options.threads));
  if (fit) {
    options.coefficients = fit->coefficients;
    Note(search::Describe(*fit));
  }
  BOLTBEAM_ASSIGN(const search::RefutedSet refuted, search::RefutedOn(index, chip.id));
  options.is_refuted = [refuted](const ledger::Subject& subject) { return refuted.Has(subject); };
  return {};
}

}  // namespace

void AddSurveyFlags(CLI::App& command, SurveyArguments& arguments) {
  command
      .add_option("--chip", arguments.chip,
                  "Up to predict: a chip of `boltbeam chip list` or a JSON file; this machine without it")
      ->type_name("NAME|FILE");
  command
      .add_option("-d,--depth", arguments.depth, "Up to predict, and for --attention: tokens already in the context")
      ->capture_default_str();
}

Result<void> SurveyAndReport(const Globals& globals, const SurveyArguments& arguments) {
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip chip, ChipOf(globals, paths, arguments));
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  search::SurveyOptions options;
  options.predict = arguments.predict;
  options.depth = arguments.depth;
  options.threads = arguments.threads;
  if (options.threads == 0) {
    options.threads = arguments.chip.empty() ? engine::ChooseThreads(chip).threads
                                             : static_cast<std::uint32_t>(chip.Get("cores").value_or(1));
  }
  BOLTBEAM_ASSIGN(const judge::Thresholds thresholds, judge::LoadThresholds());
  options.smallest_claim = thresholds.equivalence;
  BOLTBEAM_TRY(AskLedger(paths, chip, options));
  BOLTBEAM_ASSIGN(const search::Survey survey, search::SurveyModel(model, chip, options));
  return WriteOutput(globals,
                     report::SurveyReport(model, chip, survey, options.predict, report::FormOf(globals.format)));
}

}  // namespace boltbeam::app
