#include "measure/cold_products.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/ticks.h"
#include "measure/probes.h"

namespace boltbeam::measure {
namespace {

constexpr std::uint64_t kMostCopyBytes = std::uint64_t{32} << 20;  // of a larger table only so much is read at once
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kActivationBytes = 8;  // of one activation in any format, with its share of scales and sums

/// Random, and no infinity or NaN in any encoding of a scale, nor so small that sums are subnormal.
void Fill(runtime::HugeBuffer& memory, std::uint64_t seed) {
  std::uint64_t state = seed * 2 + 1;
  for (std::uint64_t at = 0; at + 8 <= memory.bytes(); at += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const std::uint64_t word = (state & 0x1F1F1F1F1F1F1F1FU) | 0x2020202020202020U;
    std::memcpy(memory.data() + at, &word, sizeof(word));
  }
}

}  // namespace

Result<ColdProducts> ColdProducts::Create(const chip::Chip& machine, std::uint64_t most_rows, std::uint64_t most_cols) {
  ColdProducts products;
  BOLTBEAM_ASSIGN(products.clock_, GetClock());
  const std::uint64_t cold = LastLevelCacheBytes(machine) * 9 / 2;
  BOLTBEAM_ASSIGN(products.memory_, runtime::HugeBuffer::Allocate(cold));
  BOLTBEAM_ASSIGN(products.input_, runtime::HugeBuffer::Allocate(most_cols * kActivationBytes + kPage));
  BOLTBEAM_ASSIGN(products.output_, runtime::HugeBuffer::Allocate((most_rows + kPage) * sizeof(float)));
  std::memset(products.input_.data(), 0x3F, products.input_.bytes());  // codes of 63, scales of 0.75
  products.Refill(1);
  return products;
}

void ColdProducts::Refill(std::uint64_t seed) {
  Fill(memory_, seed);
  for (std::size_t thread = 0; thread < next_.size(); ++thread) next_[thread] = (seed + thread) * 64 * kPage;
}

double ColdProducts::Time(runtime::ThreadPool& pool, const ColdProduct& product, std::uint64_t bytes) {
  const std::uint32_t threads = pool.size();
  const std::uint64_t part = memory_.bytes() / threads / kPage * kPage;
  const std::uint64_t most_copy = std::min(kMostCopyBytes, part);
  const std::int64_t groups = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(most_copy / std::max<std::uint64_t>(1, product.group_bytes)), 1, product.groups);
  const std::uint64_t copy = static_cast<std::uint64_t>(groups) * product.group_bytes;
  const std::uint64_t count = std::max<std::uint64_t>(1, bytes / std::max<std::uint64_t>(1, copy));
  next_.resize(std::max<std::size_t>(next_.size(), threads), 0);
  std::uint64_t begin = 0, end = 0;
  pool.Run([&](std::uint32_t thread) {
    const runtime::Range share = runtime::Share(groups, thread, threads);
    const std::uint64_t share_bytes = static_cast<std::uint64_t>(share.end - share.begin) * product.group_bytes;
    std::byte* const own = memory_.data() + thread * part;
    std::uint64_t at = next_[thread];
    pool.Sync();
    if (thread == 0) begin = base::Ticks();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (at + share_bytes > part) at = 0;
      // The kernel counts groups of the whole table; the thread's first one lies at the place where its stream goes on.
      void* buffers[] = {own + at - static_cast<std::uint64_t>(share.begin) * product.group_bytes, input_.data(),
                         output_.data()};
      product.function(buffers, share.begin, share.end);
      at += AlignUp<std::uint64_t>(share_bytes, 64);
      pool.Sync();
    }
    if (thread == 0) end = base::Ticks();
    next_[thread] = at;
  });
  const double whole = static_cast<double>(product.groups) / static_cast<double>(groups);
  return clock_.ToNs(end - begin) / static_cast<double>(count) * whole;
}

double ColdProducts::TimeCached(const ColdProduct& product, std::uint64_t bytes) {
  constexpr std::uint64_t kCachedBytes = std::uint64_t{128} << 10;  // of a second-level cache less than half
  const std::uint64_t group_bytes = std::max<std::uint64_t>(1, product.group_bytes);
  const std::int64_t groups =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(kCachedBytes / group_bytes), 1, product.groups);
  const std::uint64_t count = std::max<std::uint64_t>(1, bytes / (static_cast<std::uint64_t>(groups) * group_bytes));
  void* buffers[] = {memory_.data(), input_.data(), output_.data()};
  product.function(buffers, 0, groups);  // into the cache
  const std::uint64_t begin = base::Ticks();
  for (std::uint64_t i = 0; i < count; ++i) product.function(buffers, 0, groups);
  const double whole = static_cast<double>(product.groups) / static_cast<double>(groups);
  return clock_.ToNs(base::Ticks() - begin) / static_cast<double>(count) * whole;
}

}  // namespace boltbeam::measure
