#include "lab/windows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "roofline/formulas.h"

namespace boltbeam::lab {
namespace {

constexpr double kSteadyMemory = 0.02;  // relative spread of readings within which nothing can be learnt of the factor
constexpr double kMostMemoryFactor = 2, kMostFactorError = 0.2;

void AddVisit(Windows& windows, const Row& row, std::size_t session) {
  ++windows.point.visits;
  const std::vector<double> seconds = row.token_s.empty() ? std::vector<double>{row.Seconds()} : row.token_s;
  windows.has_readings = windows.has_readings && !row.streamed_gb_s.empty();
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    windows.seconds.push_back(seconds[i]);
    windows.session.push_back(session);
    if (!row.streamed_gb_s.empty()) {
      windows.gb_s.push_back(row.streamed_gb_s.size() == 1 ? row.streamed_gb_s[0] : row.streamed_gb_s[i]);
    }
  }
}

/// Sums of one model, about its means.
struct Sums {
  double products = 0, squares = 0, token_squares = 0, level = 0;
  std::size_t count = 0, means = 0;
};
void AddWithin(const std::vector<double>& stream, const std::vector<double>& token, Sums& sums) {
  const double stream_mean = measure::Mean(stream), token_mean = measure::Mean(token);
  for (std::size_t i = 0; i < stream.size(); ++i) {
    sums.products += (stream[i] - stream_mean) * (token[i] - token_mean);
    sums.squares += (stream[i] - stream_mean) * (stream[i] - stream_mean);
    sums.token_squares += (token[i] - token_mean) * (token[i] - token_mean);
    sums.level += stream[i];
  }
  sums.count += stream.size();
  ++sums.means;
}

}  // namespace

std::vector<Windows> ByModel(std::span<const Row* const> rows, std::span<const std::size_t> session) {
  std::vector<Windows> models;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = *rows[i];
    const auto found = std::ranges::find_if(models, [&](const Windows& windows) {
      return windows.point.model == row.ShortModel() && windows.point.bytes == row.Bytes();
    });
    Windows& windows = found != models.end() ? *found : models.emplace_back();
    if (windows.point.visits == 0) {
      windows.point.model = row.ShortModel();
      windows.point.architecture = row.architecture;
      windows.point.quantization = row.quantization;
      windows.point.experts = row.experts;
      windows.point.bytes = row.Bytes();
      windows.point.kv_bytes = row.kv_bytes_per_token;
    }
    if (row.spec_gb_s) windows.spec_gb_s = row.spec_gb_s;
    AddVisit(windows, row, session[i]);
  }
  for (Windows& windows : models) {
    if (!windows.has_readings) windows.gb_s.clear();
    windows.point.windows = windows.seconds.size();
    windows.point.seconds = measure::Median(windows.seconds);
    windows.point.measured_tok_s = 1 / windows.point.seconds;
    if (windows.has_readings) windows.point.streamed_gb_s = measure::Median(windows.gb_s);
  }
  std::ranges::sort(models, {}, [](const Windows& windows) { return windows.point.bytes; });
  return models;
}

std::vector<double> SecondsAt(const Windows& windows, double reference_gb_s, double memory_factor) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < windows.seconds.size(); ++i) {
    seconds.push_back(windows.seconds[i] +
                      roofline::MemoryShiftS(memory_factor, windows.point.bytes, windows.gb_s[i], reference_gb_s));
  }
  return seconds;
}

double MemoryFactor(std::span<const Windows> models) {
  Sums sums;
  for (const Windows& windows : models) {
    std::vector<double> stream, token;  // seconds per GB
    for (std::size_t i = 0; i < windows.seconds.size(); ++i) {
      stream.push_back(1 / windows.gb_s[i]);
      token.push_back(windows.seconds[i] / windows.point.bytes * 1e9);
    }
    AddWithin(stream, token, sums);
  }
  const auto windows = static_cast<double>(sums.count);
  const bool is_steady = std::sqrt(sums.squares / windows) < kSteadyMemory * sums.level / windows;
  if (is_steady) return 1;
  // Of little that moved, noise of the readings makes any factor: then the stream's own, unless even so it can't be
  // that one. A program of its own meets other moments than the readings beside it, and its times may not follow them
  // at all.
  const double slope = sums.products / sums.squares;
  const double freedom = std::max(1.0, windows - static_cast<double>(sums.means) - 1);
  const double error = std::sqrt(std::max(0.0, sums.token_squares - slope * sums.products) / freedom / sums.squares);
  const bool may_be_one = error > kMostFactorError && std::abs(slope - 1) <= 2 * error;
  return may_be_one ? 1 : std::clamp(slope, 0.0, kMostMemoryFactor);
}

std::vector<Cell> CellsOf(std::span<const Windows> models, std::span<const std::vector<double>> seconds) {
  std::vector<Cell> cells;
  for (std::size_t model = 0; model < models.size(); ++model) {
    std::map<std::size_t, std::vector<double>> sessions;
    for (std::size_t i = 0; i < seconds[model].size(); ++i) {
      sessions[models[model].session[i]].push_back(seconds[model][i]);
    }
    for (const auto& [session, times] : sessions) cells.push_back({model, session, measure::Median(times)});
  }
  return cells;
}

}  // namespace boltbeam::lab
