#include "lab/sessions.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "measure/statistics.h"

namespace boltbeam::lab {
namespace {

constexpr std::size_t kSessionsAskedFor = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Whether every session is tied to every other through models that both have measured.
bool AreConnected(std::span<const Cell> cells, std::size_t models, std::size_t sessions) {
  std::vector<std::size_t> group(models + sessions);
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (const Cell& cell : cells) {
    const std::size_t from = group[models + cell.session], to = group[cell.model];
    std::ranges::replace(group, from, to);
  }
  return std::ranges::all_of(group, [&](std::size_t one) { return one == group[models]; });
}

/// Both effects of the logarithms: models' and, with a mean of 0, sessions'.
struct Effects {
  std::vector<double> models, sessions;
};
Effects TakeApart(std::span<const Cell> cells, std::size_t models, std::size_t sessions) {
  // Each in turn the mean of what the other leaves: where all cells are there this is exact after the first round.
  constexpr int kMostRounds = 500;
  constexpr double kSettled = 1e-12;
  Effects effects{std::vector<double>(models), std::vector<double>(sessions)};
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<double> of_model(models), of_session(sessions), model_count(models), session_count(sessions);
    for (const Cell& cell : cells) {
      of_model[cell.model] += std::log(cell.seconds) - effects.sessions[cell.session];
      ++model_count[cell.model];
    }
    for (std::size_t i = 0; i < models; ++i) effects.models[i] = of_model[i] / model_count[i];
    for (const Cell& cell : cells) {
      of_session[cell.session] += std::log(cell.seconds) - effects.models[cell.model];
      ++session_count[cell.session];
    }
    for (std::size_t j = 0; j < sessions; ++j) of_session[j] /= session_count[j];
    const double mean = measure::Mean(of_session);
    double moved = 0;
    for (std::size_t j = 0; j < sessions; ++j) {
      moved = std::max(moved, std::abs(of_session[j] - mean - effects.sessions[j]));
      effects.sessions[j] = of_session[j] - mean;
    }
    if (moved < kSettled && round > 0) break;
  }
  return effects;
}

/// What the sessions themselves say; of fewer than three nothing is learnt but that they differ by more than assumed.
void Estimate(std::span<const Cell> cells, const Effects& effects, double assumed, Sessions& result) {
  const auto count = static_cast<double>(effects.sessions.size());
  const double further = 1 + 1 / count;  // a new session against the mean of these
  if (effects.sessions.size() < kSessionsAskedFor) {
    result.between = assumed;
    if (effects.sessions.size() == 2) {
      result.between = std::max(assumed, std::abs(effects.sessions[1] - effects.sessions[0]));
    }
    result.spread = {result.between * result.between / 2 * further, kInfinity};
    return;
  }
  double rest = 0, squares = 0;
  for (const Cell& cell : cells) {
    const double left = std::log(cell.seconds) - effects.models[cell.model] - effects.sessions[cell.session];
    rest += left * left;
  }
  for (const double effect : effects.sessions) squares += effect * effect;
  const double freedom = static_cast<double>(cells.size()) - static_cast<double>(effects.models.size()) - count + 1;
  const double of_cell = freedom > 0 ? rest / freedom : 0;
  const double models_each = static_cast<double>(cells.size()) / count;
  // The sessions' own effects scatter by what their cells do, too.
  const double of_session = std::max(0.0, squares / (count - 1) - of_cell / models_each);
  result.is_assumed = false;
  result.between = std::sqrt(2 * of_session);
  result.spread = {of_session * further, count - 1};
  if (freedom > 0) result.of_model = {of_cell * (1 - 1 / count), freedom};
}

}  // namespace

std::optional<double> UtcSeconds(const std::string& date) {
  int year = 0, hour = 0, minute = 0, second = 0;
  unsigned month = 0, day = 0;
  if (std::sscanf(date.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d", &year, &month, &day, &hour, &minute, &second) != 6) {
    return std::nullopt;
  }
  const std::chrono::year_month_day on{std::chrono::year{year}, std::chrono::month{month}, std::chrono::day{day}};
  if (!on.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days{on}.time_since_epoch().count();
  return ((static_cast<double>(days) * 24 + hour) * 60 + minute) * 60 + second;
}

std::vector<std::size_t> SplitSessions(std::span<const Row* const> rows) {
  std::vector<std::size_t> order(rows.size()), session(rows.size());
  std::vector<double> when(rows.size(), -kInfinity);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = 0; i < rows.size(); ++i) when[i] = UtcSeconds(rows[i]->date).value_or(-kInfinity);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return when[i]; });
  std::size_t number = 0;
  for (std::size_t k = 1; k < order.size(); ++k) {
    const double before = when[order[k - 1]];
    if (std::isfinite(before) && when[order[k]] - before > kSessionGapSeconds) ++number;
    session[order[k]] = number;
  }
  return session;
}

Sessions CompareSessions(std::span<const Cell> cells, std::size_t models, std::size_t sessions, double assumed,
                         std::vector<double>& seconds) {
  Sessions result;
  result.is_connected = AreConnected(cells, models, sessions);
  const std::size_t told_apart = result.is_connected ? sessions : 1;
  std::vector<Cell> taken(cells.begin(), cells.end());
  if (!result.is_connected) {
    for (Cell& cell : taken) cell.session = 0;
  }
  const Effects effects = TakeApart(taken, models, told_apart);
  Estimate(taken, effects, assumed, result);
  seconds.clear();
  for (const double effect : effects.models) seconds.push_back(std::exp(effect));
  for (const double effect : effects.sessions) result.factors.push_back(std::exp(effect));
  return result;
}

}  // namespace boltbeam::lab
