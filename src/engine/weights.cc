#include "engine/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "kernel/families/rearrange.h"
#include "model/token_graph.h"

namespace boltbeam::engine {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;  // of the file, read at once by a thread
constexpr std::uint64_t kStreamAlignment = 4096;
constexpr std::uint64_t kShareAlignment = 64;

bool IsVector(const model::Tensor& tensor) { return tensor.info->dimensions == 1; }

/// The embedding is gathered row by row from the file; it is a table only when it serves as the head.
bool IsTable(const model::Model& model, const model::Tensor& tensor) {
  if (IsVector(tensor)) return false;
  return tensor.role != model::Role::kEmbedding || &model.head() == &tensor;
}

std::string Key(const model::Tensor& tensor, const kernel::WeightLayout& layout) {
  return fmt::format("{}.{}.{}.{}", tensor.format->name, tensor.cols(), layout.lanes, static_cast<int>(layout.scales));
}

}  // namespace

Result<Weights> Weights::Plan(const model::Model& model, const kernel::VectorFacts& facts, const Options& options) {
  Weights weights;
  std::vector<const model::Tensor*> all;
  for (const model::Tensor& tensor : model.tensors()) {
    if (!IsTable(model, tensor)) continue;
    all.push_back(&tensor);
    BOLTBEAM_ASSIGN(const kernel::GemvGeometry geometry, GeometryFor(options.geometry, tensor, facts));
    auto layout = kernel::LayoutFor(*tensor.format, geometry);
    if (!layout) {
      return Fail(Code::kModelUnsupportedType, fmt::format("{}: tensor '{}'", model.file().path(), tensor.info->name),
                  fmt::format("{}: {}", tensor.format->name, layout.error().found),
                  "a format that kernels are generated for");
    }
    Table table{&tensor, geometry, *layout, layout->TableBytes(tensor.rows(), tensor.cols()), 0, {}, {}};
    weights.bytes_ += table.bytes;
    const std::string key = Key(tensor, table.layout);
    if (!weights.programs_.contains(key)) {
      BOLTBEAM_ASSIGN(kernel::Program program, kernel::BuildRearrange(table.layout, tensor.cols()));
      weights.programs_.emplace(key, std::move(program));
    }
    weights.tables_.emplace(&tensor, std::move(table));
  }
  BOLTBEAM_TRY(CheckChoices(options.geometry, all));
  weights.Divide(model, options);
  return weights;
}

Result<void> Weights::Load(const model::Model& model, runtime::KernelCache& kernels, runtime::ThreadPool& pool,
                           const LoadCallbacks& callbacks) {
  BOLTBEAM_TRY(LoadVectors(model));
  BOLTBEAM_TRY(Place(pool.size()));
  std::vector<const kernel::Program*> programs;
  for (const auto& [key, program] : programs_) programs.push_back(&program);
  BOLTBEAM_ASSIGN(const runtime::KernelFunctions functions, kernels.Prepare(programs, pool.size()));
  std::uint64_t done = 0;
  for (const model::Tensor& tensor : model.tensors()) {  // in the file's order: one ascending read
    const auto place = tables_.find(&tensor);
    if (place == tables_.end()) continue;
    Table& table = place->second;
    const runtime::KernelFunction rearrange = functions.at(&programs_.at(Key(tensor, table.layout)));
    BOLTBEAM_TRY(LoadTable(model, table, rearrange, pool, callbacks, done));
  }
  return {};
}

void Weights::Divide(const model::Model& model, const Options& options) {
  const auto kind_of = [this](const model::Tensor& tensor) -> const Table& { return tables_.at(&tensor); };
  spaces_ = RowSpacesOf(model, kind_of, options);
  for (std::size_t space = 0; space < spaces_.size(); ++space) {
    for (std::size_t i = 0; i < spaces_[space].tensors.size(); ++i) {
      Table& table = tables_.at(spaces_[space].tensors[i]);
      table.shares = spaces_[space].shares[i];
      table.group_stride = table.GroupBytes() * (spaces_[space].kind == RowSpace::Kind::kPairs ? 2 : 1);
      table.base.assign(options.threads, nullptr);
      space_of_[table.tensor] = space;
    }
  }
}

std::uint64_t Weights::SpaceBytes(const RowSpace& space, std::uint32_t thread) const {
  std::uint64_t bytes = 0;
  for (const model::Tensor* tensor : space.tensors) {
    const Table& table = tables_.at(tensor);
    bytes += static_cast<std::uint64_t>(table.shares[thread].end - table.shares[thread].begin) * table.GroupBytes();
  }
  return AlignUp<std::uint64_t>(bytes, kShareAlignment);
}

Result<void> Weights::Place(std::uint32_t threads) {
  std::vector<std::uint64_t> next(threads);  // where a thread's stream goes on
  std::uint64_t total = 0;
  for (std::uint32_t thread = 0; thread < threads; ++thread) {
    next[thread] = total;
    for (const RowSpace& space : spaces_) total += SpaceBytes(space, thread);
    total = AlignUp<std::uint64_t>(total, kStreamAlignment);
  }
  BOLTBEAM_ASSIGN(memory_, runtime::HugeBuffer::Allocate(total));
  for (const RowSpace& space : spaces_) {
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
      std::uint64_t at = next[thread];
      for (const model::Tensor* tensor : space.tensors) {
        Table& table = tables_.at(tensor);
        const runtime::Range share = table.shares[thread];
        // Not before the memory: the groups before are in the streams of earlier threads.
        table.base[thread] = memory_.data() + at - static_cast<std::uint64_t>(share.begin) * table.group_stride;
        const bool in_turn = space.kind == RowSpace::Kind::kPairs;
        at += table.GroupBytes() * (in_turn ? 1 : static_cast<std::uint64_t>(share.end - share.begin));
      }
      next[thread] += SpaceBytes(space, thread);
    }
  }
  return {};
}

Result<void> Weights::LoadVectors(const model::Model& model) {
  for (const model::Tensor& tensor : model.tensors()) {
    if (!IsVector(tensor)) continue;
    const std::uint64_t elements = tensor.info->elements;
    std::vector<std::byte> bytes(tensor.info->bytes);
    std::vector<double> values(elements);
    BOLTBEAM_TRY(model.file().Read(tensor.info->file_offset, bytes));
    BOLTBEAM_TRY(formats::Dequantize(*tensor.format, bytes, values));
    BOLTBEAM_ASSIGN(std::byte * place, small_.Allocate(AlignUp<std::uint64_t>(elements * 4, 64)));
    for (std::uint64_t i = 0; i < elements; ++i) {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(place + i * 4, &value, 4);
    }
    vectors_[&tensor] = place;
  }
  return {};
}

Result<void> Weights::LoadTable(const model::Model& model, Table& table, runtime::KernelFunction rearrange,
                                runtime::ThreadPool& pool, const LoadCallbacks& callbacks, std::uint64_t& done) {
  const model::Tensor& tensor = *table.tensor;
  const std::uint64_t row_bytes = tensor.info->bytes / tensor.rows();
  const std::uint64_t group_file_bytes = row_bytes * table.layout.lanes;
  const std::uint64_t group_bytes = table.layout.GroupBytes(tensor.cols());
  const std::uint64_t piece = std::max<std::uint64_t>(1, kPieceBytes / group_file_bytes);
  const auto piece_groups = static_cast<std::int64_t>(piece);
  std::atomic<bool> stop = false;
  std::mutex mutex;
  Result<void> outcome;
  const auto fail = [&](Error error) {
    const std::lock_guard lock(mutex);
    if (outcome) outcome = std::unexpected(std::move(error));
    stop = true;
  };
  std::atomic<std::uint64_t> read = 0;
  pool.Run([&](std::uint32_t thread) {
    const runtime::Range range = table.shares[thread];
    std::vector<std::byte> staging(piece * group_file_bytes);
    const formats::Format& format = *tensor.format;
    std::vector<std::byte> plain(format.coding ? staging.size() / format.bytes * format.plain->bytes : 0);
    for (std::int64_t group = range.begin; group < range.end && !stop; group += piece_groups) {
      const std::int64_t count = std::min(piece_groups, range.end - group);
      const std::uint64_t from = static_cast<std::uint64_t>(group) * group_file_bytes;
      const std::uint64_t bytes =
          std::min<std::uint64_t>(static_cast<std::uint64_t>(count) * group_file_bytes, tensor.info->bytes - from);
      std::fill(staging.begin() + static_cast<std::ptrdiff_t>(bytes), staging.end(),
                std::byte{0});  // rows that pad the last group
      if (auto result = model.file().Read(tensor.info->file_offset + from, std::span(staging).first(bytes)); !result) {
        return fail(std::move(result).error());
      }
      if (format.coding) {
        if (auto result = formats::ToPlain(format, staging, plain); !result) return fail(std::move(result).error());
      }
      std::byte* const source = format.coding ? plain.data() : staging.data();
      std::byte* const target = table.base[thread] + static_cast<std::uint64_t>(group) * table.group_stride;
      if (table.group_stride == group_bytes) {
        void* buffers[] = {source, target};
        rearrange(buffers, 0, count);
      }
      const std::uint64_t source_bytes = (format.coding ? plain.size() : staging.size()) / piece;
      for (std::int64_t i = 0; table.group_stride != group_bytes && i < count; ++i) {
        const auto index = static_cast<std::uint64_t>(i);
        void* buffers[] = {source + index * source_bytes, target + index * table.group_stride};
        rearrange(buffers, 0, 1);
      }
      read += bytes;
      if (thread != 0) continue;
      if (callbacks.progress) callbacks.progress(done + read, bytes_);
      if (callbacks.cancelled && callbacks.cancelled()) {
        return fail(
            {Code::kInterrupted, model.file().path(), "interrupted while loading", "the command again to load it"});
      }
    }
  });
  done += table.bytes;
  return outcome;
}

}  // namespace boltbeam::engine
