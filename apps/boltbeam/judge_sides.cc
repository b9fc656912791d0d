#include "judge_sides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "audit/floors.h"
#include "audit/probe_bandwidth.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/shell.h"
#include "chip/facts.h"
#include "engine/routes.h"
#include "judge/program.h"
#include "measure/bench.h"
#include "measure/perplexity.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

constexpr std::uint32_t kOutputTokens = 32;

// A model with its engine, which refers to it.
struct Loaded {
  model::Model model;
  std::unique_ptr<engine::Engine> engine;
};

Result<std::unique_ptr<Loaded>> Load(const Globals& globals, const JudgeArguments& arguments,
                                     const judge::SideSpec& spec) {
  const std::string& path = spec.file.empty() ? arguments.model : spec.file;
  BOLTBEAM_ASSIGN(model::Model model, model::Model::Load(path));
  BOLTBEAM_TRY(measure::RefuseSparse(model));
  auto loaded = std::make_unique<Loaded>(Loaded{std::move(model), nullptr});
  EngineFlags flags = arguments.engine;
  flags.routes.with.insert(flags.routes.with.end(), spec.with.begin(), spec.with.end());
  flags.routes.without.insert(flags.routes.without.end(), spec.without.begin(), spec.without.end());
  if (!spec.plan.empty()) flags.plan = spec.plan;
  BOLTBEAM_ASSIGN(loaded->engine, LoadEngine(globals, loaded->model, flags, judge::ContextNeeded(arguments.request)));
  return loaded;
}

judge::Hooks Watched(Progress& progress) {
  judge::Hooks hooks;
  hooks.cancelled = Interrupted;
  hooks.progress = [&progress](const std::string&, double done, double total) {
    constexpr double kParts = 1000;
    progress.Show(static_cast<std::uint64_t>(done / total * kParts), static_cast<std::uint64_t>(kParts));
  };
  return hooks;
}

// The mean divergence of one side from the reference.
Result<std::pair<double, std::uint64_t>> Divergence(const std::string& path, engine::Engine& engine,
                                                    engine::Session& session) {
  BOLTBEAM_ASSIGN(measure::LogitsReader base, measure::LogitsReader::Open(path));
  measure::PerplexityRequest request;
  request.base = &base;
  request.context = static_cast<std::uint32_t>(base.header().context);
  request.tokens.assign(base.tokens().begin(), base.tokens().end());
  request.vocabulary = engine.model().hyper().vocab;
  request.token_by_token = true;  // the plan that is judged
  request.cancelled = Interrupted;
  BOLTBEAM_ASSIGN(const measure::PerplexityResult result, measure::MeasurePerplexity(session, request));
  return std::pair(result.kl_mean, result.tokens);
}

// What brings back A; empty when nothing differs that could be switched.
std::string OffSwitch(const judge::SideSpec& a, const judge::SideSpec& b) {
  if (a.Describe() == b.Describe()) return "";
  if (a.file != b.file) return "load A's file";
  if (a.plan != b.plan) return "--plan " + (a.plan.empty() ? std::string("default") : a.plan);
  return a.with.empty() && a.without.empty() ? fmt::format("without B's switches: {}", b.Describe())
                                             : fmt::format("A's switches: {}", a.Describe());
}

// B does not fit beside A: that is a finding, and nothing is timed.
JudgedRun TooLarge(const JudgeArguments& arguments, const chip::Chip& machine, const measure::Environment& environment,
                   const Error& error) {
  JudgedRun judged;
  judged.run.environment = environment;
  judged.run.findings.conditions.push_back({std::string(judge::kMemory), judge::State::kFail, error.Message()});
  const std::string& file = arguments.b.file.empty() ? arguments.model : arguments.b.file;
  judged.subject = {machine.id, machine.name, HeaderHash(file), "", "", OffSwitch(arguments.a, arguments.b), 0};
  return judged;
}

Result<JudgedRun> CompareLoaded(const Globals& globals, const JudgeArguments& arguments,
                                const judge::Thresholds& thresholds) {
  const measure::Environment environment = measure::ReadEnvironment();
  // The side that is loaded first gets the better memory, if any: --swap-load takes turns.
  const judge::SideSpec& first = arguments.swap_load ? arguments.b : arguments.a;
  const judge::SideSpec& second = arguments.swap_load ? arguments.a : arguments.b;
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  Result<std::unique_ptr<Loaded>> one = Load(globals, arguments, first);
  Result<std::unique_ptr<Loaded>> two = one ? Load(globals, arguments, second) : std::unexpected(one.error());
  const Result<std::unique_ptr<Loaded>>& loaded_b = arguments.swap_load ? one : two;
  if (!loaded_b && loaded_b.error().code == Code::kOutOfMemory)
    return TooLarge(arguments, machine, environment, loaded_b.error());
  if (!two) return std::unexpected(two.error());
  Loaded& a = arguments.swap_load ? **two : **one;
  Loaded& b = arguments.swap_load ? **one : **two;

  runtime::KernelCache kernels(codegen::TargetFor(machine), (paths.cache / "kernels").string());
  std::vector<int> cpus = chip::UsableCpus();
  cpus.resize(std::min<std::size_t>(cpus.size(), a.engine->options().threads));
  const auto token_bytes = [&](bool is_b, std::uint64_t depth) {
    const Loaded& side = is_b ? b : a;
    return audit::MemoryBytes(audit::PartFloors(side.model, depth, side.engine->options().cache));
  };
  BOLTBEAM_ASSIGN(const auto probe, audit::ProbeBandwidth::Create(kernels, machine, cpus, token_bytes(false, 0)));
  judge::EngineContext context;
  context.environment = environment;
  context.limit = [&] { return std::ranges::max(probe->Read()); };
  context.token_bytes = [&](bool is_b, std::uint64_t depth) { return static_cast<double>(token_bytes(is_b, depth)); };
  context.same_model = arguments.a.file == arguments.b.file;
  context.off_switch = OffSwitch(arguments.a, arguments.b);
  if (!arguments.reference.empty()) {
    context.reference = [&](engine::Session& session_a, engine::Session& session_b) -> Result<judge::ReferenceFinding> {
      BOLTBEAM_ASSIGN(const auto of_a, Divergence(arguments.reference, *a.engine, session_a));
      BOLTBEAM_ASSIGN(const auto of_b, Divergence(arguments.reference, *b.engine, session_b));
      return judge::ReferenceFinding{of_a.first, of_b.first, of_b.second};
    };
  }
  Progress progress("judging");
  // With what a plan's file switches.
  const auto side = [](const Loaded& loaded, const judge::SideSpec& spec) {
    const engine::Options& options = loaded.engine->options();
    return judge::EngineSide{loaded.engine.get(), options.with, options.without, spec.plan};
  };
  const judge::EngineSide side_a = side(a, arguments.a), side_b = side(b, arguments.b);
  JudgedRun judged;
  BOLTBEAM_ASSIGN(judged.run,
                  judge::CompareEngines(side_a, side_b, context, arguments.request, thresholds, Watched(progress)));
  judged.subject = {machine.id,          machine.name,       HeaderHash(b.model.file().path()), a.engine->plan_id(),
                    b.engine->plan_id(), context.off_switch, b.engine->options().threads};
  return judged;
}

std::string Switches(const JudgeArguments& arguments, const judge::SideSpec& side) {
  EngineFlags flags = arguments.engine;
  flags.routes.with.insert(flags.routes.with.end(), side.with.begin(), side.with.end());
  flags.routes.without.insert(flags.routes.without.end(), side.without.begin(), side.without.end());
  if (!side.plan.empty()) flags.plan = side.plan;
  return ForShell(flags);
}

// A side as a program: this one, another boltbeam, or a command as it is.
judge::ProgramSide AsProgram(const JudgeArguments& arguments, const judge::SideSpec& side) {
  if (!side.command.empty()) return {side.command, "", false};
  const std::string program = side.binary.empty() ? OwnProgram() : base::ShellQuoted(side.binary);
  const std::string model = base::ShellQuoted(side.file.empty() ? arguments.model : side.file);
  const std::string switches = Switches(arguments, side);
  return {fmt::format("{} bench {} -p 0 -n {} -r 1 -d {{depth}} -o json{}", program, model, arguments.tokens, switches),
          fmt::format("{} run {} -p 'The' -n {} --temp 0{} 2>/dev/null", program, model, kOutputTokens, switches),
          true};
}

std::string FileHash(const std::string& path) {
  const auto bytes = base::ReadWholeFile(path);
  return bytes ? base::Sha256Hex(*bytes) : "";
}

Result<JudgedRun> CompareAsPrograms(const Globals& globals, const JudgeArguments& arguments,
                                    const judge::Thresholds& thresholds) {
  const judge::ProgramSide a = AsProgram(arguments, arguments.a), b = AsProgram(arguments, arguments.b);
  judge::ProgramContext context;
  if (a.is_boltbeam && b.is_boltbeam) {
    const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
    const std::string hash_a = FileHash(arguments.a.binary.empty() ? own : arguments.a.binary);
    const std::string hash_b = FileHash(arguments.b.binary.empty() ? own : arguments.b.binary);
    constexpr std::size_t kDigits = 12;
    if (hash_a != hash_b) {
      context.route = fmt::format("two programs: {} and {}", hash_a.substr(0, kDigits), hash_b.substr(0, kDigits));
    }
    context.off_switch = "run A's program";
  }
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  Progress progress("judging");
  JudgedRun judged;
  BOLTBEAM_ASSIGN(judged.run, judge::ComparePrograms(a, b, context, arguments.request, thresholds, Watched(progress)));
  judged.subject = {machine.id, machine.name, HeaderHash(arguments.model), "", "", context.off_switch, 0};
  return judged;
}

}  // namespace

std::string HeaderHash(const std::string& path) {
  const auto file = gguf::File::Open(path);
  if (!file) return "";
  std::string bytes(file->data_offset(), '\0');
  if (!file->Read(0, std::as_writable_bytes(std::span(bytes)))) return "";
  return base::Sha256Hex(bytes);
}

std::string ForShell(const EngineFlags& flags) {
  std::string text;
  if (flags.threads != 0) text += fmt::format(" -t {}", flags.threads);
  if (!flags.plan.empty()) text += " --plan " + base::ShellQuoted(flags.plan);
  if (!flags.isa.empty()) text += " --isa " + flags.isa;
  for (const auto& [flag, names] : {std::pair("--with", flags.routes.with), {"--without", flags.routes.without}}) {
    if (!names.empty()) text += fmt::format(" {} {}", flag, fmt::join(names, ","));
  }
  for (const engine::GeometryChoice& choice : flags.geometry) {
    text += " --geometry " + base::ShellQuoted(choice.table.empty() ? choice.knobs : choice.table + ":" + choice.knobs);
  }
  // Only what is not as always: another boltbeam may not know the flag.
  const EngineFlags usual;
  if (flags.cache_k != usual.cache_k) text += " -ctk " + flags.cache_k;
  if (flags.cache_v != usual.cache_v) text += " -ctv " + flags.cache_v;
  return text;
}

std::string OwnProgram() { return base::ShellQuoted(std::filesystem::read_symlink("/proc/self/exe").string()); }

std::vector<std::string> RouteNames() {
  std::vector<std::string> names;
  for (const engine::Route& route : engine::Routes()) names.push_back(route.name);
  return names;
}

Result<JudgedRun> RunJudgedSides(const Globals& globals, const JudgeArguments& arguments,
                                 const judge::Thresholds& thresholds) {
  const bool programs = arguments.a.IsProgram() || arguments.b.IsProgram();
  const bool needs_model = arguments.a.command.empty() || arguments.b.command.empty();
  if (needs_model && arguments.model.empty()) {
    return Fail(Code::kUsage, "judge", "no model", "a GGUF file: boltbeam judge MODEL --b without=ROUTE");
  }
  return programs ? CompareAsPrograms(globals, arguments, thresholds) : CompareLoaded(globals, arguments, thresholds);
}

}  // namespace boltbeam::app
