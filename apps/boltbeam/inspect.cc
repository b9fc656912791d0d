// boltbeam inspect MODEL: the parts of a model and the census of its bytes.
#include "report/inspect.h"

#include <memory>

#include "commands.h"
#include "model/census.h"
#include "model/model.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::string model;
  bool strict = false;
};

Result<void> Inspect(const Globals& globals, const Arguments& arguments) {
  gguf::OpenOptions options;
  options.strict = arguments.strict;
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model, options));
  const model::Census census = model::TakeCensus(model);
  return WriteOutput(globals, report::InspectReport(model, census, report::FormOf(globals.format)));
}

}  // namespace

void AddInspect(CLI::App& app, Globals& globals) {
  CLI::App* command = app.add_subcommand("inspect", "List a model's parts and account for every byte of its file");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("model", arguments->model, "GGUF file")->required()->type_name("MODEL");
  command->add_flag("--strict", arguments->strict, "Refuse what is odd but readable");
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([arguments, &globals] { Finish(globals, Inspect(globals, *arguments)); });
}

}  // namespace boltbeam::app
