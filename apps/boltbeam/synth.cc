// synth: writes a model file of random weights with the shapes and formats of a known model.
#include "model/synth.h"

#include <memory>

#include "command.h"
#include "synth_file.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::string spec;
  std::string path;
  model::SynthOptions options;
};

Result<void> Run(const Arguments& arguments, const Globals& globals) {
  BOLTBEAM_ASSIGN(const model::SynthPlan plan, model::PlanSynth(arguments.spec, arguments.options));
  std::string path = arguments.path;
  if (path.empty()) {  // where audits look for it again
    BOLTBEAM_ASSIGN(path, SynthPath(globals, plan, arguments.options));
  }
  BOLTBEAM_TRY(MakeSynth(plan, path, arguments.options));
  return WriteOutput(globals, path + "\n");
}

}  // namespace

void AddSynth(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("synth", "Write a model file of random weights with a known model's shapes");
  command->add_option("model", arguments->spec, "NAME:TYPE, such as qwen3-0.6b:Q4_K_M or smollm2-135m:F32")->required();
  command->add_option("--out", arguments->path, "The file to write; without it one below the cache folder");
  command->add_option("--layers", arguments->options.layers, "Write only N layers")->check(CLI::Range(1, 1024));
  command->add_option("--seed", arguments->options.seed, "Another seed gives other weights")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--tokenizer", arguments->options.tokenizer,
                    "Add a small vocabulary that reads and writes any text; without it the file has none");
  command->add_flag("--sparse", arguments->options.sparse, "Holes instead of weights: for inspect and bound only");
  command->callback([arguments, &globals] { Finish(globals, Run(*arguments, globals)); });
}

}  // namespace boltbeam::app
