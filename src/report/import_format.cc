#include "report/import_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/printable.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using imports::Imported;
using imports::RowKind;
using Json = nlohmann::json;

constexpr std::size_t kMostRows = 20;  // of a text; JSON has all
constexpr std::size_t kNameWidth = 200;

Json Optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

std::string Shown(const Table& table, std::string_view format) {
  return format == "md" ? table.Markdown() : table.Text();
}

std::string Paragraph(std::string_view text, std::string_view format) {
  return format == "md" ? fmt::format("- {}\n", text) : Wrap(fmt::format("- {}", text), 2) + "\n";
}

// Rows of one name, kind and group together, by time.
struct Sum {
  std::string name, group;
  RowKind kind = RowKind::kKernel;
  double calls = 0, ns = 0;
  bool timed = true;
  std::string doubt;
};

std::vector<Sum> Sums(const Imported& imported) {
  std::map<std::tuple<RowKind, std::string, std::string>, Sum> sums;
  for (const imports::Row& row : imported.rows) {
    Sum& sum = sums[{row.kind, row.name, row.group}];
    sum.name = row.name;
    sum.group = row.group;
    sum.kind = row.kind;
    sum.calls += row.calls;
    sum.ns += row.total_ns.value_or(0);
    sum.timed = sum.timed && row.total_ns.has_value();
    if (sum.doubt.empty()) sum.doubt = row.doubt;
  }
  std::vector<Sum> list;
  for (auto& [key, sum] : sums) list.push_back(std::move(sum));
  std::ranges::stable_sort(list, std::greater<>(), &Sum::ns);
  return list;
}

constexpr std::array kRowKinds{RowKind::kKernel, RowKind::kCopy, RowKind::kHostCall, RowKind::kOperation};

// Whether the file tells several devices or processes apart.
bool HasGroups(const Imported& imported) {
  return std::ranges::any_of(kRowKinds, [&](RowKind kind) { return GroupsOf(imported, kind).size() > 1; });
}

std::string RowsTable(const Imported& imported, std::string_view format) {
  const std::vector<Sum> sums = Sums(imported);
  std::vector<Column> columns{
      {"what", "what", Align::kLeft}, {"name", "name", Align::kLeft}, {"calls", "calls"}, {"µs", "total_us"}};
  const bool groups = HasGroups(imported);
  if (groups) columns.insert(columns.begin() + 1, {"where", "group", Align::kLeft});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < std::min(sums.size(), kMostRows); ++i) {
    const Sum& sum = sums[i];
    std::vector<Cell> cells{std::string(RowKindName(sum.kind)), base::Printable(sum.name, kNameWidth),
                            fmt::format("{:g}", sum.calls),
                            sum.timed ? Decimal(sum.ns / 1e3, 1) : std::string("no time")};
    if (groups) cells.insert(cells.begin() + 1, base::Printable(sum.group, 40));
    table.Add(std::move(cells));
  }
  std::string text = Shown(table, format);
  if (sums.size() > kMostRows) text += fmt::format("and {} more names (-o json has all)\n", sums.size() - kMostRows);
  for (const Sum& sum : sums) {
    if (!sum.doubt.empty()) {
      text += Paragraph(fmt::format("{}: {}", base::Printable(sum.name.substr(0, sum.name.find(',')), 60), sum.doubt),
                        format);
    }
  }
  return text;
}

std::string TotalsText(const Imported& imported) {
  std::string text;
  const bool several = HasGroups(imported);
  for (const RowKind kind : kRowKinds) {
    for (const std::string& group : GroupsOf(imported, kind)) {
      const imports::Totals totals = TotalsOf(imported, kind, group);
      const std::string what = kind == RowKind::kHostCall ? "host calls" : fmt::format("{}s", RowKindName(kind));
      text += Wrap(fmt::format("{}{}: {} names, {:g} calls, {}", what,
                               several && !group.empty() ? " of " + base::Printable(group, 60) : "", totals.names,
                               totals.calls, totals.untimed == totals.rows ? "no times" : Duration(totals.ns)),
                   2) +
              "\n";
    }
  }
  for (const std::string& group : GroupsOf(imported, RowKind::kKernel)) {
    const auto timeline = TimelineOf(imported, group);
    if (!timeline) continue;
    text += Wrap(fmt::format("kernels{} from first start to last end {}: at least one runs {}, gaps {}, overlap {}",
                             several && !group.empty() ? " of " + base::Printable(group, 60) : "",
                             Duration(timeline->span_ns), Duration(timeline->union_ns), Duration(timeline->gaps_ns),
                             Duration(timeline->overlap_ns)),
                 2) +
            "\n";
  }
  if (several) {
    text += Wrap(
                "The file has several devices, processes or channels: each is an account of its own, and nothing is "
                "added up over them.") +
            "\n";
  }
  return text;
}

std::string RatesTable(const Imported& imported, std::string_view format) {
  Table table(
      {{"test", "test", Align::kLeft}, {"tok/s", "tok_s"}, {"±", "spread"}, {"from tokens and time", "checked"}});
  for (const imports::Rate& rate : imported.rates) {
    const auto number = [](const std::optional<double>& value) { return value ? Decimal(*value, 2) : std::string(); };
    table.Add(
        {base::Printable(rate.threads ? fmt::format("{}, {:g} threads", rate.test, *rate.threads) : rate.test, 60),
         rate.tok_s ? number(rate.tok_s) : std::string("unknown"), number(rate.spread), number(rate.checked)});
  }
  std::string text = Shown(table, format);
  for (const imports::Rate& rate : imported.rates) {
    if (!rate.note.empty()) text += Paragraph(fmt::format("{}: {}", rate.test, rate.note), format);
  }
  return text;
}

std::string FactsText(const Imported& imported) {
  std::string text;
  for (const imports::Fact& fact : imported.facts) {
    const std::string value = fact.value ? fmt::format("{:.10g}", *fact.value) : "";
    const std::string words = base::Printable(fact.text, 100);
    text += Wrap(fmt::format("{}: {}{}{}", base::Printable(fact.name, 100), value,
                             value.empty() || words.empty() ? "" : ", ",
                             value.empty() && words.empty() ? "unknown" : words),
                 2) +
            "\n";
  }
  return text;
}

std::string AttributionText(const audit::Attribution& attribution, std::string_view format) {
  Table table({{"kernel", "kernel", Align::kLeft}, {"part", "part", Align::kLeft}, {"calls", "calls"}, {"µs", "us"}});
  for (std::size_t i = 0; i < std::min(attribution.kernels.size(), kMostRows); ++i) {
    const audit::AttributedKernel& kernel = attribution.kernels[i];
    table.Add({base::Printable(kernel.name, 60), kernel.part.empty() ? "unattributed" : kernel.part,
               fmt::format("{:g}", kernel.calls), Decimal(kernel.total_ns / 1e3, 2)});
  }
  std::string text =
      fmt::format("One token of {:g}{}: attributed {}, unattributed {}\n\n{}", attribution.tokens,
                  attribution.group.empty() ? "" : ", " + base::Printable(attribution.group, 40),
                  Duration(attribution.attributed_ns), Duration(attribution.unattributed_ns), Shown(table, format));
  for (const audit::AttributedKernel& kernel : attribution.kernels) {
    if (kernel.part.empty())
      text += Paragraph(fmt::format("{}: {}", base::Printable(kernel.name, 60), kernel.why), format);
  }
  return text;
}

Json RowJson(const imports::Row& row) {
  return {{"kind", RowKindName(row.kind)},
          {"name", row.name},
          {"group", row.group},
          {"calls", row.calls},
          {"total_ns", Optional(row.total_ns)},
          {"start_ns", Optional(row.start_ns)},
          {"bytes", Optional(row.bytes)},
          {"printed_gb_s", Optional(row.printed_gb_s)},
          {"doubt", row.doubt},
          {"name_cut", row.name_cut},
          {"line", row.line}};
}

Json RateJson(const imports::Rate& rate) {
  return {{"test", rate.test},
          {"tokens", Optional(rate.tokens)},
          {"tok_s", Optional(rate.tok_s)},
          {"spread_tok_s", Optional(rate.spread)},
          {"checked_tok_s", Optional(rate.checked)},
          {"threads", Optional(rate.threads)},
          {"note", rate.note},
          {"line", rate.line}};
}

Json AttributionJson(const audit::Attribution& attribution) {
  Json kernels = Json::array();
  for (const audit::AttributedKernel& kernel : attribution.kernels) {
    kernels.push_back({{"kernel", kernel.name},
                       {"calls", kernel.calls},
                       {"total_ns", kernel.total_ns},
                       {"part", kernel.part.empty() ? Json(nullptr) : Json(kernel.part)},
                       {"why", kernel.why}});
  }
  return {{"group", attribution.group},
          {"tokens", attribution.tokens},
          {"attributed_ns", attribution.attributed_ns},
          {"unattributed_ns", attribution.unattributed_ns},
          {"kernels", std::move(kernels)}};
}

Json SumJson(const imports::Totals& sum) {
  return {{"rows", sum.rows},
          {"names", sum.names},
          {"calls", sum.calls},
          {"total_ns", sum.untimed == sum.rows ? Json(nullptr) : Json(sum.ns)}};
}

Json TimelineJson(const imports::Timeline& timeline) {
  return {{"span_ns", timeline.span_ns},
          {"union_ns", timeline.union_ns},
          {"gaps_ns", timeline.gaps_ns},
          {"overlap_ns", timeline.overlap_ns}};
}

// Of a kind with several groups there is no total: each group has its own.
Json TotalsJson(const Imported& imported) {
  Json totals = Json::object();
  for (const RowKind kind : kRowKinds) {
    const std::vector<std::string> groups = GroupsOf(imported, kind);
    if (groups.empty()) continue;
    Json& of_kind = totals[std::string(RowKindName(kind))];
    if (groups.size() == 1) of_kind = SumJson(TotalsOf(imported, kind));
    for (const std::string& group : groups) {
      Json sum = SumJson(TotalsOf(imported, kind, group));
      sum["group"] = group;
      const auto timeline = kind == RowKind::kKernel ? TimelineOf(imported, group) : std::nullopt;
      if (timeline) sum["timeline"] = TimelineJson(*timeline);
      of_kind["groups"].push_back(std::move(sum));
    }
  }
  return totals;
}

std::string ImportJson(const ShownImport& shown) {
  const Imported& imported = shown.imported;
  Json rows = Json::array(), rates = Json::array(), facts = Json::array(), refused = Json::array();
  for (const imports::Row& row : imported.rows) rows.push_back(RowJson(row));
  for (const imports::Rate& rate : imported.rates) rates.push_back(RateJson(rate));
  for (const imports::Fact& fact : imported.facts) {
    facts.push_back({{"name", fact.name}, {"text", fact.text}, {"value", Optional(fact.value)}});
  }
  for (const imports::Refused& one : imported.refused) refused.push_back({{"line", one.line}, {"reason", one.reason}});
  Json document = {{"schema", "boltbeam.import.v1"}, {"file", shown.file},
                   {"kind", imported.kind},          {"version", imported.version},
                   {"totals", TotalsJson(imported)}, {"rates", std::move(rates)},
                   {"facts", std::move(facts)},      {"rows", std::move(rows)},
                   {"refused", std::move(refused)},  {"notes", imported.notes}};
  const std::vector<std::string> groups = GroupsOf(imported, RowKind::kKernel);
  if (groups.size() == 1) {
    if (const auto timeline = TimelineOf(imported, groups.front())) document["timeline"] = TimelineJson(*timeline);
  }
  if (shown.attributions.size() == 1) document["attribution"] = AttributionJson(shown.attributions.front());
  for (const audit::Attribution& attribution : shown.attributions) {
    document["attributions"].push_back(AttributionJson(attribution));
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string Number(double value) { return fmt::format("{:.6g}", value); }

std::string State(const audit::DerivedLine& line) {
  if (!line.recorded) return "derived";
  if (line.Agrees()) return "agrees";
  return line.explained.empty() ? "OPEN" : "differs, explained";
}

Json RecordedJson(std::string_view file, const audit::RecordedAccount& account) {
  Json lines = Json::array(), fits = Json::array();
  for (const audit::DerivedLine& line : account.lines) {
    lines.push_back({{"section", line.section},
                     {"line", line.line},
                     {"recorded", Optional(line.recorded)},
                     {"derived", line.derived},
                     {"tolerance", line.tolerance},
                     {"agrees", line.Agrees()},
                     {"explained", line.explained}});
  }
  for (const audit::TollFit& fit : account.fits) {
    fits.push_back({{"loss", LossName(fit.loss)},
                    {"toll_ns", fit.toll_ns},
                    {"rate", fit.rate},
                    {"excess_ns", fit.excess_ns},
                    {"toll_share", fit.toll_share},
                    {"misfit", fit.misfit}});
  }
  return {{"schema", "boltbeam.recorded.v1"},
          {"file", file},
          {"of", account.schema},
          {"chip", account.chip},
          {"model", account.model},
          {"closes", account.Open().empty()},
          {"lines", std::move(lines)},
          {"fits", std::move(fits)},
          {"findings", account.findings},
          {"checks", account.checks}};
}

}  // namespace

std::string ImportReport(const ShownImport& shown, std::string_view format) {
  if (format == "json") return ImportJson(shown);
  const Imported& imported = shown.imported;
  std::string text =
      fmt::format("{}{}: {}{}\n\n", format == "md" ? "# " : "", base::Printable(shown.file), imported.kind,
                  imported.version.empty() ? "" : fmt::format(", {}", base::Printable(imported.version)));
  if (!imported.rates.empty()) text += RatesTable(imported, format) + "\n";
  if (!imported.rows.empty()) text += RowsTable(imported, format) + "\n" + TotalsText(imported) + "\n";
  if (!imported.facts.empty()) text += FactsText(imported) + "\n";
  for (const audit::Attribution& attribution : shown.attributions) text += AttributionText(attribution, format) + "\n";
  for (const imports::Refused& one : imported.refused) {
    text += Paragraph(fmt::format("line {} left out: {}", one.line, one.reason), format);
  }
  for (const std::string& note : imported.notes) text += Paragraph(note, format);
  return text;
}

std::string RecordedReport(std::string_view file, const audit::RecordedAccount& account, std::string_view format) {
  if (format == "json") return RecordedJson(file, account).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  Table table(
      {{"line", "line", Align::kLeft}, {"recorded", "recorded"}, {"derived", "derived"}, {"", "state", Align::kLeft}});
  for (const audit::DerivedLine& line : account.lines) {
    table.Add({base::Printable(line.line, 60), line.recorded ? Number(*line.recorded) : std::string(),
               Number(line.derived), State(line)});
  }
  const std::size_t open = account.Open().size();
  std::string text = fmt::format("{}{}: {}\n\n{}\n", format == "md" ? "# " : "", base::Printable(file),
                                 base::Printable(account.schema, 60), Shown(table, format));
  for (const std::string& finding : account.findings) text += Paragraph(finding, format);
  for (const audit::DerivedLine& line : account.lines) {
    if (!line.Agrees() && !line.explained.empty()) {
      text +=
          Paragraph(fmt::format("{} {}: the file's own check: {}", line.section, line.line, line.explained), format);
    }
  }
  text += open == 0 ? "The account closes.\n" : fmt::format("{} lines stay open.\n", open);
  return text;
}

}  // namespace boltbeam::report
