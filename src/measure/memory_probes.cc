#include "measure/memory_probes.h"

#include <atomic>
#include <cstring>
#include <random>

#include "base/checked.h"
#include "measure/probe_programs.h"

namespace boltbeam::measure {
namespace {

constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kGrain = 4096;  // of a thread's share
constexpr std::int64_t kChaseLoads = 100'000;

}  // namespace

Result<MemoryProbe> MemoryProbe::Create(runtime::KernelCache& kernels, const chip::Chip& machine,
                                        runtime::ThreadPool& pool, std::uint64_t bytes) {
  MemoryProbe probe;
  BOLTBEAM_ASSIGN(probe.clock_, GetClock());
  const std::uint16_t lanes = VectorLanes(machine);
  BOLTBEAM_ASSIGN(probe.copy_, kernels.Get(CopyProgram(lanes, kGrain)));
  BOLTBEAM_ASSIGN(probe.write_, kernels.Get(WriteProgram(lanes, kGrain)));
  BOLTBEAM_ASSIGN(probe.chase_, kernels.Get(ChaseProgram()));
  BOLTBEAM_ASSIGN(probe.memory_, runtime::HugeBuffer::Allocate(AlignUp(bytes, 2 * kGrain * pool.size())));
  probe.Write(pool);  // every page is touched by the thread that will use it
  return probe;
}

double MemoryProbe::Pass(runtime::ThreadPool& pool, runtime::KernelFunction function, std::uint64_t bytes,
                         double counted) {
  const auto grains = static_cast<std::int64_t>(bytes / kGrain);
  const std::uint64_t begin = base::Ticks();
  pool.Run([&](std::uint32_t thread) {
    const runtime::Range share = runtime::Share(grains, thread, pool.size());
    void* const buffers[] = {memory_.data(), memory_.data() + memory_.bytes() / 2};
    function(buffers, share.begin, share.end);
  });
  return counted / clock_.ToNs(base::Ticks() - begin);
}

double MemoryProbe::Copy(runtime::ThreadPool& pool) {
  return Pass(pool, copy_, memory_.bytes() / 2, static_cast<double>(memory_.bytes()));
}

double MemoryProbe::Write(runtime::ThreadPool& pool) {
  return Pass(pool, write_, memory_.bytes(), static_cast<double>(memory_.bytes()));
}

void MemoryProbe::PrepareChase(std::uint64_t seed) {
  const std::uint64_t lines = memory_.bytes() / kLine;
  std::vector<std::uint32_t> order(lines);
  for (std::uint64_t i = 0; i < lines; ++i) order[i] = static_cast<std::uint32_t>(i);
  std::mt19937_64 random(seed);
  for (std::uint64_t i = lines - 1; i > 0; --i) std::swap(order[i], order[random() % i]);
  for (std::uint64_t i = 0; i < lines; ++i) {
    const std::uint64_t next = order[i] * kLine;
    std::memcpy(memory_.data() + i * kLine, &next, sizeof next);
  }
}

double MemoryProbe::Latency(runtime::ThreadPool& pool, StreamProbe* stream) {
  std::atomic<bool> done = false;
  double ns = 0;
  pool.Run([&](std::uint32_t thread) {
    if (thread != 0) {
      while (stream != nullptr && !done.load(std::memory_order_relaxed)) stream->ReadGrains(thread, pool.size());
      return;
    }
    void* const buffers[] = {memory_.data(), &place_};
    const std::uint64_t begin = base::Ticks();
    chase_(buffers, 0, kChaseLoads);
    ns = clock_.ToNs(base::Ticks() - begin);
    done.store(true, std::memory_order_relaxed);
  });
  return ns / static_cast<double>(kChaseLoads);
}

}  // namespace boltbeam::measure
