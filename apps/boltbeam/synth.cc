// synth: writes a model file of random weights with the shapes and formats of a known model.
#include "model/synth.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/paths.h"
#include "command.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::string spec;
  std::string path;
  model::SynthOptions options;
};

/// What sets a file apart from the plain model: `make audit` must not find holes or two layers under that name.
std::string Suffix(const model::SynthOptions& options) {
  std::string suffix;
  if (options.layers != 0) suffix += fmt::format("-{}-layers", options.layers);
  if (options.seed != model::SynthOptions{}.seed) suffix += fmt::format("-seed-{}", options.seed);
  if (options.tokenizer) suffix += "-tokenizer";
  if (options.sparse) suffix += "-sparse";
  return suffix;
}

/// Without --out the file goes where audits look for it again: the models below the cache folder.
Result<std::string> ChoosePath(const Arguments& arguments, const model::SynthPlan& plan, const std::string& home) {
  if (!arguments.path.empty()) return arguments.path;
  std::string name = plan.shape.name + "-" + plan.mixture.name;
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const std::filesystem::path folder = base::ResolvePaths(home).cache / "models";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Fail(Code::kFileWrite, folder.string(), error.message(), "a folder that can be made; or --out FILE");
  return (folder / (name + Suffix(arguments.options) + ".gguf")).string();
}

Result<void> Run(Arguments& arguments, const Globals& globals) {
  BOLTBEAM_ASSIGN(const model::SynthPlan plan, model::PlanSynth(arguments.spec, arguments.options));
  BOLTBEAM_ASSIGN(const std::string path, ChoosePath(arguments, plan, globals.home));
  CatchInterrupts();
  {
    Progress progress("synth " + arguments.spec);
    arguments.options.cancelled = Interrupted;
    arguments.options.progress = [&](std::uint64_t done, std::uint64_t total) { progress.Show(done, total); };
    BOLTBEAM_TRY(model::WriteSynth(plan, path, arguments.options));
  }
  Note(fmt::format("wrote {} tensors, {:.3f} GB{}", plan.tensors.size(), static_cast<double>(plan.data_bytes()) / 1e9,
                   arguments.options.sparse ? " of holes" : ""));
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
