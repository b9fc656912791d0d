#include "lab/ladder.h"

#include <fmt/format.h>

#include <algorithm>

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

/// Whether a row is this visit: the same file, program, settings and pass.
bool IsVisit(const Row& row, const ModelFacts& model, const Runner& runner, const LadderOptions& options,
             std::uint64_t pass) {
  return row.pass == pass && row.engine == runner.name() && row.alias == options.alias &&
         row.engine_version == runner.version() &&
         (row.threads == 0 || options.visit.threads == 0 || row.threads == options.visit.threads) &&
         row.depth == options.visit.depth && row.ShortModel() == model.name && row.header_sha256 == model.header_sha256;
}

Row RowOf(const ModelFacts& model, const Runner& runner, const LadderOptions& options, const Visit& visit,
          std::uint64_t pass) {
  Row row;
  row.model = model.name;
  row.alias = options.alias;
  row.device = options.device;
  row.weight_bytes_per_token = model.weight_bytes;
  row.generation_tps = 1 / measure::Median(visit.token_s);
  row.experts = model.experts;
  row.spec_gb_s = options.published_gb_s;
  row.engine = runner.name();
  row.engine_version = runner.version();
  row.architecture = model.architecture;
  row.quantization = model.quantization;
  row.header_sha256 = model.header_sha256;
  row.date = measure::UtcNow();
  row.kv_bytes_per_token = model.kv_bytes ? model.kv_bytes(options.visit.depth).value_or(0) : 0;
  row.depth = options.visit.depth;
  row.threads = visit.threads;
  row.pass = pass;
  row.token_s = visit.token_s;
  row.streamed_gb_s = visit.streamed_gb_s;
  row.left_out = visit.left_out;
  return row;
}

}  // namespace

Result<LadderState> RunLadder(std::span<const ModelFacts> models, std::span<const std::unique_ptr<Runner>> runners,
                              std::span<const Row> earlier, const LadderOptions& options, const LadderHooks& hooks) {
  const std::vector<Rung> rungs = RungsOf(models.size(), runners.size(), options.passes);
  LadderState state{0, rungs.size()};
  const std::uint64_t begin = base::MonotonicNs();
  for (const Rung& rung : rungs) {
    const ModelFacts& model = models[rung.model];
    Runner& runner = *runners[rung.runner];
    const bool is_there =
        std::ranges::any_of(earlier, [&](const Row& row) { return IsVisit(row, model, runner, options, rung.pass); });
    if (is_there) {
      ++state.done;
      continue;
    }
    if (options.budget_s > 0 && base::SecondsSince(begin) > options.budget_s) continue;
    if (hooks.cancelled && hooks.cancelled()) return Fail(Code::kInterrupted, "ladder", "stopped by the user");
    if (hooks.progress) {
      hooks.progress(fmt::format("{} in {}, pass {}", model.name, runner.name(), rung.pass), state.done, state.total);
    }
    const Result<Visit> visit = runner.Run(model, options.visit);
    if (!visit) {
      // A disturbed visit is no row; the next run of the ladder tries it again.
      if (CodeGroup(visit.error().code) != Group::kMeasurement) return std::unexpected(visit.error());
      if (hooks.note) hooks.note("left out: " + visit.error().Message());
      continue;
    }
    BOLTBEAM_TRY(hooks.append(RowOf(model, runner, options, *visit, rung.pass)));
    ++state.done;
  }
  return state;
}

}  // namespace boltbeam::lab
