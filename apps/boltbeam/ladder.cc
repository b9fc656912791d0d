// boltbeam ladder: several models through one or more programs, in turns; every visit is a row of a file.
#include "lab/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>

#include "base/paths.h"
#include "gguf/split_name.h"
#include "lab_commands.h"
#include "synth_file.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::vector<std::string> models, synth, imports;
  std::string file;
  lab::LadderOptions options;
  RunnerFlags runners;
};

/// The models of a folder: every GGUF file, of a split one only its first part.
Result<std::vector<std::string>> ModelsIn(const std::string& folder) {
  std::vector<std::string> models;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".gguf") continue;
    const auto part = gguf::ParsePartName(it->path().string());
    if (!part || part->number == 1) models.push_back(it->path().string());
  }
  if (error) return Fail(Code::kFileRead, folder, error.message(), "a folder that can be read");
  std::ranges::sort(models);
  if (models.empty()) return Fail(Code::kUsage, folder, "no file that ends in .gguf", "a folder with models");
  return models;
}

/// "qwen3-8b:Q4_K_M" or "qwen3-8b:Q4_K_M/24" with so many layers: its file, made when it is not there.
Result<std::string> SynthFile(const Globals& globals, const std::string& text) {
  model::SynthOptions options;
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const char *begin = text.data() + slash + 1, *end = text.data() + text.size();
    const auto [last, error] = std::from_chars(begin, end, options.layers);
    if (error != std::errc() || last != end || options.layers == 0) {
      return Fail(Code::kUsage, "--synth", text, "NAME:TYPE or NAME:TYPE/LAYERS");
    }
  }
  BOLTBEAM_ASSIGN(const model::SynthPlan plan, model::PlanSynth(text.substr(0, slash), options));
  BOLTBEAM_ASSIGN(const std::string path, SynthPath(globals, plan, options));
  std::error_code error;
  if (!fs::exists(path, error)) BOLTBEAM_TRY(MakeSynth(plan, path, options));
  return path;
}

Result<std::vector<lab::ModelFacts>> FindModels(const Globals& globals, const Arguments& arguments) {
  std::vector<std::string> paths;
  for (const std::string& model : arguments.models) {
    std::error_code error;
    if (fs::is_directory(model, error)) {
      BOLTBEAM_ASSIGN(const std::vector<std::string> inside, ModelsIn(model));
      paths.insert(paths.end(), inside.begin(), inside.end());
    } else {
      paths.push_back(model);
    }
  }
  for (const std::string& text : arguments.synth) {
    BOLTBEAM_ASSIGN(const std::string path, SynthFile(globals, text));
    paths.push_back(path);
  }
  std::vector<lab::ModelFacts> models;
  for (const std::string& path : paths) {
    BOLTBEAM_ASSIGN(lab::ModelFacts facts, lab::ReadModelFacts(path));
    models.push_back(std::move(facts));
  }
  std::ranges::stable_sort(models, {}, &lab::ModelFacts::weight_bytes);
  return models;
}

Result<std::vector<lab::Row>> EarlierRows(const std::string& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return std::vector<lab::Row>();
  return lab::ReadRows(file);
}

Result<void> Import(const Arguments& arguments, const std::string& file) {
  for (const std::string& path : arguments.imports) {
    BOLTBEAM_ASSIGN(const std::string text, base::ReadWholeFile(path));
    BOLTBEAM_ASSIGN(std::vector<lab::Row> rows, lab::ImportBench(text, path, arguments.options));
    const std::size_t found = rows.size();
    BOLTBEAM_ASSIGN(const std::vector<lab::Row> earlier, EarlierRows(file));
    const std::vector<lab::Row> fresh = lab::NewRows(std::move(rows), earlier);
    for (const lab::Row& row : fresh) BOLTBEAM_TRY(lab::AppendRow(file, row));
    const auto mixtures = std::ranges::count_if(fresh, [](const lab::Row& row) { return row.experts > 0; });
    std::string note = fmt::format("{}: {} of {} rows imported", path, fresh.size(), found);
    if (fresh.size() < found) note += fmt::format(", {} were there already", found - fresh.size());
    if (mixtures > 0) note += fmt::format(", {} of mixtures of experts, which no line takes", mixtures);
    Note(note);
  }
  return {};
}

Result<void> Climb(const Globals& globals, Arguments arguments, const std::string& file) {
  CatchInterrupts();
  const base::Paths paths = base::ResolvePaths(globals.home);
  BOLTBEAM_ASSIGN(const std::vector<lab::ModelFacts> models, FindModels(globals, arguments));
  BOLTBEAM_ASSIGN(const std::vector<lab::Row> earlier, EarlierRows(file));
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  lab::LadderOptions& options = arguments.options;
  options.device = machine.name;
  if (!options.published_gb_s) options.published_gb_s = machine.Get("published_bandwidth_gb_s");
  BOLTBEAM_ASSIGN(const auto probe, MemoryProbe::Create(globals, arguments.runners.engine.threads));
  options.visit.threads = probe->threads;
  BOLTBEAM_ASSIGN(options.visit.cache, arguments.runners.engine.Cache());
  BOLTBEAM_ASSIGN(const auto runners, arguments.runners.Make(globals, *probe, options.visit.depth));
  std::unique_ptr<Progress> progress;
  lab::LadderHooks hooks;
  hooks.append = [&](const lab::Row& row) { return lab::AppendRow(file, row); };
  hooks.note = Note;
  hooks.cancelled = Interrupted;
  hooks.progress = [&](const std::string& what, std::uint64_t done, std::uint64_t total) {
    progress.reset();  // a bar for each visit: loading draws its own
    progress = std::make_unique<Progress>(what);
    progress->Show(done, total);
  };
  const Result<lab::LadderState> state = lab::RunLadder(models, runners, earlier, options, hooks);
  progress.reset();
  if (!state) return std::unexpected(state.error());
  Note(fmt::format("{} of {} visits are done{}; see boltbeam fit", state->done, state->total,
                   state->done < state->total ? " (run it again to go on)" : ""));
  return WriteOutput(globals, file + "\n");
}

Result<void> Ladder(const Globals& globals, const Arguments& arguments) {
  const std::string file = arguments.file.empty() ? LadderFile(globals) : arguments.file;
  if (!arguments.imports.empty()) {
    BOLTBEAM_TRY(Import(arguments, file));
    if (arguments.models.empty() && arguments.synth.empty()) return WriteOutput(globals, file + "\n");
  }
  if (arguments.models.empty() && arguments.synth.empty()) {
    return Fail(Code::kUsage, "ladder", "no model", "GGUF files, folders of them, --synth NAME:TYPE, or --import FILE");
  }
  return Climb(globals, arguments, file);
}

}  // namespace

void AddLadder(CLI::App& app, Globals& globals) {
  const auto arguments = std::make_shared<Arguments>();
  lab::LadderOptions& options = arguments->options;
  options.alias = HostName();
  CLI::App* command = app.add_subcommand("ladder", "Several models in turns: rows for the lab's line");
  command->add_option("models", arguments->models, "GGUF files and folders of them")->type_name("MODEL");
  command
      ->add_option("--synth", arguments->synth,
                   "A synthetic model, NAME:TYPE or NAME:TYPE/LAYERS, made when it is not there; may be repeated")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  command->add_option("--import", arguments->imports, "Add rows of llama-bench's output (-o json or jsonl)")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->add_option("--file", arguments->file, "Where rows are added (ladder.jsonl in the data folder)");
  command->add_option("--alias", options.alias, "This machine's name in the rows")->capture_default_str();
  command->add_option("--published", options.published_gb_s, "GB/s of this machine's data sheet")
      ->check(NumberFrom(kLeastGbS, kMostGbS));
  command->add_option("--passes", options.passes, "Visits to each model")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--seconds", options.visit.seconds, "Of windows, at each visit of this engine")
      ->check(NumberFrom(0.01, 600))
      ->capture_default_str();
  command->add_option("-d,--depth", options.visit.depth, "Tokens already in the context")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--budget", options.budget_s, "Begin no visit after so many seconds (0: no limit)")
      ->check(NumberFrom(0, 1e9))
      ->capture_default_str();
  arguments->runners.Add(*command);
  command->add_option("--out", globals.out_file, "Write the file's name to FILE instead of stdout");
  command->callback([arguments, &globals] { Finish(globals, Ladder(globals, *arguments)); });
}

}  // namespace boltbeam::app
