#include "lab/ladder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/printable.h"
#include "measure/environment.h"
#include "measure/statistics.h"

namespace boltbeam::lab {
namespace {

/// One turn at one model.
struct Rung {
  std::size_t model = 0, runner = 0;
  std::uint64_t pass = 0;
};

/// Up the ladder and down again, so that what drifts in one direction meets small and large alike.
std::vector<Rung> RungsOf(std::size_t models, std::size_t runners, std::uint64_t passes) {
  std::vector<Rung> rungs;
  for (std::uint64_t pass = 1; pass <= passes; ++pass) {
    for (std::size_t i = 0; i < models; ++i) {
      const std::size_t model = pass % 2 == 1 ? i : models - 1 - i;
      for (std::size_t j = 0; j < runners; ++j) rungs.push_back({model, pass % 2 == 1 ? j : runners - 1 - j, pass});
    }
  }
  return rungs;
}

/// One visit as it is to be made.
struct Asked {
  const ModelFacts& model;
  const Runner& runner;
  const Settings& settings;
  const LadderOptions& options;
  std::uint64_t pass = 0;
};

std::string CacheName(const formats::Format* format) { return model::CacheFormatName(*format); }

/// Whether a row is of this file, program and pass, however they ran.
bool IsOfVisit(const Row& row, const Asked& asked) {
  return row.pass == asked.pass && row.engine == asked.runner.name() && row.alias == asked.options.alias &&
         row.ShortModel() == asked.model.name && row.header_sha256 == asked.model.header_sha256;
}

/// In what such a row ran otherwise, "isa avx2 instead of native"; empty when it is this visit.
std::vector<std::string> Differences(const Row& row, const Asked& asked) {
  std::vector<std::string> differences;
  const auto differ = [&](const char* what, const std::string& there, const std::string& here) {
    if (there == here) return;
    const auto shown = [](const std::string& text) { return text.empty() ? "unknown" : base::Printable(text, 60); };
    differences.push_back(fmt::format("{} {} instead of {}", what, shown(there), shown(here)));
  };
  const VisitOptions& visit = asked.options.visit;
  const bool knows_threads = row.threads != 0 && visit.threads != 0;
  differ("version", row.engine_version, asked.runner.version());
  if (knows_threads) differ("threads", std::to_string(row.threads), std::to_string(visit.threads));
  differ("depth", std::to_string(row.depth), std::to_string(visit.depth));
  differ("isa", row.isa, asked.settings.isa);
  differ("plan", row.plan, asked.settings.plan);
  differ("cache_k", row.cache_k, CacheName(visit.cache.keys));
  differ("cache_v", row.cache_v, CacheName(visit.cache.values));
  differ("tokens", std::to_string(row.tokens), std::to_string(asked.settings.tokens));
  differ("command", row.command, asked.settings.command);
  return differences;
}

/// Whether the visit was made in an earlier run. Where rows of other settings are there instead, `others` counts them
/// by what differs.
bool IsDone(std::span<const Row> earlier, const Asked& asked, std::map<std::string, std::size_t>& others) {
  std::vector<std::string> found;
  for (const Row& row : earlier) {
    if (!IsOfVisit(row, asked)) continue;
    const std::vector<std::string> differences = Differences(row, asked);
    if (differences.empty()) return true;
    found.push_back(fmt::format("{}", fmt::join(differences, ", ")));
  }
  for (const std::string& difference : found) ++others[difference];
  return false;
}

Row RowOf(const Asked& asked, const Visit& visit) {
  const ModelFacts& model = asked.model;
  const LadderOptions& options = asked.options;
  Row row;
  row.model = model.name;
  row.alias = options.alias;
  row.device = options.device;
  row.weight_bytes_per_token = model.weight_bytes;
  row.generation_tps = 1 / measure::Median(visit.token_s);
  row.experts = model.experts;
  row.spec_gb_s = options.published_gb_s;
  row.engine = asked.runner.name();
  row.engine_version = asked.runner.version();
  row.architecture = model.architecture;
  row.quantization = model.quantization;
  row.header_sha256 = model.header_sha256;
  row.date = measure::UtcNow();
  row.kv_bytes_per_token = model.kv_bytes ? model.kv_bytes(options.visit.depth, options.visit.cache).value_or(0) : 0;
  row.cache_k = CacheName(options.visit.cache.keys);
  row.cache_v = CacheName(options.visit.cache.values);
  row.isa = asked.settings.isa;
  row.plan = asked.settings.plan;
  row.tokens = asked.settings.tokens;
  row.command = asked.settings.command;
  row.depth = options.visit.depth;
  row.threads = visit.threads;
  row.pass = asked.pass;
  row.token_s = visit.token_s;
  row.streamed_gb_s = visit.streamed_gb_s;
  row.left_out = visit.left_out;
  return row;
}

/// Of every model and runner.
using SettingTable = std::vector<std::vector<Settings>>;
Result<SettingTable> AskSettings(std::span<const ModelFacts> models, std::span<const std::unique_ptr<Runner>> runners) {
  SettingTable table;
  for (const ModelFacts& model : models) {
    std::vector<Settings>& of_model = table.emplace_back();
    for (const std::unique_ptr<Runner>& runner : runners) {
      BOLTBEAM_ASSIGN(Settings settings, runner->SettingsFor(model));
      of_model.push_back(std::move(settings));
    }
  }
  return table;
}

}  // namespace

Result<LadderState> RunLadder(std::span<const ModelFacts> models, std::span<const std::unique_ptr<Runner>> runners,
                              std::span<const Row> earlier, const LadderOptions& options, const LadderHooks& hooks) {
  const std::vector<Rung> rungs = RungsOf(models.size(), runners.size(), options.passes);
  BOLTBEAM_ASSIGN(const SettingTable settings, AskSettings(models, runners));
  LadderState state{0, rungs.size()};
  std::map<std::string, std::size_t> others;
  std::vector<bool> is_done;
  for (const Rung& rung : rungs) {
    const Settings& how = settings[rung.model][rung.runner];
    is_done.push_back(IsDone(earlier, {models[rung.model], *runners[rung.runner], how, options, rung.pass}, others));
    state.done += is_done.back() ? 1 : 0;
  }
  for (const auto& [difference, count] : others) {
    if (hooks.note) {
      hooks.note(fmt::format("{} earlier row{} of other settings, visited again: {}", count, count == 1 ? "" : "s",
                             difference));
    }
  }
  const std::uint64_t begin = base::MonotonicNs();
  const std::uint64_t done_before = state.done;
  std::uint64_t left_out = 0;
  Code why = Code::kMeasurementUnstable;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (is_done[i]) continue;
    const Rung& rung = rungs[i];
    const Asked asked{models[rung.model], *runners[rung.runner], settings[rung.model][rung.runner], options, rung.pass};
    if (options.budget_s > 0 && base::SecondsSince(begin) > options.budget_s) continue;
    if (hooks.cancelled && hooks.cancelled()) return Fail(Code::kInterrupted, "ladder", "stopped by the user");
    if (hooks.progress) {
      hooks.progress(fmt::format("{} in {}, pass {}", asked.model.name, asked.runner.name(), rung.pass), state.done,
                     state.total);
    }
    const Result<Visit> visit = runners[rung.runner]->Run(asked.model, options.visit);
    if (!visit) {
      if (CodeGroup(visit.error().code) != Group::kMeasurement) return std::unexpected(visit.error());
      if (hooks.note) hooks.note("left out: " + visit.error().Message());
      why = visit.error().code;
      ++left_out;
      continue;
    }
    BOLTBEAM_TRY(hooks.append(RowOf(asked, *visit)));
    ++state.done;
  }
  if (left_out == 0 || state.done > done_before) return state;
  return Fail(why, "ladder", fmt::format("no row: all of {} visits were left out", left_out),
              "a quieter machine, or more --seconds");
}

}  // namespace boltbeam::lab
