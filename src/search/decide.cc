#include "search/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/ticks.h"
#include "base/version.h"
#include "chip/instruction_sets.h"
#include "codegen/codegen.h"
#include "engine/attention_choice.h"
#include "kernel/knobs.h"
#include "kernel/space.h"
#include "measure/environment.h"
#include "search/plan_use.h"

namespace boltbeam::search {
namespace {

constexpr std::uint64_t kGateWeights = std::uint64_t{4} << 20;    // of a table, for every candidate
constexpr std::uint64_t kWholeWeights = std::uint64_t{16} << 20;  // of a table, for the one that was chosen

class Decider {
 public:
  Decider(const model::Model& model, const chip::Chip& chip, TimingBench& bench, runtime::KernelCache& kernels,
          TrialMemory& memory, const DecideRequest& request, const DecideHooks& hooks)
      : model_(model),
        chip_(chip),
        facts_(kernel::VectorFactsOf(chip)),
        bench_(bench),
        kernels_(kernels),
        memory_(memory),
        request_(request),
        hooks_(hooks) {}

  Result<Decision> Run() {
    begin_ns_ = base::MonotonicNs();
    BOLTBEAM_ASSIGN(const std::vector<Group> groups, GroupsOf(model_, facts_, request_.start));
    for (const Group& group : groups) {
      GroupSearch& search = decision_.groups.emplace_back();
      search.group = group;
      search.found.part = group.part;
      const bool is_late = request_.budget_s > 0 && base::SecondsSince(begin_ns_) > request_.budget_s;
      if (decision_.is_interrupted || is_late) {
        search.skipped = is_late ? "no budget left" : "interrupted";
      } else {
        status_ = {decision_.groups.size(), groups.size(), group.part.table, "", "", base::SecondsSince(begin_ns_)};
        BOLTBEAM_TRY(SearchGroup(search));
      }
      BOLTBEAM_TRY(Choose(search));
    }
    decision_.seconds = base::SecondsSince(begin_ns_);
    return std::move(decision_);
  }

 private:
  Result<void> SearchGroup(GroupSearch& search) {
    const Group& group = search.group;
    const Proposal proposal = ProposeProduct(group.part, chip_, request_.is_refuted);
    search.free_product = proposal.free_product;
    search.rejected = proposal.rejected;
    BOLTBEAM_ASSIGN(Foresight foresight, PredictProduct(proposal, chip_, request_.threads, request_.coefficients));
    for (const Rejected& one : foresight.rejected) Reject(search.rejected, one.reason, one.evidence, one.points);
    std::vector<kernel::GemvGeometry> legal = proposal.points;
    KeepFitting(group, legal, foresight, search);
    BOLTBEAM_ASSIGN(const GateRows rows, RowsOf(group, kGateWeights));
    BOLTBEAM_ASSIGN(const kernel::GemvGeometry start, engine::GeometryFor(request_.start, *group.tensor, facts_));
    const PartInput input{group.part, legal, foresight, start, rows, chip_, request_.coefficients};
    PartHooks hooks;
    hooks.cancelled = [this] { return (hooks_.cancelled && hooks_.cancelled()); };
    hooks.progress = [this](const std::string& trying, const std::string& best) {
      if (!hooks_.progress) return;
      status_.trying = trying;
      status_.best = best;
      status_.seconds = base::SecondsSince(begin_ns_);
      hooks_.progress(status_);
    };
    if (hooks_.progress) hooks_.progress(status_);
    auto found = SearchPart(input, facts_, bench_, kernels_, memory_, request_.rules, hooks);
    if (!found && found.error().code == Code::kInterrupted) {
      decision_.is_interrupted = true;
      search.skipped = "interrupted";
      return {};
    }
    if (!found) return std::unexpected(std::move(found).error());
    search.found = std::move(*found);
    return FitsWhole(search);
  }

  /// Leaves the points that keep the plan's steps whole: whether they do hangs on few of the knobs.
  void KeepFitting(const Group& group, std::vector<kernel::GemvGeometry>& legal, Foresight& foresight,
                   GroupSearch& search) const {
    if (group.tables.size() < 2 && !IsOfAttention(group)) return;
    std::map<std::pair<std::uint32_t, kernel::ScaleForm>, std::string> faults;  // empty: it fits
    const auto fault_of = [&](const kernel::GemvGeometry& point) -> const std::string& {
      const auto [known, is_new] = faults.try_emplace({point.rows(), point.scales});
      if (is_new) {
        const auto fit = FitsGroup(model_, facts_, request_.start, group, point);
        if (!fit) known->second = fit.error().found;
      }
      return known->second;
    };
    std::erase_if(legal, [&](const kernel::GemvGeometry& point) {
      const std::string& fault = fault_of(point);
      if (!fault.empty()) Reject(search.rejected, "step", fault);
      return !fault.empty();
    });
    std::erase_if(foresight.survivors,
                  [&](const Prediction& prediction) { return !fault_of(prediction.geometry).empty(); });
  }

  static bool IsOfAttention(const Group& group) { return group.part.role.find("attn") != std::string::npos; }

  Result<GateRows> RowsOf(const Group& group, std::uint64_t most_weights) const {
    BOLTBEAM_ASSIGN(GateRows rows, ReadGateRows(model_, *group.tensor, most_weights));
    rows.table_rows = group.part.rows;
    return rows;
  }

  /// The chosen one on whole tables, or as much of them as memory has room for, before anything is built on it.
  Result<void> FitsWhole(GroupSearch& search) {
    if (search.found.best == search.found.start) return {};
    BOLTBEAM_ASSIGN(const GateRows rows, RowsOf(search.group, kWholeWeights));
    BOLTBEAM_ASSIGN(const GateFinding finding, ProductGate(rows, facts_, kernels_).Check(search.found.best));
    if (finding.ok) return {};
    search.skipped =
        fmt::format("its best is wrong by {:.1e} in row {} of the whole table", finding.error, finding.worst_row);
    search.found.best = search.found.start;
    search.found.gain = {1, 1, 1};
    return {};
  }

  Result<void> Choose(const GroupSearch& search) {
    for (const std::string& table : search.group.tables) {
      if (search.found.IsGain()) {
        decision_.choices.push_back({table, kernel::GeometryText(search.found.best)});
        continue;
      }
      const auto start = std::ranges::find(request_.start, table, &engine::GeometryChoice::table);
      if (start != request_.start.end()) decision_.choices.push_back(*start);
    }
    return {};
  }

  const model::Model& model_;
  const chip::Chip& chip_;
  const kernel::VectorFacts facts_;
  TimingBench& bench_;
  runtime::KernelCache& kernels_;
  TrialMemory& memory_;
  const DecideRequest& request_;
  const DecideHooks& hooks_;
  std::uint64_t begin_ns_ = 0;
  DecideStatus status_;
  Decision decision_;
};

/// One tensor of each table that products read.
std::map<std::string, const model::Tensor*> TablesOf(const model::Model& model) {
  std::map<std::string, const model::Tensor*> tables;
  for (const model::Tensor& tensor : model.tensors()) {
    const std::string name = engine::TableName(tensor);
    for (const Part& part : PartsOf(model)) {
      if (part.table == name) tables.emplace(name, &tensor);
    }
  }
  return tables;
}

/// Every legal point, those with the most work in instructions first, and of these the ones that fetch farthest ahead.
Result<std::vector<kernel::GemvGeometry>> SlowestFirst(const Proposal& proposal, const chip::Chip& chip,
                                                       std::uint32_t threads, const Coefficients& coefficients) {
  // With a memory that slow nothing is turned away for being slower than it.
  const chip::Chip slow = AtReadRate(chip, 1e-3);
  BOLTBEAM_ASSIGN(Foresight foresight, PredictProduct(proposal, slow, threads, coefficients));
  std::ranges::stable_sort(foresight.survivors, [](const Prediction& a, const Prediction& b) {
    return std::pair(a.compute_ns, a.geometry.prefetch_bytes) > std::pair(b.compute_ns, b.geometry.prefetch_bytes);
  });
  std::vector<kernel::GemvGeometry> points;
  for (const Prediction& prediction : foresight.survivors) points.push_back(prediction.geometry);
  return points;
}

chip::Fact Probed(std::string name, double value, std::string unit, chip::Use use) {
  chip::Fact fact;
  fact.name = std::move(name);
  fact.value = value;
  fact.unit = std::move(unit);
  fact.provenance = chip::Provenance::kMeasured;
  fact.method = "probed by a search";
  fact.date = measure::UtcNow().substr(0, 10);
  fact.use = use;
  return fact;
}

}  // namespace

bool Decision::HasGain() const {
  return std::ranges::any_of(groups, [](const GroupSearch& search) { return search.found.IsGain(); });
}

std::uint64_t Decision::Timed() const {
  std::uint64_t timed = 0;
  for (const GroupSearch& search : groups) timed += search.found.timed;
  return timed;
}

std::uint64_t Decision::Remembered() const {
  std::uint64_t remembered = 0;
  for (const GroupSearch& search : groups) remembered += search.found.remembered;
  return remembered;
}

double Decision::CompileSeconds() const {
  double sum = 0;
  for (const GroupSearch& search : groups) sum += search.found.compile_seconds;
  return sum;
}

Result<Decision> DecidePlan(const model::Model& model, const chip::Chip& chip, TimingBench& bench,
                            runtime::KernelCache& kernels, TrialMemory& memory, const DecideRequest& request,
                            const DecideHooks& hooks) {
  return Decider(model, chip, bench, kernels, memory, request, hooks).Run();
}

Result<LargestTable> LargestOf(const model::Model& model, const kernel::VectorFacts& facts) {
  BOLTBEAM_ASSIGN(const std::vector<Group> groups, GroupsOf(model, facts, {}));
  LargestTable largest;
  for (const Group& group : groups) {
    largest.rows = std::max(largest.rows, group.part.rows);
    largest.cols = std::max(largest.cols, group.part.cols);
  }
  return largest;
}

Result<chip::Chip> WithRates(const chip::Chip& chip, runtime::KernelCache& kernels, TimingBench& bench) {
  chip::Chip known = chip;
  if (known.Bandwidth() == nullptr) known = AtReadRate(std::move(known), bench.ColdReadRate());
  if (!known.Get("vector_instructions_s")) {
    BOLTBEAM_ASSIGN(const double rate, bench.InstructionRate(chip, kernels));
    known.facts.push_back(Probed("vector_instructions_s", rate, "/s", chip::Use::kNone));
    // Probed on the bench's threads, which need not be all that the machine has.
    const std::string on_threads = fmt::format("vector_instructions_s.threads_{}", bench.threads());
    known.facts.push_back(Probed(on_threads, rate, "/s", chip::Use::kNone));
  }
  return known;
}

chip::Chip AtReadRate(chip::Chip chip, double gb_s) {
  std::erase_if(chip.facts, [](const chip::Fact& fact) { return fact.name.starts_with("read_bandwidth_gb_s"); });
  chip.facts.push_back(Probed("read_bandwidth_gb_s", gb_s, "GB/s", chip::Use::kBandwidth));
  return chip;
}

Result<std::vector<engine::GeometryChoice>> WorstChoices(const model::Model& model, const chip::Chip& chip,
                                                         std::uint32_t threads, const Coefficients& coefficients) {
  const kernel::VectorFacts facts = kernel::VectorFactsOf(chip);
  BOLTBEAM_ASSIGN(const std::vector<Group> groups, GroupsOf(model, facts, {}));
  std::vector<engine::GeometryChoice> choices;
  for (const Group& group : groups) {
    const Proposal proposal = ProposeProduct(group.part, chip);
    BOLTBEAM_ASSIGN(const std::vector<kernel::GemvGeometry> points,
                    SlowestFirst(proposal, chip, threads, coefficients));
    const auto worst = std::ranges::find_if(points, [&](const kernel::GemvGeometry& point) {
      return FitsGroup(model, facts, choices, group, point).has_value();
    });
    if (worst == points.end()) continue;
    for (const std::string& table : group.tables) choices.push_back({table, kernel::GeometryText(*worst)});
  }
  return choices;
}

Result<std::vector<engine::GeometryChoice>> ChoicesOfSet(const model::Model& model, const chip::Chip& chip,
                                                         std::string_view set) {
  chip::Chip held = chip;
  BOLTBEAM_TRY(chip::HoldTo(held, set));
  const kernel::VectorFacts facts = kernel::VectorFactsOf(held);
  std::vector<engine::GeometryChoice> choices;
  for (const auto& [name, tensor] : TablesOf(model)) {
    choices.push_back({name, kernel::GeometryText(kernel::DefaultGeometry(*tensor->format, tensor->cols(), facts))});
  }
  return choices;
}

Result<PlanFile> PlanOf(const model::Model& model, const chip::Chip& chip, const codegen::Target& target,
                        const std::vector<engine::GeometryChoice>& choices, std::uint32_t threads) {
  PlanFile plan;
  plan.chip = chip.id;
  plan.chip_name = chip.name;
  plan.made_for = std::filesystem::path(model.file().path()).filename().string();
  plan.threads = threads;
  plan.date = measure::UtcNow();
  plan.boltbeam_version = base::kVersion;
  plan.llvm = codegen::CompilerVersion();
  plan.features = target.features;
  const kernel::VectorFacts facts = kernel::VectorFactsOf(chip);
  for (const auto& [name, tensor] : TablesOf(model)) {
    BOLTBEAM_ASSIGN(const kernel::GemvGeometry geometry, engine::GeometryFor(choices, *tensor, facts));
    PlanTable table{name, kernel::GeometryText(geometry), ""};
    BOLTBEAM_ASSIGN(table.checked, CheckKey(*tensor->format, tensor->rows(), tensor->cols(), geometry, target));
    plan.tables.push_back(std::move(table));
  }
  const auto is_attention = [](const engine::GeometryChoice& choice) {
    return choice.table == engine::kAttentionTable;
  };
  if (const auto last = std::ranges::find_if(choices.rbegin(), choices.rend(), is_attention); last != choices.rend()) {
    plan.tables.push_back({last->table, last->knobs, ""});
  }
  return plan;
}

}  // namespace boltbeam::search
