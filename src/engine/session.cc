#include "engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/ticks.h"
#include "kernel/families/gemv.h"
#include "kernel/families/state.h"

namespace boltbeam::engine {

Result<void> MachineSession::Check(std::span<const std::int32_t> tokens) const {
  if (tokens.size() > m_.options.context - depth_) {
    return Fail(Code::kContextFull, m_.model->file().path(),
                fmt::format("{} tokens after {} in a context of {}", tokens.size(), depth_, m_.options.context),
                "a larger context (-c)");
  }
  for (const std::int32_t token : tokens) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= m_.model->hyper().vocab) {
      return Fail(Code::kBadToken, "token", fmt::format("{}", token),
                  fmt::format("0 to {}", m_.model->hyper().vocab - 1));
    }
  }
  return {};
}

Result<void> MachineSession::ReadRows(std::span<const std::int32_t> tokens) {
  const model::Tensor& table = *m_.model->Find(model::Role::kEmbedding);
  const std::uint64_t file_bytes = table.info->bytes / table.rows();
  std::vector<std::byte> coded(table.format->coding ? file_bytes : 0);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint64_t offset = table.info->file_offset + static_cast<std::uint64_t>(tokens[i]) * file_bytes;
    const std::span<std::byte> row(m_.workspace.rows + i * m_.workspace.row_bytes, m_.workspace.row_bytes);
    BOLTBEAM_TRY(m_.model->file().Read(offset, table.format->coding ? std::span(coded) : row));
    if (table.format->coding) BOLTBEAM_TRY(formats::ToPlain(*table.format, coded, row));
  }
  return {};
}

void MachineSession::SetState(std::uint64_t columns) {
  const std::uint64_t chunk = m_.attention.chunk;
  const std::uint64_t window = m_.model->hyper().sliding_window;
  const std::uint64_t chunks = (depth_ + columns - 1) / chunk + 1;
  // The first token of the pass sees itself and window - 1 positions before it.
  const std::uint64_t first = window == 0 || depth_ + 1 <= window ? 0 : (depth_ + 1 - window) / chunk;
  pass_ = {static_cast<std::int64_t>(columns), static_cast<std::int64_t>(chunks),
           static_cast<std::int64_t>(chunks - first)};
  const auto put = [&](std::int64_t offset, std::int64_t value) {
    const auto word = static_cast<std::int32_t>(value);
    std::memcpy(m_.workspace.state + offset, &word, sizeof(word));
  };
  put(kernel::kStateColumns, pass_.columns);
  put(kernel::kStateTiles, CeilDiv<std::int64_t>(pass_.columns, m_.prompt_tile));
  put(kernel::kStatePosition, static_cast<std::int64_t>(depth_));
  put(kernel::kStateChunks, pass_.chunks);
  put(kernel::kStateKeepLogits, keep_logits_ ? 1 : 0);
  put(kernel::kStateWindowFirst, static_cast<std::int64_t>(first));
  put(kernel::kStateWindowChunks, pass_.window_chunks);
  FillRopeTable(depth_ + columns);
}

namespace {

/// A position's cosines and then its sines.
void FillRopeRow(std::byte* table, std::uint64_t position, const std::vector<double>& frequencies) {
  const std::size_t half = frequencies.size();
  auto* row = reinterpret_cast<float*>(table) + position * 2 * half;
  for (std::size_t i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) * frequencies[i];
    row[i] = static_cast<float>(std::cos(angle));
    row[half + i] = static_cast<float>(std::sin(angle));
  }
}

}  // namespace

void MachineSession::FillRopeTable(std::uint64_t positions) {
  for (; m_.rope_positions < positions; ++m_.rope_positions) {
    FillRopeRow(m_.workspace.rope_table, m_.rope_positions, m_.rope_frequencies);
    FillRopeRow(m_.workspace.local_rope_table, m_.rope_positions, m_.local_rope_frequencies);
  }
}

namespace {

/// Makes room for the stamps of a plan on every thread; a trace that has it keeps its memory untouched.
void Resize(Trace& trace, const Plan& plan, std::uint32_t threads) {
  const auto fit = [&](std::vector<std::vector<std::uint64_t>>& stamps, std::size_t count) {
    stamps.resize(threads);
    for (std::vector<std::uint64_t>& row : stamps) row.resize(count);
  };
  for (auto* stamps : {&trace.step_begin, &trace.step_end}) fit(*stamps, plan.steps.size());
  for (auto* stamps : {&trace.barrier_begin, &trace.barrier_end}) fit(*stamps, plan.phase_end.size());
}

/// Where one thread's stamps go: plain pointers, because the weights that stream through the caches between two stamps
/// evict everything that would have to be looked up.
struct Stamps {
  std::uint64_t *step_begin = nullptr, *step_end = nullptr, *barrier_begin = nullptr, *barrier_end = nullptr;

  Stamps(Trace* trace, std::uint32_t thread) {
    if (trace == nullptr) return;
    step_begin = trace->step_begin[thread].data();
    step_end = trace->step_end[thread].data();
    barrier_begin = trace->barrier_begin[thread].data();
    barrier_end = trace->barrier_end[thread].data();
  }
};

void SpinFor(std::uint32_t ns) {
  const std::uint64_t end = base::MonotonicNs() + ns;
  while (base::MonotonicNs() < end) {
  }
}

/// Every work item once, each far from the one before: a step of about the golden section of the range.
void RunScattered(const Call& call, const runtime::Range& range) {
  constexpr double kGoldenSection = 0.618;
  const std::int64_t count = range.end - range.begin;
  auto stride = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(count) * kGoldenSection));
  while (std::gcd(stride, count) != 1) ++stride;
  for (std::int64_t turn = 0, item = 0; turn < count; ++turn, item = (item + stride) % count) {
    call.function(call.buffers, range.begin + item, range.begin + item + 1);
  }
}

}  // namespace

void MachineSession::RunSteps(const Plan& plan, std::uint32_t first_phase, std::uint32_t last_phase, Trace* trace) {
  m_.pool->Run([&](std::uint32_t thread) {
    const bool traced = trace != nullptr;
    const Stamps stamps(trace, thread);
    const std::uint32_t late_ns = m_.options.faults.barrier_ns;  // looked up here: the weights evict it
    std::uint32_t step_index = first_phase == 0 ? 0 : plan.phase_end[first_phase - 1];
    for (std::uint32_t phase = first_phase; phase < last_phase; ++phase) {
      for (; step_index < plan.phase_end[phase]; ++step_index) {
        if (traced) stamps.step_begin[step_index] = base::Ticks();
        RunCall(plan, step_index, thread);
        if (traced) stamps.step_end[step_index] = base::Ticks();
      }
      if (traced) stamps.barrier_begin[phase] = base::Ticks();
      m_.pool->Sync();
      if (late_ns != 0) SpinFor(late_ns);
      if (traced) stamps.barrier_end[phase] = base::Ticks();
    }
  });
  first_turn_ += static_cast<std::uint32_t>(plan.steps.size());
}

void MachineSession::RunCall(const Plan& plan, std::uint32_t step, std::uint32_t thread) {
  const Call& call = plan.calls[thread][step];
  if (call.piece_items == 0 || !shares_tails_) return RunRange(call, call.RangeOf(pass_, thread, m_.pool->size()));
  if (call.fault.late_ns != 0) SpinFor(call.fault.late_ns);
  RunShared(plan, step, thread);
}

void MachineSession::RunRange(const Call& call, const runtime::Range& range) {
  if (call.fault.late_ns != 0) SpinFor(call.fault.late_ns);
  if (range.begin >= range.end) return;
  if (call.fault.scattered) return RunScattered(call, range);
  call.function(call.buffers, range.begin, range.end);
}

namespace {

/// The pieces of a share that any thread may take: its end.
struct Pieces {
  std::int64_t begin = 0;
  std::uint32_t count = 0;
};

Pieces PiecesOf(const runtime::Range& share, std::int64_t piece_items) {
  const std::int64_t count =
      std::min<std::int64_t>((share.end - share.begin) / kSharedPart / piece_items, runtime::SharedTails::kMostPieces);
  return {share.end - count * piece_items, static_cast<std::uint32_t>(count)};
}

}  // namespace

void MachineSession::RunShared(const Plan& plan, std::uint32_t step, std::uint32_t thread) {
  const std::uint32_t threads = m_.pool->size();
  const std::uint32_t turn = first_turn_ + step;
  const Call& call = plan.calls[thread][step];
  const std::int64_t items = call.work.Count(pass_);
  const auto run = [&](void* const* buffers, const Pieces& pieces, std::uint32_t piece) {
    const std::int64_t begin = pieces.begin + piece * call.piece_items;
    call.function(buffers, begin, begin + call.piece_items);
  };
  const runtime::Range own = runtime::Share(items, thread, threads);
  const Pieces tail = PiecesOf(own, call.piece_items);
  tails_.Offer(thread, turn, tail.count);
  call.function(call.buffers, own.begin, tail.begin);
  while (const auto piece = tails_.TakeFront(thread, turn)) run(call.buffers, tail, *piece);
  for (std::uint32_t other = (thread + 1) % threads; other != thread; other = (other + 1) % threads) {
    std::array<void*, kMostSharedBuffers> buffers;  // the other's table times this thread's own copy of the input
    std::copy_n(call.buffers, call.buffer_count, buffers.begin());
    buffers[0] = plan.calls[other][step].buffers[0];
    const Pieces others = PiecesOf(runtime::Share(items, other, threads), call.piece_items);
    while (const auto piece = tails_.TakeBack(other, turn)) run(buffers.data(), others, *piece);
  }
}

Result<void> MachineSession::Decode(std::int32_t token, Trace* trace) {
  BOLTBEAM_TRY(Check({&token, 1}));
  if (trace != nullptr) {
    Resize(*trace, m_.decode, m_.pool->size());
    trace->token_begin = base::Ticks();
  }
  BOLTBEAM_TRY(ReadRows({&token, 1}));
  SetState(1);
  RunSteps(m_.decode, 0, static_cast<std::uint32_t>(m_.decode.phase_end.size()), trace);
  ++depth_;
  if (trace != nullptr) trace->token_end = base::Ticks();
  return {};
}

void MachineSession::FinishColumn(std::uint64_t column) {
  const std::uint64_t stride = kernel::OutputStride(m_.model->hyper().hidden);
  for (std::byte* stream : m_.workspace.streams) {
    const std::byte* const last = m_.workspace.x + column * stride;
    if (stream != last) std::memmove(stream, last, stride);
  }
  pass_.columns = 1;
  RunSteps(m_.decode, m_.decode.body_phases, static_cast<std::uint32_t>(m_.decode.phase_end.size()), nullptr);
}

Result<void> MachineSession::Prompt(std::span<const std::int32_t> tokens,
                                    const std::function<void(std::size_t, std::span<const float>)>& each) {
  BOLTBEAM_TRY(Check(tokens));
  const std::uint64_t logits_stride = kernel::OutputStride(m_.model->hyper().vocab);
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t columns = std::min<std::size_t>(m_.options.prompt_batch, tokens.size() - done);
    BOLTBEAM_TRY(ReadRows(tokens.subspan(done, columns)));
    SetState(columns);
    const auto phases = static_cast<std::uint32_t>(m_.prompt.phase_end.size());
    RunSteps(m_.prompt, 0, each ? phases : m_.prompt.body_phases, nullptr);
    depth_ += columns;
    for (std::size_t column = 0; each && column < columns; ++column) {
      const auto* row = reinterpret_cast<const float*>(m_.workspace.logits + column * logits_stride);
      each(done + column, {row, m_.model->hyper().vocab});
    }
    done += columns;
    if (done == tokens.size()) FinishColumn(columns - 1);
  }
  return {};
}

std::span<const float> MachineSession::logits() const {
  return {reinterpret_cast<const float*>(m_.workspace.logits), m_.model->hyper().vocab};
}

std::int32_t MachineSession::argmax() const {
  std::int32_t token = 0;
  std::memcpy(&token, m_.workspace.argmax, sizeof(token));
  return token;
}

Result<void> MachineSession::Truncate(std::uint64_t depth) {
  if (depth > depth_) {
    return Fail(Code::kUsage, "depth", fmt::format("{} positions asked for, {} computed", depth, depth_),
                "a smaller depth");
  }
  depth_ = depth;
  return {};
}

}  // namespace boltbeam::engine
