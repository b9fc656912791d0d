// boltbeam bound MODEL: the floor of every part and the limit in tokens per second. Alias: roofline-theoretical.
#include "report/bound.h"

#include <memory>
#include <optional>

#include "base/paths.h"
#include "chip/facts.h"
#include "commands.h"
#include "engine/code_roof.h"
#include "loading.h"
#include "model/model.h"
#include "roofline/bound.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::string model, chip, isa, cache_k = "f16", cache_v = "f16";
  roofline::BoundOptions options{{0, 512, 4096}, 1, 0};
  std::optional<double> bandwidth_gb_s, peak_flop_s;
};

/// CLI11 reads "-1" as a very large unsigned number.
std::string RefuseNegative(std::string& text) { return text.starts_with('-') ? text + " is negative" : ""; }

Result<chip::Chip> ChipOf(const Globals& globals, const Arguments& arguments) {
  if (arguments.chip.empty()) {
    EngineFlags flags;
    flags.isa = arguments.isa;
    return MachineFor(globals, flags);
  }
  BOLTBEAM_ASSIGN(chip::Chip chip, chip::FindChip(arguments.chip, base::ResolvePaths(globals.home).config.string()));
  BOLTBEAM_TRY(HoldTo(chip, arguments.isa));
  return chip;
}

Result<void> Bound(const Globals& globals, const Arguments& arguments) {
  roofline::BoundOptions options = arguments.options;
  BOLTBEAM_ASSIGN(options.cache, EngineFlags::CacheOf(arguments.cache_k, arguments.cache_v));
  BOLTBEAM_ASSIGN(const chip::Chip chip, ChipOf(globals, arguments));
  BOLTBEAM_ASSIGN(roofline::Roof roof, roofline::RoofOf(chip, arguments.bandwidth_gb_s, arguments.peak_flop_s));
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  engine::AddCode(model, chip, options, roof);
  BOLTBEAM_ASSIGN(const roofline::Bound bound, roofline::ComputeBound(model, roof, options));
  return WriteOutput(globals, report::BoundReport(model, chip, bound, report::FormOf(globals.format)));
}

void AddBoundCommand(CLI::App& app, Globals& globals, const std::string& name, const std::string& what,
                     const std::string& prompt_flags) {
  CLI::App* command = app.add_subcommand(name, what);
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("model", arguments->model, "GGUF file")->required()->type_name("MODEL");
  command
      ->add_option("--chip", arguments->chip, "A chip of `boltbeam chip list` or a JSON file; this machine without it")
      ->type_name("NAME|FILE");
  command->add_option("-d,--depth", arguments->options.depths, "Tokens already in the context; a list by comma")
      ->delimiter(',')
      ->check(CLI::Validator(RefuseNegative, ""))
      ->default_str("0,512,4096")
      ->type_name("N,...");
  command->add_option("--batch", arguments->options.batch, "Sequences that decode together")
      ->check(CLI::Validator(RefuseNegative, ""))
      ->capture_default_str();
  command->add_option(prompt_flags, arguments->options.prompt, "A prompt of N tokens, computed together")
      ->check(CLI::Validator(RefuseNegative, ""));
  AddIsa(*command, arguments->isa);
  AddCacheTypes(*command, arguments->cache_k, arguments->cache_v);
  command->add_option("--bandwidth", arguments->bandwidth_gb_s, "Divide by this many GB/s (1 GB = 1e9 bytes)");
  command->add_option("--peak", arguments->peak_flop_s, "Divide by this many FLOP/s");
  AddOutputFlags(*command, globals, report::FormNames());
  command->callback([arguments, &globals] { Finish(globals, Bound(globals, *arguments)); });
}

}  // namespace

void AddBound(CLI::App& app, Globals& globals) {
  AddBoundCommand(app, globals, "bound", "The least time that a model's token can take on a chip, part by part",
                  "--prompt");
  AddBoundCommand(app, globals, "roofline-theoretical",
                  "bound under its older name; --context N is a prompt of N tokens", "--context,--prompt");
}

}  // namespace boltbeam::app
