// boltbeam search MODEL: propose, predict, time, judge, install.
#include <memory>

#include "commands.h"
#include "report/form.h"
#include "search_decide.h"
// boltbeam search MODEL: propose, predict.
#include <memory>
#include <string>

#include "commands.h"
#include "report/form.h"
#include "search_survey.h"

namespace boltbeam::app {

void AddSearch(CLI::App& app, Globals& globals) {
  CLI::App* command = app.add_subcommand("search", "Search faster kernels for a model, judge them, install the winner");
  const auto arguments = std::make_shared<DecideArguments>();
  const auto until = std::make_shared<std::string>("install");
  command->add_option("model", arguments->model, "GGUF file")->required()->type_name("MODEL");
  command->add_option("--until", *until, "Stop when the parts are decided, before whole tokens are judged")
      ->check(CLI::IsMember({"decide", "install"}))
      ->capture_default_str();
  AddDecideFlags(*command, *arguments);
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([arguments, until, &globals] {
    arguments->no_judge = *until == "decide";
    Finish(globals, arguments->uninstall ? UninstallPlans(globals, *arguments) : SearchAndDecide(globals, *arguments));
  CLI::App* command =
      app.add_subcommand("search", "What could be tried for every part of a model, and its foretold time");
  const auto arguments = std::make_shared<SurveyArguments>();
  const auto until = std::make_shared<std::string>("predict");
  command->add_option("model", arguments->model, "GGUF file")->required()->type_name("MODEL");
  command->add_option("--until", *until, "Stop after this stage; neither needs the chip")
      ->check(CLI::IsMember({"propose", "predict"}))
      ->capture_default_str();
  command->add_option("-t,--threads", arguments->threads, "Threads; as many as `run` takes without it");
  AddSurveyFlags(*command, *arguments);
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([arguments, until, &globals] {
    arguments->predict = *until == "predict";
    Finish(globals, SurveyAndReport(globals, *arguments));
  });
}

}  // namespace boltbeam::app
