#include "loading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "base/paths.h"
#include "chip/instruction_sets.h"
#include "engine/routes.h"
#include "engine/thread_choice.h"
#include "search/plan_use.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

constexpr double kMegabyte = 1e6;
constexpr std::int64_t kMostThreads = 1024;

/// What a fallback costs is for the user to know: without huge pages every 4 KiB of the stream needs an address of its
/// own.
void NoteSmallPages(const engine::MemoryUse& memory) {
  constexpr double kMost = 0.9;
  constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 20;  // a model that small pages slow down
  if (memory.weights_bytes < kLeastBytes) return;
  const auto huge = static_cast<double>(memory.huge_page_bytes);
  if (huge >= kMost * static_cast<double>(memory.weights_bytes)) return;
  Note(
      fmt::format("{:.1f} of {:.1f} MB of the weights lie on huge pages, the rest on small ones: slower to read "
                  "(boltbeam doctor says why)",
                  huge / kMegabyte, static_cast<double>(memory.weights_bytes) / kMegabyte));
}

/// What was asked for goes before what a plan says.
void AddRoutes(std::vector<std::string>& routes, const std::vector<std::string>& of_plan, const RouteFlags& asked) {
  for (const std::string& route : of_plan) {
    const auto is_asked = [&](const std::vector<std::string>& names) {
      return std::ranges::find(names, route) != names.end();
    };
    if (!is_asked(asked.with) && !is_asked(asked.without)) routes.push_back(route);
  }
}

/// What the plan says, then what the flags say.
Result<void> ApplyPlan(const base::Paths& paths, const model::Model& model, const chip::Chip& machine,
                       const EngineFlags& flags, bool is_quiet, engine::Options& options) {
  runtime::KernelCache kernels(codegen::TargetFor(machine), options.cache_folder);
  BOLTBEAM_ASSIGN(search::PlanUse use, search::UsePlan(model, machine, search::PlanStore::In(paths), flags.plan,
                                                       kernels, options.threads, options.cache));
  for (const std::string& note : use.notes) {
    if (!is_quiet) Note("note: " + note);
  }
  if (!is_quiet && flags.plan.empty() && !use.plans.empty()) {  // by itself: nobody asked for it
    Note(fmt::format("plan {}: kernels of {} (--plan default switches it off)", fmt::join(use.plans, ", "),
                     fmt::join(std::views::transform(use.geometry, &engine::GeometryChoice::table), ", ")));
  }
  options.geometry = std::move(use.geometry);
  options.geometry.insert(options.geometry.end(), flags.geometry.begin(), flags.geometry.end());
  AddRoutes(options.with, use.with, flags.routes);
  AddRoutes(options.without, use.without, flags.routes);
  return {};
}

}  // namespace

void EngineFlags::Add(CLI::App& command) {
  command.add_option("-t,--threads", threads, "Threads (as few as read at full speed)")
      ->check(CLI::Range(std::int64_t{1}, kMostThreads));
  AddCacheTypes(command, cache_k, cache_v);
  routes.Add(command);
  AddIsa(command, isa);
  command.add_option("--plan", plan, "default, an installed plan or a plan's file (what is installed for this chip)")
      ->type_name("PLAN");
  command
      .add_option_function<std::vector<std::string>>(
          "--geometry",
          [this](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              auto choice = engine::ParseGeometryChoice(text);
              if (!choice)
                throw CLI::ValidationError("--geometry", choice.error().found + "; " + choice.error().expected);
              geometry.push_back(std::move(*choice));
            }
          },
          "Turn knobs of tables' kernels, of all or of those of a format or shape (Q4_K.4096x14336); "
          "`boltbeam kernel list` shows them. attention:chunk=64,lanes=8,dot=dot4 turns those of attention, "
          "tails:piece=65536 the bytes that another thread takes over at once")
      ->allow_extra_args(false)
      ->type_name("[TABLE:]KNOB=VALUE,...");
}

void AddIsa(CLI::App& command, std::string& isa) {
  std::vector<std::string> names;
  for (const chip::InstructionSet& set : chip::InstructionSets()) names.emplace_back(set.name);
  command.add_option("--isa", isa, "Use no instructions above this set")->check(CLI::IsMember(names))->type_name("SET");
}

Result<chip::Chip> MachineFor(const Globals& globals, const EngineFlags& flags) {
  BOLTBEAM_ASSIGN(chip::Chip machine, chip::ThisMachine(base::ResolvePaths(globals.home).data.string()));
  BOLTBEAM_TRY(HoldTo(machine, flags.isa));
  return machine;
}

Result<void> HoldTo(chip::Chip& chip, const std::string& isa) {
  if (isa.empty()) return {};
  BOLTBEAM_TRY(chip::HoldTo(chip, isa));
  chip.id += "-" + isa;  // what is found out of it is not true of all of the machine
  chip.name += fmt::format(" held to {}", isa);
  return {};
}

void AddCacheTypes(CLI::App& command, std::string& keys, std::string& values) {
  const CLI::IsMember known(model::CacheFormatNames());
  command.add_option("--ctk,--cache-type-k", keys, "Format of cached keys")->check(known)->capture_default_str();
  command.add_option("--ctv,--cache-type-v", values, "Format of cached values")->check(known)->capture_default_str();
}

void RouteFlags::Add(CLI::App& command) {
  std::vector<std::string> names;
  for (const engine::Route& route : engine::Routes()) names.push_back(route.name);
  const auto add = [&](const char* flag, std::vector<std::string>& routes, const char* help) {
    command.add_option(flag, routes, help)
        ->delimiter(',')
        ->check(CLI::IsMember(names).description(""))
        ->type_name("ROUTE,...");
  };
  add("--without", without, "Switch fusions off, by comma; `boltbeam kernel list` names them");
  add("--with", with, "Switch fusions on that are off by default");
}

Result<model::CacheFormats> EngineFlags::CacheOf(const std::string& keys, const std::string& values) {
  model::CacheFormats cache;
  BOLTBEAM_ASSIGN(cache.keys, model::FindCacheFormat("-ctk", keys));
  BOLTBEAM_ASSIGN(cache.values, model::FindCacheFormat("-ctv", values));
  return cache;
}

Result<engine::Options> EngineOptions(const Globals& globals, const model::Model& model, const EngineFlags& flags,
                                      std::uint64_t context, bool is_quiet) {
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip machine, MachineFor(globals, flags));
  engine::Options options;
  options.threads = flags.threads;
  options.context = context;
  options.with = flags.routes.with;
  options.without = flags.routes.without;
  BOLTBEAM_ASSIGN(options.cache, flags.Cache());
  options.cache_folder = (paths.cache / "kernels").string();
  BOLTBEAM_TRY(ApplyPlan(paths, model, machine, flags, is_quiet, options));
  return options;
}

Result<std::unique_ptr<engine::Engine>> LoadEngine(const Globals& globals, const model::Model& model,
                                                   const EngineFlags& flags, std::uint64_t context) {
  if (context > model.hyper().context && model.hyper().context != 0) {
    Note(fmt::format("warning: a context of {} tokens, beyond the {} that the model was made for", context,
                     model.hyper().context));
  }
  BOLTBEAM_ASSIGN(const chip::Chip machine, MachineFor(globals, flags));
  Progress progress("loading");
  BOLTBEAM_ASSIGN(engine::Options options, EngineOptions(globals, model, flags, context));
  options.cancelled = Interrupted;
  options.progress = [&](std::uint64_t done, std::uint64_t total) { progress.Show(done, total); };
  BOLTBEAM_ASSIGN(std::unique_ptr<engine::Engine> engine, engine::Engine::Load(model, machine, options));
  NoteSmallPages(engine->memory());
  return engine;
}

std::string WhyThreads(const chip::Chip& machine, const EngineFlags& flags) {
  return flags.threads != 0 ? "asked for" : engine::ChooseThreads(machine).why;
}

Result<void> NoteThreads(const Globals& globals, const EngineFlags& flags, const engine::Engine& engine) {
  if (flags.threads != 0) return {};
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(base::ResolvePaths(globals.home).data.string()));
  Note(fmt::format("{} threads: {}", engine.options().threads, WhyThreads(machine, flags)));
  return {};
}

std::string DescribeMemory(const engine::MemoryUse& memory) {
  const auto megabytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) / kMegabyte; };
  return fmt::format("weights {:.1f} MB, KV cache {:.1f} MB, workspace {:.1f} MB", megabytes(memory.weights_bytes),
                     megabytes(memory.kv_bytes), megabytes(memory.workspace_bytes));
}

}  // namespace boltbeam::app
