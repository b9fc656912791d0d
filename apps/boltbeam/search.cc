// boltbeam search MODEL: propose, predict, time, judge, install.
#include <memory>
#include <string>

#include "commands.h"
#include "report/form.h"
#include "search_decide.h"
#include "search_survey.h"

namespace boltbeam::app {
namespace {

/// A chip that is not this machine can be foretold, and no more.
Result<void> Search(Globals& globals, const std::string& until, DecideArguments& decide, SurveyArguments& survey) {
  if (decide.uninstall) return UninstallPlans(globals, decide);
  const bool is_survey = until == "propose" || until == "predict";
  if (!is_survey && !survey.chip.empty()) {
    return Fail(Code::kUsage, "--chip", survey.chip + " with --until " + until, "--until propose or --until predict");
  }
  if (is_survey) {
    survey.model = decide.model;
    survey.threads = decide.engine.threads;
    survey.isa = decide.engine.isa;
    survey.predict = until == "predict";
    return SurveyAndReport(globals, survey);
  }
  decide.no_judge = until == "decide";
  decide.depth = survey.depth;
  return SearchAndDecide(globals, decide);
}

}  // namespace

void AddSearch(CLI::App& app, Globals& globals) {
  CLI::App* command = app.add_subcommand("search", "Search faster kernels for a model, judge them, install the winner");
  const auto decide = std::make_shared<DecideArguments>();
  const auto survey = std::make_shared<SurveyArguments>();
  const auto until = std::make_shared<std::string>("install");
  command->add_option("model", decide->model, "GGUF file")->required()->type_name("MODEL");
  command
      ->add_option("--until", *until,
                   "Stop after a stage: what could be tried, what it is foretold to take, what the parts' timing "
                   "decided, the whole token judged and the winner installed")
      ->check(CLI::IsMember({"propose", "predict", "decide", "install"}))
      ->capture_default_str();
  AddSurveyFlags(*command, *survey);
  AddDecideFlags(*command, *decide);
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([=, &globals] { Finish(globals, Search(globals, *until, *decide, *survey)); });
}

}  // namespace boltbeam::app
