#include "audit/audit.h"

#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "audit/floors.h"
#include "audit/plan_facts.h"
#include "audit/probe_bandwidth.h"
#include "audit_predict.h"
#include "base/paths.h"
#include "base/pending_file.h"
#include "chip/facts.h"
#include "command.h"
#include "engine/engine.h"
#include "lab/prices.h"
#include "loading.h"
#include "measure/bench.h"
#include "measure/clock.h"
#include "report/account_page.h"
#include "report/audit_format.h"
#include "report/bench_format.h"
#include "report/trace_format.h"
#include "terminal.h"

namespace boltbeam::app {
namespace {

struct Arguments {
  std::string model;
  std::string depths = "0";
  EngineFlags engine;
  double seconds = 10;
  report::AuditView view;
  std::string html, beside;
  bool open = false;
  std::string perfetto;  // a file for one token's trace
  bool predict = false, price = false;
};

std::string Show(const Arguments& arguments, const Globals& globals, const report::AuditSubject& subject,
                 const audit::Audit& audit) {
  if (globals.format == "json") return report::AuditJson(subject, audit);
  return globals.format == "md" ? report::AuditMarkdown(subject, audit, arguments.view)
                                : report::AuditText(subject, audit, arguments.view);
}

Result<std::optional<report::OtherProgram>> BesideOf(const Arguments& arguments) {
  if (arguments.beside.empty()) return std::nullopt;
  BOLTBEAM_ASSIGN(const std::string text, base::ReadWholeFile(arguments.beside));
  BOLTBEAM_ASSIGN(report::OtherProgram comparison, report::ReadComparison(text, arguments.beside));
  return comparison;
}

/// What a token costs at the rate of the first depth, by the prices that `price` takes.
Result<std::optional<lab::Price>> PriceOf(const Arguments& arguments, const base::Paths& paths,
                                          const audit::Audit& audit) {
  if (!arguments.price) return std::nullopt;
  BOLTBEAM_ASSIGN(const lab::PriceList list, lab::LoadPrices(paths.config.string(), ""));
  const audit::Account& account = audit.accounts.front();
  lab::PriceQuestion question;
  question.tok_s = account.TokensPerSecond();
  // What stays in a cache may be faster than the memory's floor: then the gap has no price.
  if (account.LimitTokensPerSecond() >= question.tok_s) question.floor_tok_s = account.LimitTokensPerSecond();
  BOLTBEAM_ASSIGN(lab::Price price, lab::ComputePrice(question, list));
  return price;
}

/// The page in the viewer that the desktop has for it.
void OpenPage(const std::string& path) {
  std::string program = "xdg-open", file = std::filesystem::absolute(path).string();
  std::array<char*, 3> words = {program.data(), file.data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, program.c_str(), nullptr, nullptr, words.data(), environ) != 0) {
    Note("no xdg-open here: open " + file);
  }
}

Result<void> WriteFiles(const Arguments& arguments, const base::Paths& paths, const report::AuditSubject& subject,
                        const audit::Audit& audit, const std::optional<report::OtherProgram>& comparison) {
  std::string html = arguments.html;
  if (html.empty() && arguments.open) html = (paths.cache / "audit.html").string();
  if (!html.empty()) {
    BOLTBEAM_ASSIGN(const std::optional<lab::Price> price, PriceOf(arguments, paths, audit));
    BOLTBEAM_ASSIGN(const std::string page, report::AuditPage(subject, audit, comparison, price));
    BOLTBEAM_TRY(base::WriteFileAtomically(html, page));
    Note("report: " + html);
  }
  if (arguments.open) OpenPage(html);
  return {};
}

// One token with time stamps, as a trace for Perfetto; the one before it made room for the stamps.
Result<void> WriteTrace(const std::string& path, engine::Engine& engine, engine::Session& session,
                        std::uint64_t depth) {
  BOLTBEAM_ASSIGN(const measure::Clock clock, measure::GetClock());
  engine::Trace trace;
  for (int i = 0; i < 2; ++i) {
    BOLTBEAM_TRY(session.Truncate(depth));
    BOLTBEAM_TRY(session.Decode(0, &trace));
  }
  return base::WriteFileAtomically(path, report::ChromeTrace(trace, engine.steps(), clock));
}

Result<void> RunAudit(const Arguments& arguments, const Globals& globals) {
  if (std::isnan(arguments.seconds)) return Fail(Code::kUsage, "--seconds", "nan", "0.1 to 3600 seconds");
  audit::Options options;
  options.seconds = arguments.seconds;
  BOLTBEAM_ASSIGN(options.depths, measure::ParseRanges("--depth", arguments.depths));
  BOLTBEAM_ASSIGN(const std::optional<report::OtherProgram> comparison, BesideOf(arguments));
  CatchInterrupts();
  BOLTBEAM_ASSIGN(const model::Model model, model::Model::Load(arguments.model));
  BOLTBEAM_TRY(measure::RefuseSparse(model));
  const base::Paths paths = base::ResolvePaths(globals.home);
  const std::string cache_folder = (paths.cache / "kernels").string();
  // The memory is probed with all that the machine has: holding the engine back does not slow the memory.
  BOLTBEAM_ASSIGN(const chip::Chip machine, chip::ThisMachine(paths.data.string()));
  BOLTBEAM_ASSIGN(const chip::Chip seen, MachineFor(globals, arguments.engine));
  options.cache_bytes =
      static_cast<std::uint64_t>(machine.Get("l3_bytes").value_or(machine.Get("l2_bytes").value_or(0)));
  BOLTBEAM_ASSIGN(const auto engine, LoadEngine(globals, model, arguments.engine, audit::ContextNeeded(options)));
  BOLTBEAM_ASSIGN(const auto session, engine->NewSession());
  BOLTBEAM_ASSIGN(options.plans, audit::PartPlans(*engine, seen, machine));
  options.facts.idle_routes = audit::IdleRoutes(*engine);
  options.facts.latencies = roofline::LatenciesOf(machine);
  options.facts.reference_gb_s =
      machine.Get(fmt::format("read_bandwidth_gb_s.threads_{}", engine->options().threads)).value_or(0);

  std::vector<int> cpus = chip::UsableCpus();
  cpus.resize(std::min<std::size_t>(cpus.size(), engine->options().threads));
  runtime::KernelCache kernels(codegen::TargetFor(machine), cache_folder);
  const std::uint64_t token_bytes =
      audit::MemoryBytes(audit::PartFloors(model, options.depths.front(), engine->options().cache));
  BOLTBEAM_ASSIGN(const auto bandwidth, audit::ProbeBandwidth::Create(kernels, machine, cpus, token_bytes));
  std::optional<AuditPredictions> predictions;
  if (arguments.predict) {
    // As the chip was measured, or else as the probe reads it now.
    const std::optional<double> known = machine.Get("read_bandwidth_gb_s");
    const double gb_s = known ? *known : std::ranges::max(bandwidth->Read());
    BOLTBEAM_ASSIGN(AuditPredictions written,
                    AuditPredictions::Write(globals, model, arguments.model, machine, *engine, options.depths, gb_s));
    predictions.emplace(std::move(written));
  }
  Progress progress("auditing");
  audit::Hooks hooks;
  hooks.cancelled = Interrupted;
  hooks.progress = [&](double done, double total) {
    constexpr double kParts = 1000;
    progress.Show(static_cast<std::uint64_t>(done / total * kParts), static_cast<std::uint64_t>(kParts));
  };
  BOLTBEAM_ASSIGN(const audit::Audit audit, audit::RunAudit(*engine, *session, *bandwidth, options, hooks));

  if (!arguments.perfetto.empty()) {
    BOLTBEAM_TRY(WriteTrace(arguments.perfetto, *engine, *session, audit.accounts.front().depth));
  }
  BOLTBEAM_ASSIGN(const report::BenchSubject description, report::DescribeModel(model));
  const report::AuditSubject subject{.model_filename = arguments.model,
                                     .model_type = description.model_type,
                                     .machine = seen.name,
                                     .plan_id = engine->plan_id(),
                                     .threads = engine->options().threads,
                                     .kv_format = arguments.engine.CacheName(),
                                     .memory = engine->memory(),
                                     .facts = machine.facts,
                                     .peak_gop_s = machine.Peak() != nullptr ? machine.Peak()->value / 1e9 : 0};
  BOLTBEAM_TRY(WriteOutput(globals, Show(arguments, globals, subject, audit)));
  BOLTBEAM_TRY(WriteFiles(arguments, paths, subject, audit, comparison));
  for (const std::string& note : report::AuditNotes(audit)) Note(note);
  if (predictions) {
    BOLTBEAM_ASSIGN(const std::vector<std::string> lines, predictions->Answer(audit));
    for (const std::string& line : lines) Note(line);
  }
  return audit::RequireTieOut(audit);
}

}  // namespace

void AddAudit(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("audit", "Where the time of a token goes, part by part, against its floor");
  command->add_option("model", arguments->model, "A GGUF file")->required();
  command->add_option("-d,--depth", arguments->depths, "Tokens in the context: a list or a range")
      ->capture_default_str();
  arguments->engine.Add(*command);
  command
      ->add_option("--seconds", arguments->seconds,
                   "Time to measure for, at each depth; up to four times that while the residual is not known well")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_flag("--why", arguments->view.why, "Causes with their evidence, the wall, threads, kernels alone");
  command->add_flag("--layers", arguments->view.layers, "A row for each layer, too");
  command->add_option("--html", arguments->html, "Write the report with charts to FILE, one page that loads nothing");
  command->add_flag("--open", arguments->open, "Open the report; without --html it lies in the cache folder");
  command->add_option("--beside", arguments->beside, "A comparison for the report: what compare -o json wrote");
  command->add_flag("--price", arguments->price,
                    "In the report: what a token costs, by the prices of `boltbeam price`");
  command->add_option("--perfetto", arguments->perfetto,
                      "Also write one token, step by step and thread by thread, to a file that ui.perfetto.dev opens");
  command->add_flag("--predict", arguments->predict,
                    "Write what a token should take into the ledger first, and what it took afterwards");
  AddOutputFlags(*command, globals, {"text", "json", "md"});
  command->callback([arguments, &globals] { Finish(globals, RunAudit(*arguments, globals)); });
}

}  // namespace boltbeam::app
