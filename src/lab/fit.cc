#include "lab/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "lab/fit_notes.h"
#include "lab/windows.h"

namespace boltbeam::lab {
namespace {

/// What the rows of one line have in common, but for the depth.
using Setting = std::tuple<std::string, std::string, std::string, std::string, std::uint64_t, std::string, std::string,
                           std::string>;
/// Another release of a program has another line, and so has another set of instructions or form of the cache.
Setting SettingOf(const Row& row) {
  return {row.alias,   row.device,     row.engine,       row.engine_version,
          row.threads, row.ShownIsa(), row.ShownCache(), row.setup};
}

/// The rows of one line.
struct Group {
  Setting setting;
  std::uint64_t depth = 0;
  std::vector<const Row*> rows;
  std::vector<std::string> warnings;
};

std::vector<Point> PointsOf(const std::vector<ModelPoint>& models) {
  std::vector<Point> points;
  for (const ModelPoint& model : models) points.push_back({model.bytes, model.seconds});
  return points;
}

/// Why a model can't be on the line; empty when it can.
std::string WhyNot(const Windows& windows, std::optional<double> published) {
  if (windows.point.experts > 0) {
    return fmt::format("{}: few bytes a token, but a dense model's number of kernels",
                       MixtureName(windows.point.experts));
  }
  const RateCheck check = CheckRate(windows.point.bytes, windows.point.measured_tok_s, {}, published);
  return check.text;
}

void Split(std::vector<Windows>& models, std::optional<double> published, std::vector<Windows>& dense,
           std::vector<Windows>& others, std::vector<std::string>& reasons) {
  for (Windows& windows : models) {
    std::string reason = WhyNot(windows, published ? published : windows.spec_gb_s);
    if (reason.empty()) {
      dense.push_back(std::move(windows));
    } else {
      others.push_back(std::move(windows));
      reasons.push_back(std::move(reason));
    }
  }
}

/// Rows that stand twice are one: a file that was read or imported again. Of a model's rows only those of its newest
/// plan count: another plan is another program.
void Sift(Group& group) {
  std::set<std::string> seen;
  std::map<std::string, std::string> plans;
  for (const Row* row : group.rows) plans[row->ShortModel()] = row->plan;
  std::size_t twice = 0, other_plan = 0;
  std::erase_if(group.rows, [&](const Row* row) {
    if (!seen.insert(ToJson(*row).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)).second) {
      ++twice;
      return true;
    }
    const bool is_old = plans.at(row->ShortModel()) != row->plan;
    other_plan += is_old ? 1 : 0;
    return is_old;
  });
  const auto say = [&](std::size_t count, std::string_view what) {
    if (count > 0) group.warnings.push_back(fmt::format("{} row{} {}", count, count == 1 ? "" : "s", what));
  };
  say(twice, "left out that stand there already, the same to the last digit");
  say(other_plan, "left out of models whose newer rows ran under another plan");
}

/// The models of a group, and the bandwidths beside them.
struct Measured {
  std::vector<Windows> dense, others;
  std::vector<std::string> reasons;  // why the others are no dense models
  std::vector<std::size_t> session;  // of each row
  std::optional<double> published;
  bool has_readings = false;  // beside all dense models
  std::vector<double> readings;
};
Measured Gather(const Group& group, const FitOptions& options) {
  Measured measured;
  measured.session = SplitSessions(group.rows);
  std::vector<Windows> models = ByModel(group.rows, measured.session);
  measured.published = options.published_gb_s;
  for (const Windows& windows : models) {
    measured.published = measured.published ? measured.published : windows.spec_gb_s;
  }
  Split(models, measured.published, measured.dense, measured.others, measured.reasons);
  measured.has_readings = !measured.dense.empty();
  for (const Windows& windows : measured.dense) {
    measured.has_readings = measured.has_readings && windows.has_readings;
    if (windows.has_readings) measured.readings.push_back(*windows.point.streamed_gb_s);
  }
  return measured;
}

/// Each window's time, at the line's memory speed where it has one.
std::vector<double> TimesOf(const Windows& windows, const MachineFit& fit) {
  if (!fit.is_scaled || !windows.has_readings) return windows.seconds;
  return SecondsAt(windows, *fit.reference_gb_s, fit.memory_factor);
}

/// One time for each model: in the mean session, where there are several.
void JoinSessions(Measured& measured, const Group& group, const FitOptions& options, MachineFit& fit) {
  std::vector<std::vector<double>> times;
  for (const Windows& windows : measured.dense) times.push_back(TimesOf(windows, fit));
  const std::vector<Cell> cells = CellsOf(measured.dense, times);
  const std::size_t count = group.rows.empty() ? 1 : std::ranges::max(measured.session) + 1;
  // Sessions in which only mixtures were measured say nothing here.
  std::set<std::size_t> used;
  for (const Cell& cell : cells) used.insert(cell.session);
  std::vector<Cell> numbered = cells;
  for (Cell& cell : numbered)
    cell.session = static_cast<std::size_t>(std::distance(used.begin(), used.find(cell.session)));
  std::vector<double> seconds;
  fit.sessions = CompareSessions(numbered, measured.dense.size(), used.size(), options.between, seconds);
  for (std::size_t i = 0; i < seconds.size(); ++i) measured.dense[i].point.seconds = seconds[i];
  std::vector<std::string> begins(count);
  for (std::size_t i = 0; i < group.rows.size(); ++i) {
    std::string& begin = begins[measured.session[i]];
    if (begin.empty() || group.rows[i]->date < begin) begin = group.rows[i]->date;
  }
  for (const std::size_t session : used) fit.sessions.begins.push_back(begins[session]);
}

/// The line through the points, and what follows from it for each.
Result<void> Draw(MachineFit& fit, const FitOptions& options) {
  const std::vector<Point> points = PointsOf(fit.points);
  fit.noise = options.noise.value_or(fit.is_scaled ? Noise::kRelative : Noise::kConstant);
  BOLTBEAM_ASSIGN(fit.line, Line::Fit(points, fit.noise));
  BOLTBEAM_ASSIGN(fit.ordinary, Line::Fit(points, Noise::kConstant));
  if (const Result<RobustLine> robust = FitRobust(points)) fit.robust = *robust;
  fit.fixed_s = fit.line.Fixed(options.confidence);
  const measure::Interval bandwidth = fit.line.Bandwidth(options.confidence);
  fit.bandwidth_gb_s = {bandwidth.estimate / 1e9, bandwidth.low / 1e9, bandwidth.high / 1e9};
  fit.next_session_gb_s = NextSession(fit);
  const auto left_out = LeaveOneOut(points, options.confidence, fit.noise);
  const std::vector<double> chances = OffTheLine(points, fit.noise);
  for (std::size_t i = 0; i < points.size(); ++i) {
    ModelPoint& point = fit.points[i];
    point.fitted_s = fit.line.SecondsAt(point.bytes);
    point.left_out = left_out[i];
    point.chance_off = chances[i];
    point.leverage = fit.line.leverage()[i];
    fit.worst_residual_s = std::max(fit.worst_residual_s, std::abs(point.seconds - point.fitted_s));
  }
  return {};
}

/// No line, because models were left out: the first of them, and why.
std::unexpected<Error> NameLeftOut(const Measured& measured, Error error) {
  if (!measured.others.empty()) {
    const std::size_t more = measured.others.size() - 1;
    error.found += fmt::format("; {} is left out: {}", measured.others.front().point.model, measured.reasons.front());
    if (more > 0) error.found += fmt::format("; and {} more", more);
  }
  return std::unexpected(std::move(error));
}

Result<MachineFit> FitGroup(const Group& group, const FitOptions& options) {
  MachineFit fit;
  const Row &first = *group.rows.front(), &last = *group.rows.back();
  fit.alias = first.alias;
  fit.device = first.device;
  fit.engine = first.engine;
  fit.engine_version = first.engine_version;
  fit.isa = first.ShownIsa();
  fit.cache = first.ShownCache();
  fit.setup = first.setup;
  fit.depth = group.depth;
  fit.threads = first.threads;
  fit.date = last.date;
  fit.confidence = options.confidence;
  fit.warnings = group.warnings;

  Measured measured = Gather(group, options);
  std::optional<double> streamed = options.streamed_gb_s;
  if (!streamed && !measured.readings.empty()) streamed = measure::Median(measured.readings);
  if (options.scale == Scale::kStreamed && !measured.has_readings) {
    return Fail(Code::kLabLine, fit.alias, "rows without a bandwidth read beside them",
                "rows of `boltbeam ladder`, or no --scale streamed");
  }
  fit.is_scaled = measured.has_readings && options.scale != Scale::kNone;
  if (fit.is_scaled) {
    fit.reference_gb_s = measure::Median(measured.readings);
    fit.memory_factor = MemoryFactor(measured.dense);
  }
  if (!measured.dense.empty()) JoinSessions(measured, group, options, fit);
  for (Windows& windows : measured.dense) fit.points.push_back(std::move(windows.point));
  if (Result<void> drawn = Draw(fit, options); !drawn) return NameLeftOut(measured, std::move(drawn).error());
  for (std::size_t i = 0; i < measured.others.size(); ++i) {
    ModelPoint& point = measured.others[i].point;
    point.seconds = measure::Median(TimesOf(measured.others[i], fit));
    const double above = point.seconds - fit.line.SecondsAt(point.bytes);
    fit.excluded.push_back({std::move(point), std::move(measured.reasons[i]), above});
  }
  fit.gap = ExplainGap(fit.bandwidth_gb_s.estimate, streamed, measured.published, options.reached_gb_s);
  AddNotes(fit);
  return fit;
}

/// What the models of the line took at another depth, at the line's memory speed.
void AddDepths(const Group& other, const FitOptions& options, MachineFit& fit) {
  const Measured measured = Gather(other, options);
  for (const Windows& windows : measured.dense) {
    const auto base = std::ranges::find(fit.points, windows.point.model, &ModelPoint::model);
    if (base == fit.points.end() || (fit.is_scaled && !windows.has_readings)) continue;
    fit.depths.push_back({windows.point.model, other.depth, windows.point.bytes - base->bytes,
                          measure::Median(TimesOf(windows, fit)) - base->seconds});
  }
}

std::vector<Group> GroupsOf(std::span<const Row> rows) {
  std::vector<Group> groups;
  for (const Row& row : rows) {
    const auto found = std::ranges::find_if(
        groups, [&](const Group& group) { return group.depth == row.depth && group.setting == SettingOf(row); });
    Group& group = found != groups.end() ? *found : groups.emplace_back(SettingOf(row), row.depth);
    group.rows.push_back(&row);
  }
  for (Group& group : groups) Sift(group);
  return groups;
}

}  // namespace

std::optional<measure::Interval> NextSession(const MachineFit& fit) {
  if (!fit.line.HasIntervals()) return std::nullopt;
  const std::array parts = {fit.line.SlopeVariance(), fit.sessions.spread, fit.sessions.of_model};
  const double half = HalfWidth(parts, fit.confidence), fitted = fit.bandwidth_gb_s.estimate;
  return measure::Interval{fitted, fitted / (1 + half),
                           half < 1 ? fitted / (1 - half) : std::numeric_limits<double>::infinity()};
}

Result<std::vector<MachineFit>> FitMachines(std::span<const Row> rows, const FitOptions& options) {
  if (rows.empty()) {
    return Fail(Code::kLabRow, "the ladder", "no rows of experiment \"ladder\"", "rows that `boltbeam ladder` writes");
  }
  const std::vector<Group> groups = GroupsOf(rows);
  std::vector<MachineFit> fits;
  std::vector<std::pair<const Group*, Error>> without;
  for (const Group& group : groups) {
    Result<MachineFit> fit = FitGroup(group, options);
    if (!fit) {
      Error error = std::move(fit).error();
      const Row& row = *group.rows.front();
      error.where = row.alias + (row.engine.empty() ? "" : ", " + row.engine) +
                    (group.depth == 0 ? "" : fmt::format(", depth {}", group.depth)) + ": " + error.where;
      without.emplace_back(&group, std::move(error));
      continue;
    }
    for (const Group& other : groups) {
      if (other.setting == group.setting && other.depth != group.depth) AddDepths(other, options, *fit);
    }
    fits.push_back(std::move(*fit));
  }
  if (fits.empty()) return std::unexpected(std::move(without.front().second));
  for (const auto& [group, error] : without) {
    // Too few for a line of their own, they still say what a depth costs.
    const bool is_used = std::ranges::any_of(fits, [&](const MachineFit& fit) {
      return std::ranges::any_of(fit.depths, [&](const DepthCost& cost) { return cost.depth == group->depth; });
    });
    if (!is_used) fits.front().warnings.push_back("no line of other rows: " + error.Message());
  }
  return fits;
}

}  // namespace boltbeam::lab
