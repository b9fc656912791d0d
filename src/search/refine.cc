#include "search/refine.h"

#include <algorithm>
#include <atomic>
#include <ranges>
#include <system_error>
#include <thread>
#include <vector>

#include "kernel/families/gemv.h"

namespace boltbeam::search {

std::optional<codegen::StreamFacts> CodeReader::Read(const kernel::GemvGeometry& point) const {
  const auto layout = kernel::LayoutFor(*part_.format, point);
  if (!layout) return std::nullopt;
  const auto program = kernel::BuildGemv(*layout, point, part_.shape());
  if (!program) return std::nullopt;
  const auto listing = codegen::EmitListing(*program, target_, codegen::Listing::kAssembly);
  return listing ? codegen::FactsOfListing(*listing).stream : std::nullopt;
}

std::optional<codegen::StreamFacts> CodeReader::Of(const kernel::GemvGeometry& point) {
  const auto [known, is_new] = known_.try_emplace(CandidateName(point));
  if (is_new) known->second = Read(point);
  return known->second;
}

void CodeReader::Prepare(std::span<const kernel::GemvGeometry> points, unsigned threads) {
  struct Unknown {
    const kernel::GemvGeometry* point;
    std::optional<codegen::StreamFacts>* stream;
  };
  std::vector<Unknown> work;
  for (const kernel::GemvGeometry& point : points) {
    const auto [entry, is_new] = known_.try_emplace(CandidateName(point));
    if (is_new) work.push_back({&point, &entry->second});
  }
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    for (std::size_t i = next++; i < work.size(); i = next++) *work[i].stream = Read(*work[i].point);
  };
  std::vector<std::jthread> others;
  try {
    for (std::size_t i = 1; i < std::min<std::size_t>(threads, work.size()); ++i) others.emplace_back(run);
  } catch (const std::system_error&) {  // fewer threads do the same work
  }
  run();
}

Result<void> Refine(Foresight& foresight, const Part& part, const chip::Chip& chip, std::uint32_t threads,
                    const Coefficients& coefficients, CodeReader& reader, std::span<const kernel::GemvGeometry> points,
                    unsigned compilers) {
  reader.Prepare(points, compilers);
  Counter counter(part, chip, threads);
  for (const kernel::GemvGeometry& point : points) {
    const auto survivor = std::ranges::find(foresight.survivors, point, &Prediction::geometry);
    if (survivor == foresight.survivors.end()) continue;
    BOLTBEAM_ASSIGN(const Work work, counter.Count(point, reader.Of(point)));
    *survivor = Foretell(point, work, coefficients);
  }
  std::ranges::stable_sort(foresight.survivors, {}, &Prediction::ns);
  return {};
}

std::vector<kernel::GemvGeometry> FirstSurvivors(const Foresight& foresight, std::size_t count) {
  std::vector<kernel::GemvGeometry> points;
  for (const Prediction& prediction : foresight.survivors | std::views::take(count)) {
    points.push_back(prediction.geometry);
  }
  return points;
}

}  // namespace boltbeam::search
