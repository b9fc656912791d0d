// boltbeam kernel list|show|check MODEL: the kernels of the default plan, what they are, and whether they are right.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "commands.h"
#include "engine/kernel_check.h"
#include "loading.h"
#include "measure/kernel_times.h"
#include "model/model.h"
#include "report/kernels.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

constexpr std::uint32_t kTimedTokens = 9;

struct Arguments {
  std::string model;
  std::string part;
  std::string stage = "program";
  bool is_timed = false;
  EngineFlags engine;
};

/// A model with its plan. The engine refers to the model, so both live here.
struct Planned {
  model::Model model;
  chip::Chip machine;
  std::unique_ptr<engine::Engine> engine;
};

Result<std::unique_ptr<Planned>> Load(const Globals& globals, const Arguments& arguments) {
  CatchInterrupts();
  BOLTBEAM_ASSIGN(model::Model model, model::Model::Load(arguments.model));
  BOLTBEAM_ASSIGN(chip::Chip machine, MachineFor(globals, arguments.engine));
  auto planned = std::make_unique<Planned>(Planned{std::move(model), std::move(machine), nullptr});
  BOLTBEAM_ASSIGN(planned->engine, LoadEngine(globals, planned->model, arguments.engine, 0));
  return planned;
}

Result<void> List(const Globals& globals, const Arguments& arguments) {
  BOLTBEAM_ASSIGN(const std::unique_ptr<Planned> planned, Load(globals, arguments));
  BOLTBEAM_ASSIGN(const measure::RouteList routes,
                  measure::BoundRoutes(*planned->engine, planned->machine, Interrupted));
  std::map<std::string, measure::KernelTime> times;
  if (arguments.is_timed) {
    BOLTBEAM_ASSIGN(times, measure::TimeKernels(*planned->engine, kTimedTokens));
  }
  const codegen::Target target = codegen::TargetFor(planned->machine);
  BOLTBEAM_ASSIGN(const std::vector<report::KernelCost> costs,
                  report::CostsOf(report::KernelsOf(*planned->engine), planned->machine, target, times));
  return WriteOutput(globals,
                     report::KernelListReport(*planned->engine, routes, costs, report::FormOf(globals.format)));
}

report::Stage StageOf(const std::string& name) {
  if (name == "program") return report::Stage::kProgram;
  if (name == "ir") return report::Stage::kIr;
  return name == "asm" ? report::Stage::kAssembly : report::Stage::kAll;
}

Result<void> Show(const Globals& globals, const Arguments& arguments) {
  BOLTBEAM_ASSIGN(const std::unique_ptr<Planned> planned, Load(globals, arguments));
  const codegen::Target target = codegen::TargetFor(planned->machine);
  std::string text;
  for (const report::PlannedKernel& kernel : report::KernelsOf(*planned->engine)) {
    const bool is_wanted = arguments.part.empty() || kernel.part.find(arguments.part) != std::string::npos ||
                           kernel.program->name == arguments.part || kernel.id.starts_with(arguments.part);
    if (!is_wanted) continue;
    BOLTBEAM_ASSIGN(const std::string one, report::KernelText(kernel, target, StageOf(arguments.stage)));
    text += (text.empty() ? "" : "\n") + one;
  }
  if (text.empty()) {
    return Fail(Code::kUsage, "--part", arguments.part, "a part, a kernel or an id that `kernel list` shows");
  }
  return WriteOutput(globals, text);
}

Result<void> Check(Globals& globals, const Arguments& arguments) {
  BOLTBEAM_ASSIGN(const std::unique_ptr<Planned> planned, Load(globals, arguments));
  std::vector<engine::KernelCheck> checks;
  {
    Progress progress("checking");
    engine::CheckOptions options;
    options.part = arguments.part;
    options.cancelled = Interrupted;
    options.progress = [&](std::uint64_t done, std::uint64_t total) { progress.Show(done, total); };
    BOLTBEAM_ASSIGN(checks, engine::CheckKernels(*planned->engine, planned->machine, options));
  }
  BOLTBEAM_TRY(WriteOutput(globals, report::KernelCheckReport(checks, report::FormOf(globals.format))));
  if (!std::ranges::all_of(checks, &engine::KernelCheck::ok)) globals.exit_status = kExitFailed;
  return {};
}

CLI::App* AddSubcommand(CLI::App& kernel, const char* name, const char* help, Arguments& arguments) {
  CLI::App* command = kernel.add_subcommand(name, help);
  command->add_option("model", arguments.model, "GGUF file")->required()->type_name("MODEL");
  arguments.engine.Add(*command);
  return command;
}

}  // namespace

void AddKernel(CLI::App& app, Globals& globals) {
  CLI::App* kernel = app.add_subcommand("kernel", "The kernels of a model's plan: list, show, check");
  kernel->require_subcommand(1);
  const auto arguments = std::make_shared<Arguments>();

  CLI::App* list =
      AddSubcommand(*kernel, "list", "List the kernels, which parts they run and where they come from", *arguments);
  list->add_flag("--time", arguments->is_timed, "Decode some tokens, and show what each kernel took");
  AddOutputFlags(*list, globals, report::FormNames());
  list->callback([arguments, &globals] { Finish(globals, List(globals, *arguments)); });

  CLI::App* show = AddSubcommand(*kernel, "show", "Print kernels: loop program, LLVM IR, machine code", *arguments);
  show->add_option("--part", arguments->part, "Only this part, kernel or id")->type_name("PART");
  show->add_option("--stage", arguments->stage, "What to print")
      ->check(CLI::IsMember({"program", "ir", "asm", "all"}))
      ->capture_default_str();
  AddOutputFlags(*show, globals, {"text"});
  show->callback([arguments, &globals] { Finish(globals, Show(globals, *arguments)); });

  CLI::App* check = AddSubcommand(*kernel, "check",
                                  "Check the kernels on the model's own tensors against double "
                                  "arithmetic",
                                  *arguments);
  check->add_option("--part", arguments->part, "Only this part")->type_name("PART");
  AddOutputFlags(*check, globals, report::FormNames());
  check->callback([arguments, &globals] { Finish(globals, Check(globals, *arguments)); });
}

}  // namespace boltbeam::app
