#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"
#include "engine/attention_choice.h"
#include "engine/plan.h"
#include "engine/plan_identity.h"
#include "engine/session.h"
#include "engine/thread_choice.h"
#include "engine/unused_workspace.h"
#include "engine/weights.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/gemv.h"
#include "kernel/families/state.h"
#include "runtime/code.h"

namespace boltbeam::engine {
namespace {

constexpr std::uint64_t kDefaultContext = 4096;
constexpr std::uint64_t kMaxContext = 1ULL << 24;  // an address of a cache must fit 64 bits with room to spare
constexpr std::uint32_t kMaxPromptBatch = 512;

Result<Options> FillIn(const model::Model& model, const chip::Chip& machine, Options options) {
  const std::vector<int> cpus = chip::UsableCpus();
  BOLTBEAM_ASSIGN(options.piece_bytes, PieceBytes(options.geometry, options.piece_bytes));
  if (options.threads == 0) options.threads = ChooseThreads(machine).threads;
  if (options.threads > cpus.size()) {
    return Fail(Code::kThreads, "threads", fmt::format("{} asked for", options.threads),
                fmt::format("1 to {}: the CPUs that this process may use", cpus.size()));
  }
  if (options.context == 0)
    options.context = std::min<std::uint64_t>(kDefaultContext, std::max<std::uint64_t>(1, model.hyper().context));
  if (options.context > kMaxContext) {
    return Fail(Code::kUsage, "context", fmt::format("{}", options.context), fmt::format("1 to {}", kMaxContext));
  }
  options.prompt_batch = std::clamp<std::uint32_t>(options.prompt_batch, 1, kMaxPromptBatch);
  return options;
}

/// Radians per position of each rotated pair. rope_freqs.weight holds divisors.
Result<std::vector<double>> RopeFrequencies(const model::Model& model, double base, double scale) {
  const model::HyperParameters& hyper = model.hyper();
  const std::uint32_t half = hyper.rope_dims / 2;
  std::vector<double> divisors(half, 1.0);
  if (const model::Tensor* factors = model.Find(model::Role::kRopeFrequencies)) {
    std::vector<std::byte> bytes(factors->info->bytes);
    BOLTBEAM_TRY(model.file().Read(factors->info->file_offset, bytes));
    BOLTBEAM_TRY(formats::Dequantize(*factors->format, bytes, divisors));
  }
  std::vector<double> frequencies(half);
  for (std::uint32_t i = 0; i < half; ++i) {
    frequencies[i] = std::pow(base, -2.0 * i / hyper.rope_dims) * scale / divisors[i];
  }
  return frequencies;
}

std::string IdentityOf(const Plan& plan, std::uint32_t threads) {
  std::string description = fmt::format("threads {}\n", threads);
  for (const Step& step : plan.steps) {
    description += fmt::format("{} {} {} {} {}\n", step.info.phase, step.info.layer, step.info.role,
                               step.info.kernel_id, step.piece_items);
  }
  return base::Sha256Hex(description);
}

void SetSizes(Workspace& workspace, const model::Model& model, const Options& options) {
  const model::Tensor& table = *model.Find(model::Role::kEmbedding);
  workspace.max_columns = options.prompt_batch;
  workspace.row_bytes = table.cols() / table.format->elements * table.format->Plain().bytes;
}

class MachineEngine final : public Engine {
 public:
  explicit MachineEngine(const model::Model& model) : model_(model) {}

  Result<void> Load(const chip::Chip& chip, const Options& asked) {
    BOLTBEAM_ASSIGN(options_, FillIn(model_, chip, asked));
    facts_ = kernel::VectorFactsOf(chip);
    machine_.model = &model_;
    machine_.options = options_;
    BOLTBEAM_ASSIGN(machine_.attention, AttentionShapeOf(model_, options_, facts_));
    const model::HyperParameters& hyper = model_.hyper();
    BOLTBEAM_ASSIGN(machine_.rope_frequencies, RopeFrequencies(model_, hyper.rope_base, hyper.rope_frequency_scale));
    if (hyper.sliding_window != 0) {
      BOLTBEAM_ASSIGN(machine_.local_rope_frequencies, RopeFrequencies(model_, hyper.local_rope_base, 1));
    }
    BOLTBEAM_ASSIGN(weights_, Weights::Plan(model_, facts_, options_));
    BOLTBEAM_TRY(CheckMemory());
    std::vector<int> cpus = chip::UsableCpus();
    cpus.resize(options_.threads);
    BOLTBEAM_ASSIGN(pool_, runtime::ThreadPool::Create(cpus));
    machine_.pool = pool_.get();
    kernels_ = std::make_unique<runtime::KernelCache>(codegen::TargetFor(chip), options_.cache_folder);
    BOLTBEAM_TRY(weights_.Load(model_, *kernels_, *pool_, {options_.progress, options_.cancelled}));
    BOLTBEAM_TRY(AllocateWorkspace());
    return BuildPlans();
  }

  const model::Model& model() const override { return model_; }
  const Options& options() const override { return options_; }
  std::span<const StepInfo> steps() const override { return infos_; }
  std::uint32_t phases() const override { return static_cast<std::uint32_t>(machine_.decode.phase_end.size()); }
  const std::map<std::string_view, std::uint32_t>& route_uses() const override { return machine_.decode.route_uses; }
  std::string plan_id() const override { return plan_id_; }
  Result<PlanCost> Cost(const std::vector<std::string>& with, const std::vector<std::string>& without) const override {
    Options options = options_;
    std::erase_if(options.without,
                  [&](const std::string& route) { return std::ranges::find(with, route) != with.end(); });
    options.with.insert(options.with.end(), with.begin(), with.end());
    options.without.insert(options.without.end(), without.begin(), without.end());
    Arena arena;
    std::map<std::string, kernel::Program> programs;
    BOLTBEAM_ASSIGN(const Weights weights, Weights::Plan(model_, facts_, options));
    PlanContext context{model_,           weights, options, facts_, machine_.attention, machine_.workspace,
                        options_.threads, arena,   programs};
    BOLTBEAM_ASSIGN(const engine::Plan plan, BuildPlan(context, true));
    return CostOf(plan, options_.threads);
  }
  const std::map<std::string, kernel::Program>& programs() const override { return programs_; }

  MemoryUse memory() const override { return {weights_.bytes(), KvBytes(), arena_.total(), weights_.HugePageBytes()}; }

  Result<std::unique_ptr<Session>> NewSession() override {
    if (machine_.has_session) {
      return Fail(Code::kUsage, "session", "a second one while the first exists", "one sequence at a time");
    }
    return std::make_unique<MachineSession>(machine_);
  }

 private:
  std::uint64_t KvBytes() const { return machine_.attention.LayerCacheBytes() * model_.hyper().layers; }

  /// Bytes of activations, logits and partial results of the largest pass.
  std::uint64_t WorkspaceBytes() const {
    const model::HyperParameters& hyper = model_.hyper();
    const std::uint64_t columns = AlignUp<std::uint64_t>(options_.prompt_batch, 16);
    const std::uint64_t row = 4 * (std::uint64_t{hyper.hidden} * 5 + std::uint64_t{hyper.ffn} * 4 + hyper.vocab +
                                   4 * std::uint64_t{hyper.heads} * hyper.head_dim);
    const std::uint64_t rope_tables = hyper.sliding_window != 0 ? 2 : 1;
    return columns * (row + PartialBytesPerColumn()) + rope_tables * machine_.attention.context * hyper.rope_dims * 4;
  }
  std::uint64_t PartialBytesPerColumn() const {
    return machine_.attention.heads * (machine_.attention.context / machine_.attention.chunk) *
           machine_.attention.PartialBytes();
  }

  Result<void> CheckMemory() const {
    const std::uint64_t needed = weights_.bytes() + KvBytes() + WorkspaceBytes();
    const std::uint64_t available = chip::AvailableMemoryBytes();
    if (needed <= available) return {};
    return Fail(
        Code::kOutOfMemory, model_.file().path(),
        fmt::format("{:.2f} GB are needed (weights {:.2f}, KV cache of {} positions {:.2f}), {:.2f} GB are free",
                    static_cast<double>(needed) / 1e9, static_cast<double>(weights_.bytes()) / 1e9, options_.context,
                    static_cast<double>(KvBytes()) / 1e9, static_cast<double>(available) / 1e9),
        "a smaller model or context (-c)");
  }

  Result<void> AllocateWorkspace() {
    const model::HyperParameters& hyper = model_.hyper();
    Workspace& w = machine_.workspace;
    SetSizes(w, model_, options_);
    const std::uint64_t columns = AlignUp<std::uint64_t>(w.max_columns, 16);
    const auto allocate = [&](std::byte*& place, std::uint64_t bytes) -> Result<void> {
      BOLTBEAM_ASSIGN(place, arena_.Allocate(bytes));
      return {};
    };
    BOLTBEAM_TRY(allocate(w.rows, columns * w.row_bytes));
    BOLTBEAM_TRY(allocate(w.x, columns * kernel::OutputStride(hyper.hidden)));
    w.streams.assign(options_.threads, w.x);
    if (model_.architecture().post_norms) {
      BOLTBEAM_TRY(allocate(w.branch, columns * kernel::OutputStride(hyper.hidden)));
      for (std::byte*& stream : w.streams) BOLTBEAM_TRY(allocate(stream, kernel::OutputStride(hyper.hidden)));
    }
    BOLTBEAM_TRY(allocate(w.query, columns * machine_.attention.QueryStride()));
    if (machine_.attention.key.IsCoded()) {
      const std::uint64_t head_bytes = machine_.attention.QueryCodes().ColumnBytes(hyper.head_dim);
      BOLTBEAM_TRY(allocate(w.query_codes, columns * hyper.heads * head_bytes));
    }
    BOLTBEAM_TRY(allocate(w.key, columns * machine_.attention.KeyStride()));
    BOLTBEAM_TRY(allocate(w.value, columns * machine_.attention.KeyStride()));
    BOLTBEAM_TRY(allocate(w.gate, columns * kernel::OutputStride(hyper.ffn)));
    BOLTBEAM_TRY(allocate(w.up, columns * kernel::OutputStride(hyper.ffn)));
    BOLTBEAM_TRY(allocate(w.partial, columns * PartialBytesPerColumn()));
    BOLTBEAM_TRY(allocate(w.logits, columns * kernel::OutputStride(hyper.vocab)));
    BOLTBEAM_TRY(allocate(w.argmax_partial, CeilDiv<std::uint64_t>(hyper.vocab, kernel::kArgmaxChunk) * 8));
    BOLTBEAM_TRY(allocate(w.argmax, 64));
    BOLTBEAM_TRY(allocate(w.state, kernel::kStateBytes));
    BOLTBEAM_TRY(allocate(w.rope_table, machine_.attention.context * hyper.rope_dims * 4));
    w.local_rope_table = w.rope_table;
    if (hyper.sliding_window != 0) {
      BOLTBEAM_TRY(allocate(w.local_rope_table, machine_.attention.context * hyper.rope_dims * 4));
    }
    BOLTBEAM_ASSIGN(machine_.cache, runtime::HugeBuffer::Allocate(KvBytes()));
    w.cache = machine_.cache.data();
    return {};
  }

  Result<void> BuildPlans() {
    PlanContext context{model_,           weights_, options_, facts_, machine_.attention, machine_.workspace,
                        options_.threads, arena_,   programs_};
    machine_.prompt_tile = kernel::DefaultGeometry(*model_.head().format, facts_, true).columns;
    BOLTBEAM_ASSIGN(machine_.decode, BuildPlan(context, true));
    SplitLaunches(machine_.decode, options_.faults, options_.threads);
    BOLTBEAM_ASSIGN(machine_.prompt, BuildPlan(context, false));
    std::vector<const kernel::Program*> all;
    for (const auto& [id, program] : programs_) all.push_back(&program);
    BOLTBEAM_ASSIGN(const runtime::KernelFunctions functions, kernels_->Prepare(all, options_.threads));
    for (Plan* plan : {&machine_.decode, &machine_.prompt}) {
      for (Step& step : plan->steps) step.function = functions.at(step.program);
      plan->Flatten(options_.threads, plan == &machine_.decode ? options_.faults : Faults{});
    }
    for (const Step& step : machine_.decode.steps) infos_.push_back(step.info);
    plan_id_ = IdentityOf(machine_.decode, options_.threads);
    return {};
  }

  const model::Model& model_;
  Options options_;
  kernel::VectorFacts facts_;
  Weights weights_;
  std::unique_ptr<runtime::ThreadPool> pool_;
  std::unique_ptr<runtime::KernelCache> kernels_;
  Arena arena_;
  std::map<std::string, kernel::Program> programs_;
  Machine machine_;
  std::vector<StepInfo> infos_;
  std::string plan_id_;
};

}  // namespace

Result<std::string> PlanIdentity(const model::Model& model, const chip::Chip& machine, const Options& asked) {
  BOLTBEAM_ASSIGN(const Options options, FillIn(model, machine, asked));
  const kernel::VectorFacts facts = kernel::VectorFactsOf(machine);
  BOLTBEAM_ASSIGN(const kernel::AttentionShape attention, AttentionShapeOf(model, options, facts));
  BOLTBEAM_ASSIGN(const Weights weights, Weights::Plan(model, facts, options));
  Arena arena;
  std::map<std::string, kernel::Program> programs;
  std::array<std::byte, 64> place{};  // a plan's addresses are no part of its identity
  Workspace workspace = UnusedWorkspace(place.data(), options.threads);
  SetSizes(workspace, model, options);
  PlanContext context{model, weights, options, facts, attention, workspace, options.threads, arena, programs};
  BOLTBEAM_ASSIGN(Plan plan, BuildPlan(context, true));
  SplitLaunches(plan, options.faults, options.threads);
  return IdentityOf(plan, options.threads);
}

Result<std::unique_ptr<Engine>> Engine::Load(const model::Model& model, const chip::Chip& machine,
                                             const Options& options) {
  if (!model.architecture().runnable) {
    return Fail(Code::kModelNotRunnable,
                fmt::format("{}: architecture '{}'", model.file().path(), model.architecture().name),
                model.architecture().not_runnable_reason, "inspect or bound for this file");
  }
  if (model.file().sparse()) {
    return Fail(Code::kSparseModel, model.file().path(),
                "a sparse file: it has the shapes of weights but not the weights",
                "inspect or bound, or synth without --sparse");
  }
  auto engine = std::make_unique<MachineEngine>(model);
  BOLTBEAM_TRY(engine->Load(machine, options));
  return engine;
}

}  // namespace boltbeam::engine
