#include "engine/kernel_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numbers>

#include "base/checked.h"
#include "codegen/codegen.h"
#include "engine/products_part.h"
#include "engine/reference_input.h"
#include "engine/small_kernel_check.h"
#include "engine/weights.h"
#include "kernel/families/elementwise.h"
#include "kernel/families/gemv.h"
#include "kernel/families/rearrange.h"
#include "kernel/families/state.h"
#include "kernel/geometry.h"
#include "model/token_graph.h"
#include "runtime/code.h"
#include "runtime/thread_pool.h"

namespace boltbeam::engine {
namespace {

using kernel::ActivationLayout;
using runtime::KernelFunction;

constexpr std::size_t kMostLanes = 64;  // room for a last group that is not full

/// The worst of what all threads found.
struct Worst {
  double error = 0;
  std::uint64_t row = 0;
  void Add(double found, double expected, double terms, std::uint64_t at) {
    double relative = found == expected ? 0 : std::abs(found - expected) / terms;
    if (std::isnan(relative)) relative = std::numeric_limits<double>::infinity();
    if (relative > error) *this = {relative, at};
  }
  void Merge(const Worst& other) {
    if (other.error > error) *this = other;
  }
};

class Checker {
 public:
  Checker(const Engine& engine, const chip::Chip& machine, const CheckOptions& options)
      : engine_(engine),
        options_(options),
        facts_(kernel::VectorFactsOf(machine)),
        is_exact_(machine.Has("fma") || machine.Has("asimd")),
        cache_(codegen::TargetFor(machine), engine.options().cache_folder) {}

  Result<std::vector<KernelCheck>> Run() {
    std::vector<int> cpus = chip::UsableCpus();
    cpus.resize(std::min<std::size_t>(cpus.size(), engine_.options().threads));
    BOLTBEAM_ASSIGN(pool_, runtime::ThreadPool::Create(cpus));
    BOLTBEAM_ASSIGN(weights_, Weights::Plan(engine_.model(), facts_, engine_.options()));
    std::vector<model::Operation> operations;
    for (const model::Operation& operation : model::BuildTokenGraph(engine_.model(), {})) {
      const bool is_table = operation.kind == model::OpKind::kMatmul || operation.kind == model::OpKind::kEmbed;
      if (!is_table || (!options_.part.empty() && operation.role != options_.part)) continue;
      operations.push_back(operation);
      total_ += operation.weights->rows();
    }
    std::vector<KernelCheck> checks;
    for (const model::Operation& operation : operations) {
      const bool is_row = operation.kind == model::OpKind::kEmbed;
      BOLTBEAM_ASSIGN(const std::vector<KernelCheck> found, is_row ? CheckRows(operation) : CheckProducts(operation));
      checks.insert(checks.end(), found.begin(), found.end());
    }
    BOLTBEAM_TRY(CheckOthers(checks));
    if (checks.empty()) return Fail(Code::kUsage, "--part", options_.part, "a part that `kernel list` shows");
    return checks;
  }

 private:
  /// The kernels without a table of weights: bit for bit what the interpreter computes, where the machine fuses
  /// multiplications with additions.
  Result<void> CheckOthers(std::vector<KernelCheck>& checks) {
    if (!is_exact_) return {};
    for (const StepInfo& step : engine_.steps()) {
      const kernel::Program& program = engine_.programs().at(step.kernel_id);
      const bool is_known = std::ranges::find(checks, step.kernel_id, &KernelCheck::kernel_id) != checks.end();
      const bool has_table = program.buffers.front().name == "weights" || step.role == "embed";
      if (is_known || has_table || (!options_.part.empty() && step.role != options_.part)) continue;
      KernelCheck check;
      check.part = step.role;
      check.format = step.format;
      check.kernel = program.name;
      check.kernel_id = step.kernel_id;
      BOLTBEAM_ASSIGN(const KernelFunction function, cache_.Get(program));
      BOLTBEAM_ASSIGN(check.error, DifferingShare(program, function));
      check.ok = check.error == 0;
      checks.push_back(std::move(check));
    }
    return {};
  }

  /// A program that was built again is the plan's own: the same identity, or this check would check something else.
  Result<KernelFunction> OfPlan(const kernel::Program& program, KernelCheck& check) {
    check.kernel = program.name;
    check.kernel_id = kernel::Identity(program);
    if (!engine_.programs().contains(check.kernel_id)) {
      return Fail(Code::kInternal, check.tensor, "the plan runs another kernel than " + program.name,
                  "the kernel of the default plan");
    }
    return cache_.Get(program);
  }

  static KernelCheck Describe(const model::Operation& operation) {
    KernelCheck check;
    check.part = operation.role;
    check.tensor = operation.weights->info->name;
    check.format = operation.weights->format->name;
    return check;
  }

  /// Calls body(thread, first, count) for runs of `step` rows, on all threads; every run's rows are read from the file
  /// first, with room for a whole run.
  using Body = std::function<Result<void>(std::uint64_t first, std::uint64_t count, std::span<std::byte> rows,
                                          std::span<Worst> worst)>;
  Result<std::vector<Worst>> OverRows(const model::Tensor& tensor, std::uint64_t step, std::size_t results,
                                      const Body& body) {
    const std::uint64_t row_bytes = tensor.info->bytes / tensor.rows();
    const auto runs = static_cast<std::int64_t>(CeilDiv<std::uint64_t>(tensor.rows(), step));
    std::mutex mutex;
    std::vector<Worst> worst(results);
    Result<void> result;
    std::atomic<std::uint64_t> done{0};
    pool_->Run([&](std::uint32_t thread) {
      std::vector<std::byte> rows(step * row_bytes);
      std::vector<Worst> own(results);
      Result<void> own_result;
      const runtime::Range range = runtime::Share(runs, thread, pool_->size());
      for (std::int64_t run = range.begin; run < range.end && own_result; ++run) {
        const std::uint64_t first = static_cast<std::uint64_t>(run) * step;
        const std::uint64_t count = std::min(step, tensor.rows() - first);
        std::ranges::fill(rows, std::byte{0});
        own_result = engine_.model().file().Read(tensor.info->file_offset + first * row_bytes,
                                                 std::span(rows).first(count * row_bytes));
        if (own_result) own_result = body(first, count, rows, own);
        done += count;
        if (thread == 0 && options_.progress) options_.progress(done_ + done, total_);
        if (options_.cancelled && options_.cancelled())
          own_result = Fail(Code::kInterrupted, "kernel check", "stopped");
      }
      const std::scoped_lock lock(mutex);
      for (std::size_t i = 0; i < results; ++i) worst[i].Merge(own[i]);
      if (!own_result) result = own_result;
    });
    done_ += done;
    if (!result) return std::unexpected(result.error());
    return worst;
  }

  static KernelCheck Finished(KernelCheck check, const Worst& worst) {
    check.error = worst.error;
    check.worst_row = worst.row;
    check.ok = worst.error <= kKernelErrorLimit;
    return check;
  }

  /// One way in which the plans multiply a table: by one column while decoding, by several while reading a prompt.
  struct Product {
    KernelCheck check;
    KernelFunction function = nullptr;
    std::uint32_t columns = 1;
    std::vector<std::byte> input;  // quantised, column after column
    std::vector<double> x;         // what it stands for
    bool has_best = false;
  };

  Result<Product> MakeProduct(const model::Operation& operation, const kernel::WeightLayout& layout,
                              const kernel::GemvGeometry& decode, bool is_prompt) {
    Product product;
    product.check = Describe(operation);
    const kernel::GemvGeometry geometry =
        is_prompt ? kernel::PromptGeometry(*operation.weights->format, facts_, decode) : decode;
    product.columns = geometry.columns;
    const kernel::GemvShape shape = ProductShape(engine_.model(), operation, weights_, engine_.options(), !is_prompt);
    product.has_best = shape.best;
    BOLTBEAM_ASSIGN(const kernel::Program program, kernel::BuildGemv(layout, geometry, shape));
    BOLTBEAM_ASSIGN(product.function, OfPlan(program, product.check));
    const ActivationLayout activations = kernel::ActivationsFor(layout, geometry.dot);
    BOLTBEAM_ASSIGN(product.input, Activations(activations, shape.cols, geometry.columns));
    product.x = DecodeActivations(activations, product.input);
    return product;
  }

  /// Runs the product on one row group, as the first of a table of its own, and compares `count` rows with `weights`.
  static void CompareGroup(Product& product, const model::Operation& operation, std::span<std::byte> group,
                           std::span<const double> weights, std::uint64_t first, std::uint64_t count, Worst& worst) {
    const std::uint64_t stride = kernel::OutputStride(operation.rows) / sizeof(float);
    std::vector<float> output(product.columns * stride + kMostLanes), bias(kMostLanes);
    std::vector<std::int32_t> state(kernel::kStateBytes / sizeof(std::int32_t));
    state[kernel::kStateColumns / 4] = static_cast<std::int32_t>(product.columns);
    state[kernel::kStateTiles / 4] = 1;
    state[kernel::kStateKeepLogits / 4] = 1;
    std::vector<float> best(2);
    std::vector<void*> buffers{group.data(), product.input.data(), output.data()};
    if (operation.bias != nullptr) buffers.push_back(bias.data());
    if (product.has_best) buffers.push_back(best.data());
    buffers.push_back(state.data());
    product.function(buffers.data(), 0, 1);
    for (std::uint64_t c = 0; c < product.columns; ++c) {
      for (std::uint64_t row = 0; row < count; ++row) {
        const Sum sum = SumOf(weights.subspan(row * operation.cols, operation.cols),
                              std::span(product.x).subspan(c * operation.cols, operation.cols));
        worst.Add(output[c * stride + row], sum.value, sum.terms, first + row);
      }
    }
  }

  /// The blocks that kernels read, where they are not the file's.
  static Result<void> MakePlain(const formats::Format& format, std::span<const std::byte> rows,
                                std::vector<std::byte>& plain) {
    if (!format.coding) return {};
    plain.resize(rows.size() / format.bytes * format.plain->bytes);
    return formats::ToPlain(format, rows, plain);
  }

  /// A row group in the order in which kernels read it, and what its weights are.
  static Result<void> Rearrange(const Table& table, KernelFunction move, std::span<std::byte> rows, std::uint64_t count,
                                std::byte* group, std::vector<double>& weights) {
    const model::Tensor& tensor = *table.tensor;
    std::vector<std::byte> plain;
    BOLTBEAM_TRY(MakePlain(*tensor.format, rows, plain));
    void* const moved[] = {plain.empty() ? rows.data() : plain.data(), group};
    move(moved, 0, 1);
    weights.resize(count * tensor.cols());
    return formats::Dequantize(*tensor.format, rows.first(count * (tensor.info->bytes / tensor.rows())), weights);
  }

  Result<std::vector<KernelCheck>> CheckProducts(const model::Operation& operation) {
    const Table& table = weights_.table(*operation.weights);
    const RowSpace& space = weights_.space(*operation.weights);
    const bool is_paired = space.kind == RowSpace::Kind::kPairs;
    std::vector<Product> products;
    for (const bool is_prompt : {false, true}) {
      if (is_paired && !is_prompt) continue;
      BOLTBEAM_ASSIGN(Product product, MakeProduct(operation, table.layout, table.geometry, is_prompt));
      products.push_back(std::move(product));
    }
    BOLTBEAM_ASSIGN(const kernel::Program rearrange, kernel::BuildRearrange(table.layout, operation.cols));
    BOLTBEAM_ASSIGN(const KernelFunction move, cache_.Get(rearrange));
    const Body body = [&](std::uint64_t first, std::uint64_t count, std::span<std::byte> rows,
                          std::span<Worst> worst) -> Result<void> {
      std::vector<std::byte> group(table.GroupBytes());
      std::vector<double> weights;
      BOLTBEAM_TRY(Rearrange(table, move, rows, count, group.data(), weights));
      for (std::size_t i = 0; i < products.size(); ++i)
        CompareGroup(products[i], operation, group, weights, first, count, worst[i]);
      return {};
    };
    BOLTBEAM_ASSIGN(const std::vector<Worst> worst, OverRows(*table.tensor, table.layout.lanes, products.size(), body));
    std::vector<KernelCheck> checks;
    for (std::size_t i = 0; i < products.size(); ++i) checks.push_back(Finished(products[i].check, worst[i]));
    if (is_paired && space.tensors[0] == operation.weights) {
      BOLTBEAM_ASSIGN(KernelCheck pair, CheckPair(operation, weights_.table(*space.tensors[1]), move));
      checks.push_back(std::move(pair));
    }
    return checks;
  }

  /// The kernel that multiplies the groups of two tables and stores their gated product.
  Result<KernelCheck> CheckPair(const model::Operation& operation, const Table& up, KernelFunction move) {
    const Table& gate = weights_.table(*operation.weights);
    BOLTBEAM_ASSIGN(Product product, MakeProduct(operation, gate.layout, gate.geometry, false));
    product.check.tensor += " and " + up.tensor->info->name;
    const std::uint64_t row_bytes = up.tensor->info->bytes / up.tensor->rows();
    const Body body = [&](std::uint64_t first, std::uint64_t count, std::span<std::byte> rows,
                          std::span<Worst> worst) -> Result<void> {
      std::vector<std::byte> groups(2 * gate.GroupBytes()), others(rows.size());
      std::vector<double> gates, ups;
      BOLTBEAM_TRY(engine_.model().file().Read(up.tensor->info->file_offset + first * row_bytes,
                                               std::span(others).first(count * row_bytes)));
      BOLTBEAM_TRY(Rearrange(gate, move, rows, count, groups.data(), gates));
      BOLTBEAM_TRY(Rearrange(up, move, others, count, groups.data() + gate.GroupBytes(), ups));
      std::vector<float> output(gate.layout.lanes);
      void* const buffers[] = {groups.data(), product.input.data(), output.data()};
      product.function(buffers, 0, 1);
      for (std::uint64_t row = 0; row < count; ++row) {
        const std::uint64_t at = row * operation.cols;
        const Sum g = SumOf(std::span(gates).subspan(at, operation.cols), product.x);
        const Sum u = SumOf(std::span(ups).subspan(at, operation.cols), product.x);
        // How far each sum's error carries: no activation is steeper than kSteepest.
        constexpr double kSteepest = 1.13;
        const double active = Activated(g.value);
        worst[0].Add(output[row], active * u.value,
                     kSteepest * g.terms * std::abs(u.value) + std::abs(active) * u.terms, first + row);
      }
      return {};
    };
    BOLTBEAM_ASSIGN(const std::vector<Worst> worst, OverRows(*gate.tensor, gate.layout.lanes, 1, body));
    return Finished(std::move(product.check), worst[0]);
  }

  struct Sum {
    double value = 0, terms = 0;
  };
  static Sum SumOf(std::span<const double> weights, std::span<const double> x) {
    Sum sum;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      sum.value += weights[k] * x[k];
      sum.terms += std::abs(weights[k] * x[k]);
    }
    return sum;
  }

  double Activated(double x) const {
    if (GateFunctionOf(engine_.model()) == kernel::GateFunction::kSilu) return x / (1 + std::exp(-x));
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }

  Result<std::vector<KernelCheck>> CheckRows(const model::Operation& operation) {
    const model::Tensor& tensor = *operation.weights;
    KernelCheck check = Describe(operation);
    const std::uint64_t plain_bytes = tensor.cols() / tensor.format->elements * tensor.format->Plain().bytes;
    const kernel::VectorShape shape{tensor.cols(), plain_bytes, kernel::OutputStride(tensor.cols()), facts_.lanes};
    BOLTBEAM_ASSIGN(const kernel::Program program,
                    kernel::BuildDequantizeRow(*tensor.format, shape, static_cast<float>(operation.scale)));
    BOLTBEAM_ASSIGN(const KernelFunction read, OfPlan(program, check));
    const Body body = [&](std::uint64_t first, std::uint64_t, std::span<std::byte> rows,
                          std::span<Worst> worst) -> Result<void> {
      std::vector<float> output(kernel::OutputStride(tensor.cols()) / sizeof(float));
      std::vector<std::byte> plain;
      BOLTBEAM_TRY(MakePlain(*tensor.format, rows, plain));
      void* const buffers[] = {plain.empty() ? rows.data() : plain.data(), output.data()};
      read(buffers, 0, 1);
      std::vector<double> weights(tensor.cols());
      BOLTBEAM_TRY(formats::Dequantize(*tensor.format, rows, weights));
      const double largest = std::abs(*std::ranges::max_element(weights, {}, [](double w) { return std::abs(w); }));
      for (std::size_t k = 0; k < weights.size(); ++k)
        worst[0].Add(output[k], operation.scale * weights[k], operation.scale * largest, first);
      return {};
    };
    BOLTBEAM_ASSIGN(const std::vector<Worst> worst, OverRows(tensor, 1, 1, body));
    return std::vector{Finished(std::move(check), worst[0])};
  }

  Result<std::vector<std::byte>> Activations(const ActivationLayout& layout, std::uint64_t cols,
                                             std::uint32_t columns) {
    std::vector<float> values = RandomActivations(cols * columns);
    std::vector<std::byte> bytes(layout.ColumnBytes(cols) * columns);
    if (layout.is_float) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
      return bytes;
    }
    BOLTBEAM_ASSIGN(const KernelFunction quantize,
                    cache_.Get(kernel::BuildQuantize({cols, cols * sizeof(float), 0, facts_.lanes}, layout)));
    void* const buffers[] = {values.data(), bytes.data()};
    quantize(buffers, 0, columns);
    return bytes;
  }

  const Engine& engine_;
  const CheckOptions& options_;
  const kernel::VectorFacts facts_;
  const bool is_exact_;
  runtime::KernelCache cache_;
  Weights weights_;  // planned, not loaded
  std::unique_ptr<runtime::ThreadPool> pool_;
  std::uint64_t done_ = 0, total_ = 0;  // rows
};

}  // namespace

Result<std::vector<KernelCheck>> CheckKernels(const Engine& engine, const chip::Chip& machine,
                                              const CheckOptions& options) {
  return Checker(engine, machine, options).Run();
}

}  // namespace boltbeam::engine
