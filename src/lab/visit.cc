#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/ladder.h"
#include "measure/bench.h"
#include "measure/clock.h"

namespace boltbeam::lab {
namespace {

constexpr double kChangedSpeed = 0.1;
constexpr std::uint64_t kMostTokens = 512;  // of a window
constexpr std::uint64_t kSeed = 1;

double BestOf(const std::vector<double>& rates) { return rates.empty() ? 0 : std::ranges::max(rates); }

/// Decodes tokens at `depth` and gives the seconds that they took.
Result<double> TimeTokens(engine::Session& session, std::span<const std::int32_t> tokens, std::uint64_t depth,
                          const measure::Clock& clock) {
  BOLTBEAM_TRY(session.Truncate(depth));
  const std::uint64_t begin = base::Ticks();
  for (const std::int32_t token : tokens) BOLTBEAM_TRY(session.Decode(token));
  return clock.ToNs(base::Ticks() - begin) / 1e9;
}

}  // namespace

Result<Visit> MeasureWindows(engine::Engine& engine, engine::Session& session, audit::BandwidthSource& bandwidth,
                             const VisitOptions& options, const std::function<bool()>& cancelled) {
  BOLTBEAM_ASSIGN(const measure::Clock clock, measure::GetClock());
  BOLTBEAM_TRY(measure::FillContext(engine, session, options.depth, kSeed));
  const std::vector<std::int32_t> tokens = measure::RandomTokens(engine.model().hyper().vocab, kMostTokens, kSeed + 1);
  session.KeepLogits(false);  // nobody reads them
  // The first token wakes threads and pages; the second says how long a window has to be.
  BOLTBEAM_TRY(TimeTokens(session, std::span(tokens).first(1), options.depth, clock));
  BOLTBEAM_ASSIGN(const double token_s, TimeTokens(session, std::span(tokens).first(1), options.depth, clock));
  const double wanted = std::ceil(options.window_s / std::max(token_s, 1e-9));
  const std::uint64_t room = std::min(kMostTokens, engine.options().context - options.depth);
  const auto count = static_cast<std::size_t>(std::clamp(wanted, 1.0, static_cast<double>(room)));

  Visit visit;
  visit.threads = engine.options().threads;
  const std::uint64_t begin = base::Ticks();
  double before = BestOf(bandwidth.Read());
  while (visit.token_s.size() + visit.left_out < options.least_windows ||
         clock.ToNs(base::Ticks() - begin) / 1e9 < options.seconds) {
    if (cancelled && cancelled()) return Fail(Code::kInterrupted, "ladder", "stopped by the user");
    BOLTBEAM_ASSIGN(const double seconds, TimeTokens(session, std::span(tokens).first(count), options.depth, clock));
    const double after = BestOf(bandwidth.Read());
    if (std::abs(after - before) > kChangedSpeed * std::max(before, after)) {
      ++visit.left_out;
    } else {
      visit.token_s.push_back(seconds / static_cast<double>(count));
      visit.streamed_gb_s.push_back(2 / (1 / before + 1 / after));  // its time is the mean of both times
    }
    before = after;
  }
  BOLTBEAM_TRY(session.Truncate(options.depth));
  if (!visit.token_s.empty()) return visit;
  return Fail(Code::kMeasurementUnstable, engine.model().file().path(),
              fmt::format("the memory changed its speed during all of {} windows", visit.left_out),
              "a quieter machine, or more --seconds");
}

}  // namespace boltbeam::lab
