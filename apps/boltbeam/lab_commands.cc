#include "lab_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/hash.h"
#include "base/paths.h"
#include "base/shell.h"
#include "engine/thread_choice.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

// Far beyond any cache: the probe takes sixteen times the last-level cache of it.
constexpr std::uint64_t kBeyondCaches = std::uint64_t{1} << 40;

/// What tells one line from another.
std::string Described(const lab::MachineFit& fit, bool has_release = true) {
  std::string text = fit.alias + ", " + fit.device;
  if (!fit.engine.empty()) text += ", " + fit.engine;
  if (has_release && !fit.engine_version.empty()) text += " " + fit.engine_version;
  if (fit.threads > 0) text += fmt::format(", {} threads", fit.threads);
  if (fit.isa != "native") text += ", isa " + fit.isa;
  if (fit.cache != "f16") text += ", cache " + fit.cache;
  if (!fit.setup.empty()) text += ", " + fit.setup;
  return text;
}

/// Of several releases of a program the one that ran last: another may move either number. What is not used is a
/// warning of the lines that are.
void KeepNewestReleases(std::vector<lab::MachineFit>& fits) {
  // A release's depths are lines of their own, and its date the newest of theirs.
  std::map<std::string, std::string> dates;
  for (const lab::MachineFit& fit : fits) {
    std::string& date = dates[Described(fit)];
    date = std::max(date, fit.date);
  }
  std::set<std::string> older;
  std::vector<std::string> warnings;
  for (const lab::MachineFit& fit : fits) {
    const auto newer = std::ranges::find_if(fits, [&](const lab::MachineFit& other) {
      return Described(other, false) == Described(fit, false) && other.engine_version != fit.engine_version &&
             dates[Described(other)] > dates[Described(fit)];
    });
    if (newer == fits.end() || !older.insert(Described(fit)).second) continue;
    warnings.push_back(fmt::format("rows of {} {} are not used, those of {} are newer (--line chooses others)",
                                   fit.engine, fit.engine_version, newer->engine_version));
  }
  std::erase_if(fits, [&](const lab::MachineFit& fit) { return older.contains(Described(fit)); });
  for (lab::MachineFit& fit : fits) fit.warnings.insert(fit.warnings.begin(), warnings.begin(), warnings.end());
}

/// What chooses the model's kernels, for comparing: "default", or a hash of all the choices of plans and flags.
Result<std::string> PlanIdentity(const Globals& globals, const model::Model& model, const EngineFlags& flags) {
  BOLTBEAM_ASSIGN(const engine::Options options, EngineOptions(globals, model, flags, 0, true));
  std::string choices;
  for (const engine::GeometryChoice& choice : options.geometry) choices += choice.table + ":" + choice.knobs + "\n";
  const auto add = [&](const char* what, std::vector<std::string> routes) {
    std::ranges::sort(routes);
    for (const std::string& route : routes) choices += what + route + "\n";
  };
  add("with ", options.with);
  add("without ", options.without);
  if (choices.empty()) return std::string("default");
  constexpr std::size_t kShown = 12;
  return "plan:" + base::Sha256Hex(choices).substr(0, kShown);
}

/// What llama-bench says of itself, so that a ladder that goes on knows whether it is the same program.
Result<std::string> LlamaVersion(const std::string& program) {
  BOLTBEAM_ASSIGN(const std::string text, base::RunProgram(base::ShellQuoted(program) + " --version 2>&1 || true"));
  return lab::LlamaBuild(text);
}

}  // namespace

CLI::Validator NumberFrom(double least, double most) {
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    const bool is_number = CLI::detail::lexical_cast(text, value);
    if (is_number && value >= least && value <= most) return "";
    return fmt::format("{}; expected a number from {:g} to {:g}", text, least, most);
  };
  return {check, fmt::format("FLOAT in [{:g} - {:g}]", least, most)};
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this machine";
}

std::string LadderFile(const Globals& globals) {
  return (base::ResolvePaths(globals.home).data / "ladder.jsonl").string();
}

void LineFlags::Add(CLI::App& command) {
  command.add_option("--alias", alias, "Only rows of this machine");
  command.add_option("--program", program, "Only rows of this program, such as boltbeam");
  command
      .add_option("--line", line,
                  "Only lines with this text in what names them: machine, chip, program and release, threads, settings")
      ->type_name("TEXT");
  command.add_option("--confidence", options.confidence, "The chance that an interval holds")
      ->check(NumberFrom(0.5, 0.999))
      ->capture_default_str();
  command
      .add_option(
          "--noise", noise,
          "Errors of models: all alike, as in the lab, or in proportion to their time (auto: the latter for times "
          "brought to one memory speed)")
      ->check(CLI::IsMember({"auto", "constant", "relative"}))
      ->capture_default_str();
  command.add_option("--scale", scale, "Bring times to one memory speed by the bandwidth read beside them")
      ->check(CLI::IsMember({"auto", "none", "streamed"}))
      ->capture_default_str();
  command
      .add_option_function<double>(
          "--between", [this](double percent) { options.between = percent / 100; },
          "Percent (standard deviation) by which another session differs, where the rows hold fewer than three (5)")
      ->check(NumberFrom(0, 100))
      ->type_name("PCT");
  command.add_option("--streamed", options.streamed_gb_s, "GB/s that a mere stream reads, instead of the rows'")
      ->check(NumberFrom(kLeastGbS, kMostGbS));
  command.add_option("--published", options.published_gb_s, "GB/s of the data sheet, instead of the rows'")
      ->check(NumberFrom(kLeastGbS, kMostGbS));
}

Result<std::vector<lab::Row>> LineFlags::Rows(const Globals& globals) const {
  std::vector<lab::Row> rows;
  for (const std::string& file : files.empty() ? std::vector{LadderFile(globals)} : files) {
    bool cut = false;
    Result<std::vector<lab::Row>> read = lab::ReadRows(file, &cut);
    if (!read && files.empty() && read.error().code == Code::kFileNotFound) {
      return Fail(Code::kUsage, file, "no ladder was run here", "rows of `boltbeam ladder`, or a FILE of rows");
    }
    if (!read) return std::unexpected(std::move(read).error());
    if (cut) Note(file + ": its last line was cut and is left out");
    for (lab::Row& row : *read) {
      const bool is_wanted = (alias.empty() || row.alias == alias) && (program.empty() || row.engine == program);
      if (is_wanted) rows.push_back(std::move(row));
    }
  }
  return rows;
}

Result<std::vector<lab::MachineFit>> LineFlags::Fits(std::span<const lab::Row> rows) const {
  lab::FitOptions fit_options = options;
  if (noise != "auto") fit_options.noise = noise == "relative" ? lab::Noise::kRelative : lab::Noise::kConstant;
  if (scale != "auto") fit_options.scale = scale == "none" ? lab::Scale::kNone : lab::Scale::kStreamed;
  BOLTBEAM_ASSIGN(std::vector<lab::MachineFit> fits, lab::FitMachines(rows, fit_options));
  if (line.empty()) return fits;
  std::vector<std::string> names;
  for (const lab::MachineFit& fit : fits) names.push_back(Described(fit));
  std::erase_if(fits, [&](const lab::MachineFit& fit) { return !Described(fit).contains(line); });
  if (!fits.empty()) return fits;
  return Fail(Code::kUsage, "--line", line, fmt::format("a text in one of: {}", fmt::join(names, "; ")));
}

Result<lab::MachineFit> LineFlags::OneFit(std::span<const lab::Row> rows) const {
  BOLTBEAM_ASSIGN(std::vector<lab::MachineFit> fits, Fits(rows));
  KeepNewestReleases(fits);
  std::vector<std::string> kinds;
  for (const lab::MachineFit& fit : fits) {
    if (std::ranges::find(kinds, Described(fit)) == kinds.end()) kinds.push_back(Described(fit));
  }
  // Several depths of one kind: the one with most models is the line, what the others say of the cache it knows
  // already.
  const auto better = [](const lab::MachineFit& one, const lab::MachineFit& other) {
    return std::pair(one.points.size(), other.depth) > std::pair(other.points.size(), one.depth);
  };
  if (kinds.size() == 1) return std::move(*std::ranges::min_element(fits, better));
  return Fail(Code::kUsage, "--line", fmt::format("{} lines", kinds.size()),
              fmt::format("a text that only one has: {}", fmt::join(kinds, "; ")));
}

Result<std::unique_ptr<MemoryProbe>> MemoryProbe::Create(const Globals& globals, std::uint32_t threads) {
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  const std::uint32_t count = threads != 0 ? threads : engine::ChooseThreads(machine).threads;
  std::vector<int> cpus = chip::UsableCpus();
  cpus.resize(std::min<std::size_t>(cpus.size(), count));
  auto probe = std::unique_ptr<MemoryProbe>(new MemoryProbe{
      runtime::KernelCache(codegen::TargetFor(machine), (paths.cache / "kernels").string()), count, nullptr});
  BOLTBEAM_ASSIGN(probe->bandwidth, audit::ProbeBandwidth::Create(probe->kernels, machine, cpus, kBeyondCaches));
  return probe;
}

void RunnerFlags::Add(CLI::App& app) {
  engine.Add(app);
  app.add_flag("--no-engine", no_engine, "Without this program's own engine");
  app.add_option("--llama", llama, "llama.cpp's llama-bench, as a path: run beside")->type_name("PROGRAM");
  app.add_option("--llama-tokens", llama_tokens, "Tokens of each of its repetitions")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--llama-repetitions", llama_repetitions, "Repetitions of each visit")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--command", command, "A shell command that prints tokens per second; {} in it is the model's file")
      ->type_name("CMD");
  app.add_option("--name", program, "What the command's rows are called")->capture_default_str();
}

Result<std::vector<std::unique_ptr<lab::Runner>>> RunnerFlags::Make(const Globals& globals, MemoryProbe& probe,
                                                                    std::uint64_t depth) const {
  if (!command.empty() && !command.contains("{}")) {
    return Fail(Code::kUsage, "--command", command, "{} where the model's file belongs");
  }
  std::vector<std::unique_ptr<lab::Runner>> runners;
  if (!no_engine) {
    const lab::LoadModel load = [&globals, flags = engine](const model::Model& model, std::uint64_t context) {
      return LoadEngine(globals, model, flags, context);
    };
    const lab::TellSettings settings = [&globals,
                                        flags = engine](const lab::ModelFacts& facts) -> Result<lab::Settings> {
      BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(facts.path));
      BOLTBEAM_ASSIGN(std::string plan, PlanIdentity(globals, model, flags));
      return lab::Settings{flags.isa.empty() ? "native" : flags.isa, std::move(plan), 0, ""};
    };
    runners.push_back(lab::MakeEngineRunner(load, settings, *probe.bandwidth, Interrupted));
  }
  if (!llama.empty()) {
    std::string line = fmt::format("{} -m {{}} -p 0 -n {} -d {} -r {} -t {}", base::ShellQuoted(llama), llama_tokens,
                                   depth, llama_repetitions, probe.threads);
    if (engine.CacheName() != "f16") line += fmt::format(" -ctk {} -ctv {}", engine.cache_k, engine.cache_v);
    BOLTBEAM_ASSIGN(std::string version, LlamaVersion(llama));
    runners.push_back(lab::MakeCommandRunner(
        {"llama.cpp", std::move(version), line + " -o json 2>/dev/null", {"", "", llama_tokens, ""}},
        probe.bandwidth.get()));
  }
  if (!command.empty()) {
    runners.push_back(lab::MakeCommandRunner({program, "", command, {"", "", 0, command}}, probe.bandwidth.get()));
  }
  if (!runners.empty()) return runners;
  return Fail(Code::kUsage, "--no-engine", "nothing left to run", "--llama or --command beside it");
}

}  // namespace boltbeam::app
