#include "judge_sides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

#include "audit/floors.h"
#include "audit/probe_bandwidth.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/shell.h"
#include "chip/facts.h"
#include "engine/plan_identity.h"
#include "engine/routes.h"
#include "judge/program.h"
#include "measure/bench.h"
#include "measure/logits_file.h"
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

std::string FileOf(const JudgeArguments& arguments, const judge::SideSpec& spec) {
  return spec.file.empty() ? arguments.model : spec.file;
}

EngineFlags FlagsOf(const JudgeArguments& arguments, const judge::SideSpec& spec) {
  EngineFlags flags = arguments.engine;
  flags.routes.with.insert(flags.routes.with.end(), spec.with.begin(), spec.with.end());
  flags.routes.without.insert(flags.routes.without.end(), spec.without.begin(), spec.without.end());
  if (!spec.plan.empty()) flags.plan = spec.plan;
  return flags;
}

// Positions that a side's cache must hold; a reference's chunks are computed in it too.
Result<std::uint64_t> ContextNeeded(const JudgeArguments& arguments) {
  const std::uint64_t context = judge::ContextNeeded(arguments.request);
  if (arguments.reference.empty()) return context;
  BOLTBEAM_ASSIGN(const measure::LogitsReader base, measure::LogitsReader::Open(arguments.reference));
  return std::max(context, static_cast<std::uint64_t>(base.header().context));
}

Result<std::unique_ptr<Loaded>> Load(const Globals& globals, const JudgeArguments& arguments,
                                     const judge::SideSpec& spec) {
  BOLTBEAM_ASSIGN(const std::uint64_t context, ContextNeeded(arguments));
  BOLTBEAM_ASSIGN(model::Model model, model::Model::Load(FileOf(arguments, spec)));
  BOLTBEAM_TRY(measure::RefuseSparse(model));
  auto loaded = std::make_unique<Loaded>(Loaded{std::move(model), nullptr});
  BOLTBEAM_ASSIGN(loaded->engine, LoadEngine(globals, loaded->model, FlagsOf(arguments, spec), context));
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
  if (a.plan != b.plan) return a.plan.empty() ? "without --plan" : "--plan " + a.plan;
  return a.with.empty() && a.without.empty() ? fmt::format("without B's switches: {}", b.Describe())
                                             : fmt::format("A's switches: {}", a.Describe());
}

// Flips what OffSwitch names, and nothing else, and looks whose plan that gives. Nothing: it can't be seen.
std::optional<bool> OffSwitchGivesA(const Globals& globals, const JudgeArguments& arguments, const Loaded& a,
                                    const Loaded& b) {
  judge::SideSpec flipped = arguments.b;
  const bool is_file = arguments.a.file != arguments.b.file;
  if (!is_file && arguments.a.plan != arguments.b.plan) {
    flipped.plan = arguments.a.plan;
  } else if (!is_file) {
    flipped.with = arguments.a.with;
    flipped.without = arguments.a.without;
  }
  const EngineFlags flags = FlagsOf(arguments, flipped);
  const model::Model& model = is_file ? a.model : b.model;
  const auto machine = MachineFor(globals, flags);
  const auto context = ContextNeeded(arguments);
  if (!machine || !context) return std::nullopt;
  const auto options = EngineOptions(globals, model, flags, *context, true);
  if (!options) return std::nullopt;
  const auto plan = engine::PlanIdentity(model, *machine, *options);
  return plan ? std::optional(*plan == a.engine->plan_id()) : std::nullopt;
}

constexpr std::size_t kDigits = 16;  // of a hash in a name

// Files of gigabytes are asked about more than once.
std::string HashOr(const std::string& path, const std::string& otherwise) {
  static std::map<std::string, std::string> known;
  if (const auto found = known.find(path); found != known.end()) return found->second;
  const auto hash = base::Sha256OfFile(path);
  return hash ? known.emplace(path, *hash).first->second : otherwise;
}

// Whether both sides read the same model, by what the files hold.
bool IsSameModel(const JudgeArguments& arguments) {
  const std::string a = FileOf(arguments, arguments.a), b = FileOf(arguments, arguments.b);
  return a == b || HashOr(a, a) == HashOr(b, b);
}

// Of two files the whole content counts; the header's hash, which is quicker, names a single one.
void AddFile(const JudgeArguments& arguments, const judge::SideSpec& spec, SideIdentity& identity) {
  const std::string path = FileOf(arguments, spec);
  if (path.empty() || arguments.a.file == arguments.b.file) return;
  const std::string hash = HashOr(path, path);
  identity.parts["file_sha256"] = hash;
  identity.name += " of file " + hash.substr(0, kDigits);
}

SideIdentity IdentityOfPlan(const JudgeArguments& arguments, const judge::SideSpec& spec, const std::string& plan) {
  SideIdentity identity{"plan " + plan.substr(0, kDigits), {{"plan", plan}}};
  AddFile(arguments, spec, identity);
  return identity;
}

// The plan of a side that does not fit, which needs no weights.
std::string PlanWithoutWeights(const Globals& globals, const JudgeArguments& arguments, const judge::SideSpec& spec) {
  const EngineFlags flags = FlagsOf(arguments, spec);
  const auto model = model::Model::Load(FileOf(arguments, spec));
  const auto machine = MachineFor(globals, flags);
  const auto context = ContextNeeded(arguments);
  if (!model || !machine || !context) return "unknown";
  const auto options = EngineOptions(globals, *model, flags, *context, true);
  const auto plan = options ? engine::PlanIdentity(*model, *machine, *options) : std::unexpected(options.error());
  return plan ? *plan : "unknown";
}

// The sides don't fit beside each other: that is a finding, and nothing is timed. B alone decides which: what does not
// fit by itself is refuted, and of what does nothing could be measured. When A does not fit, there is nothing to
// compare with.
Result<JudgedRun> TooLarge(const Globals& globals, const JudgeArguments& arguments, const chip::Chip& machine,
                           const measure::Environment& environment) {
  BOLTBEAM_TRY(Load(globals, arguments, arguments.a));  // and freed again
  const auto alone = Load(globals, arguments, arguments.b);
  if (!alone && alone.error().code != Code::kOutOfMemory) return std::unexpected(alone.error());
  JudgedRun judged;
  judged.run.environment = environment;
  judged.run.findings.conditions.push_back(
      {std::string(judge::kMemory), alone ? judge::State::kUnknown : judge::State::kFail,
       alone ? "B fits, but not beside A, so that nothing can be measured" : alone.error().Message()});
  judged.subject = {machine.id,
                    machine.name,
                    HeaderHash(FileOf(arguments, arguments.b)),
                    IdentityOfPlan(arguments, arguments.a, PlanWithoutWeights(globals, arguments, arguments.a)),
                    IdentityOfPlan(arguments, arguments.b, PlanWithoutWeights(globals, arguments, arguments.b)),
                    "",
                    OffSwitch(arguments.a, arguments.b),
                    0};
  return judged;
}

Result<JudgedRun> CompareLoaded(const Globals& globals, const JudgeArguments& arguments,
                                const judge::Thresholds& thresholds, const BeforeJudging& before) {
  const measure::Environment environment = measure::ReadEnvironment();
  // The side that is loaded first gets the better memory, if any: --swap-load takes turns.
  const judge::SideSpec& first = arguments.swap_load ? arguments.b : arguments.a;
  const judge::SideSpec& second = arguments.swap_load ? arguments.a : arguments.b;
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  Result<std::unique_ptr<Loaded>> one = Load(globals, arguments, first);
  Result<std::unique_ptr<Loaded>> two = one ? Load(globals, arguments, second) : std::unexpected(one.error());
  if (!two && two.error().code == Code::kOutOfMemory) {
    if (one) one->reset();
    return TooLarge(globals, arguments, machine, environment);
  }
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
  context.same_model = IsSameModel(arguments);
  context.off_switch = OffSwitch(arguments.a, arguments.b);
  if (!context.off_switch.empty()) context.off_switch_gives_a = OffSwitchGivesA(globals, arguments, a, b);
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
  judged.subject = {machine.id,
                    machine.name,
                    HeaderHash(b.model.file().path()),
                    IdentityOfPlan(arguments, arguments.a, a.engine->plan_id()),
                    IdentityOfPlan(arguments, arguments.b, b.engine->plan_id()),
                    b.engine->plan_id(),
                    context.off_switch,
                    b.engine->options().threads};
  BOLTBEAM_TRY(before(judged.subject));
  BOLTBEAM_ASSIGN(judged.run,
                  judge::CompareEngines(side_a, side_b, context, arguments.request, thresholds, Watched(progress)));
  return judged;
}

// A side as a program: this one, another boltbeam, or a command as it is.
judge::ProgramSide AsProgram(const JudgeArguments& arguments, const judge::SideSpec& side) {
  if (!side.command.empty()) return {side.command, "", false};
  const std::string program = side.binary.empty() ? OwnProgram() : base::ShellQuoted(side.binary);
  const std::string model = base::ShellQuoted(FileOf(arguments, side));
  const std::string switches = ForShell(FlagsOf(arguments, side));
  return {fmt::format("{} bench {} -p 0 -n {} -r 1 -d {{depth}} -o json{}", program, model, arguments.tokens, switches),
          fmt::format("{} run {} -p 'The' -n {} --temp 0{}", program, model, kOutputTokens, switches), true};
}

// The program that a shell starts for a command, as far as its first word says it; empty: it can't be told.
std::string ProgramOf(const std::string& command) {
  std::string word = command.substr(0, command.find(' '));
  std::erase_if(word, [](char c) { return c == '\'' || c == '"'; });
  if (word.contains('/')) return word;
  const char* path = std::getenv("PATH");
  std::string_view folders = path != nullptr ? path : "";
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::filesystem::path file = std::filesystem::path(folders.substr(0, end)) / word;
    if (std::filesystem::is_regular_file(file)) return file.string();
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return "";
}

SideIdentity IdentityOfProgram(const JudgeArguments& arguments, const judge::SideSpec& side) {
  SideIdentity identity;
  if (!side.command.empty()) {
    const std::string program = HashOr(ProgramOf(side.command), "");
    identity.parts = {{"command", side.command}, {"program_sha256", program}};
    identity.name = "command " + base::Sha256Hex(side.command + "\n" + program).substr(0, kDigits);
    return identity;
  }
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string path = side.binary.empty() ? own : side.binary, program = HashOr(path, path);
  identity.name = "program " + program.substr(0, kDigits);
  identity.parts = {{"program_sha256", program}};
  EngineFlags flags = FlagsOf(arguments, side);
  if (!flags.plan.empty()) {
    const std::string plan = HashOr(flags.plan, flags.plan);  // a file, or a name that the program knows
    identity.parts["plan_file_sha256"] = plan;
    identity.name += " plan " + plan.substr(0, kDigits);
    flags.plan.clear();
  }
  identity.name += ForShell(flags);
  AddFile(arguments, side, identity);
  return identity;
}

// Another program is switched off by running A's, as long as nothing else differs; what switches do inside of a program
// can't be seen.
void AddOffSwitch(const JudgeArguments& arguments, const JudgedSubject& subject, judge::ProgramContext& context) {
  const bool same_program = subject.a.parts.at("program_sha256") == subject.b.parts.at("program_sha256");
  const bool same_rest =
      ForShell(FlagsOf(arguments, arguments.a)) == ForShell(FlagsOf(arguments, arguments.b)) && IsSameModel(arguments);
  if (!same_program) {
    context.off_switch = "run A's program";
    context.off_switch_gives_a = same_rest;
  } else if (!same_rest) {
    context.off_switch = OffSwitch(arguments.a, arguments.b);
  }
}

Result<JudgedRun> CompareAsPrograms(const Globals& globals, const JudgeArguments& arguments,
                                    const judge::Thresholds& thresholds, const BeforeJudging& before) {
  const judge::ProgramSide a = AsProgram(arguments, arguments.a), b = AsProgram(arguments, arguments.b);
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  JudgedRun judged;
  judged.subject = {machine.id,
                    machine.name,
                    HeaderHash(FileOf(arguments, arguments.b)),
                    IdentityOfProgram(arguments, arguments.a),
                    IdentityOfProgram(arguments, arguments.b),
                    "",
                    "",
                    0};
  judge::ProgramContext context;
  if (a.is_boltbeam && b.is_boltbeam) {
    if (judged.subject.a.name != judged.subject.b.name) {
      context.route = fmt::format("two programs: {} and {}", judged.subject.a.name, judged.subject.b.name);
    }
    AddOffSwitch(arguments, judged.subject, context);
    judged.subject.off_switch = context.off_switch;
  }
  BOLTBEAM_TRY(before(judged.subject));
  Progress progress("judging");
  BOLTBEAM_ASSIGN(judged.run, judge::ComparePrograms(a, b, context, arguments.request, thresholds, Watched(progress)));
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
                                 const judge::Thresholds& thresholds, const BeforeJudging& before) {
  const bool programs = arguments.a.IsProgram() || arguments.b.IsProgram();
  const bool needs_model = arguments.a.command.empty() || arguments.b.command.empty();
  if (needs_model && arguments.model.empty()) {
    return Fail(Code::kUsage, "judge", "no model", "a GGUF file: boltbeam judge MODEL --b without=ROUTE");
  }
  return programs ? CompareAsPrograms(globals, arguments, thresholds, before)
                  : CompareLoaded(globals, arguments, thresholds, before);
}

}  // namespace boltbeam::app
