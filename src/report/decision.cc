#include "report/decision.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernel/knobs.h"
#include "measure/paired.h"
#include "report/table.h"

namespace boltbeam::report {
namespace {

using nlohmann::ordered_json;
using search::Decision;
using search::GroupSearch;
using search::Trial;

std::string_view FateName(Trial::Fate fate) {
  switch (fate) {
    case Trial::Fate::kBest:
      return "best";
    case Trial::Fate::kEven:
      return "even";
    case Trial::Fate::kSlower:
      return "slower";
    case Trial::Fate::kDuplicate:
      return "duplicate";
    case Trial::Fate::kWrong:
      return "wrong";
    case Trial::Fate::kFailed:
      return "failed";
  }
  return "";
}

/// "dot=dot4 (was maddbytes), unroll=2 (was 1)"
std::string Turned(const kernel::GemvGeometry& from, const kernel::GemvGeometry& to) {
  std::string text;
  for (const kernel::Knob& knob : kernel::GemvKnobs()) {
    if (knob.get(from) == knob.get(to)) continue;
    text += fmt::format("{}{}={} (was {})", text.empty() ? "" : ", ", knob.name, knob.ValueText(knob.get(to)),
                        knob.ValueText(knob.get(from)));
  }
  return text;
}

std::string Percent(double ratio) { return fmt::format("{:+.1f} %", (ratio - 1) * 100); }

ordered_json TrialJson(const Trial& trial) {
  ordered_json json{{"candidate", trial.name}, {"fate", FateName(trial.fate)}, {"why", trial.why}};
  if (trial.ns > 0) {
    json["ns"] = trial.ns;
    json["ratio"] = trial.ratio.estimate;
    json["ratio_low"] = trial.ratio.low;
    json["ratio_high"] = trial.ratio.high;
    json["windows"] = trial.windows;
    json["remembered"] = trial.is_remembered;
  }
  if (trial.predicted_ns > 0) json["predicted_ns"] = trial.predicted_ns;
  return json;
}

ordered_json PartJson(const GroupSearch& search) {
  const search::PartSearch& found = search.found;
  ordered_json json;
  json["role"] = found.part.role;
  json["format"] = found.part.format->name;
  json["shape"] = found.part.ShapeText();
  json["tables"] = search.group.tables;
  json["calls"] = found.part.calls;
  json["free_product"] = search.free_product;
  json["legal"] = found.legal;
  json["predicted"] = found.predicted;
  json["timed"] = found.timed;
  json["remembered"] = found.remembered;
  json["best"] = kernel::GeometryText(found.best);
  json["best_ns"] = found.best_ns;
  json["default"] = kernel::GeometryText(found.start);
  json["default_ns"] = found.start_ns;
  json["gain"] = found.gain.estimate;
  json["gain_low"] = found.gain.low;
  json["gain_high"] = found.gain.high;
  json["seconds"] = found.seconds;
  json["compile_seconds"] = found.compile_seconds;
  if (!search.skipped.empty()) json["skipped"] = search.skipped;
  json["rejected"] = ordered_json::array();
  for (const search::Rejected& one : search.rejected) {
    json["rejected"].push_back({{"reason", one.reason}, {"evidence", one.evidence}, {"points", one.points}});
  }
  json["trials"] = ordered_json::array();
  for (const Trial& trial : found.trials) json["trials"].push_back(TrialJson(trial));
  return json;
}

std::string Json(const Decision& decision, const SearchOutcome& outcome) {
  ordered_json json{{"schema", "boltbeam.search.v1"}, {"model", outcome.model}, {"chip", outcome.chip}};
  json["threads"] = outcome.threads;
  json["start"] = outcome.start;
  json["parts"] = ordered_json::array();
  for (const GroupSearch& search : decision.groups) json["parts"].push_back(PartJson(search));
  if (!outcome.restored.empty()) json["restored"] = outcome.restored;
  json["timed"] = decision.Timed();
  json["remembered"] = decision.Remembered();
  json["seconds"] = decision.seconds;
  json["judge_seconds"] = outcome.judge_seconds;
  json["interrupted"] = decision.is_interrupted;
  if (!outcome.verdict.empty()) {
    json["verdict"] = {{"verdict", outcome.verdict}, {"reason", outcome.reason},   {"ratio", outcome.ratio},
                       {"ratio_low", outcome.low},   {"ratio_high", outcome.high}, {"record", outcome.record}};
  }
  if (!outcome.against_default.empty()) {
    json["against_default"] = {{"outcome", outcome.against_default}, {"ratio", outcome.default_ratio}};
  }
  for (const IdeaRow& idea : outcome.ideas) {
    json["ideas"].push_back(
        {{"name", idea.name},
         {"foretold_ns", idea.foretold_ns ? ordered_json(*idea.foretold_ns) : ordered_json(nullptr)},
         {"closed", idea.closed},
         {"verdict", idea.verdict},
         {"outcome", idea.outcome},
         {"ratio", idea.ratio},
         {"ratio_low", idea.low},
         {"ratio_high", idea.high}});
  }
  json["installed"] = outcome.plan;
  return json.dump(2) + "\n";
}

Table PartsTable(const Decision& decision) {
  Table table({{"part", "role", Align::kLeft},
               {"format", "format", Align::kLeft},
               {"shape", "shape", Align::kLeft},
               {"legal", "legal"},
               {"predicted", "predicted"},
               {"timed", "timed"},
               {"start", "default_ns"},
               {"best", "best_ns"},
               {"gain", "gain"}});
  for (const GroupSearch& search : decision.groups) {
    const search::PartSearch& found = search.found;
    const auto us = [](double ns) {
      return Cell(ns > 0 ? fmt::format("{:.1f} µs", ns / 1e3) : "", fmt::format("{}", ns));
    };
    const std::string timed =
        found.remembered > 0 ? fmt::format("{}+{}", found.timed, found.remembered) : fmt::format("{}", found.timed);
    table.Add({found.part.role, found.part.format->name, found.part.ShapeText(), fmt::format("{}", found.legal),
               fmt::format("{}", found.predicted), Cell(timed, fmt::format("{}", found.timed)), us(found.start_ns),
               us(found.best_ns > 0 ? found.best_ns : found.start_ns),
               search.skipped.empty() ? Cell(found.IsGain() ? Percent(found.gain.estimate) : "none",
                                             fmt::format("{}", found.gain.estimate))
                                      : Cell("-", "")});
  }
  return table;
}

/// What was judged, and below it why the others were not.
std::string IdeasText(const std::vector<IdeaRow>& ideas, bool is_markdown) {
  Table table({{"switched", "idea", Align::kLeft},
               {"foretold", "foretold_ns"},
               {"token", "ratio"},
               {"interval", "interval"},
               {"verdict", "verdict", Align::kLeft}});
  std::string closed;
  bool is_judged = false;
  for (const IdeaRow& idea : ideas) {
    if (!idea.closed.empty()) {
      closed += Wrap(fmt::format("{}: {}", idea.name, idea.closed), 2) + "\n";
      continue;
    }
    is_judged = true;
    table.Add({idea.name, idea.foretold_ns ? fmt::format("{:.1f} µs", *idea.foretold_ns / 1e3) : "-",
               Percent(idea.ratio), fmt::format("{} to {}", Percent(idea.low), Percent(idea.high)), idea.verdict});
  }
  std::string text;
  if (is_judged) text += "\n" + (is_markdown ? table.Markdown() : table.Text());
  if (!closed.empty()) text += "\nNot timed:\n" + closed;
  return text;
}

std::string Text(const Decision& decision, const SearchOutcome& outcome, bool is_markdown) {
  const Table table = PartsTable(decision);
  std::string text = fmt::format("{} on {}, {} threads, from {}\n\n", outcome.model, outcome.chip, outcome.threads,
                                 outcome.start == "default" ? "the default plan" : outcome.start);
  text += is_markdown ? table.Markdown() : table.Text();
  for (const GroupSearch& search : decision.groups) {
    if (!search.skipped.empty()) {
      text += "\n" + Wrap(fmt::format("{}: {}", search.group.part.table, search.skipped), 2) + "\n";
    }
    if (!search.found.IsGain()) continue;
    std::string turned = fmt::format("{}: {}", search.group.part.table, Turned(search.found.start, search.found.best));
    if (const auto why = outcome.restored.find(search.group.part.table); why != outcome.restored.end()) {
      turned += fmt::format("; not legal with {}: {}", outcome.start, why->second);
    }
    text += "\n" + Wrap(turned, 2) + "\n";
  }
  text += "\n" +
          Wrap(fmt::format("{} kernels timed, {} remembered, {:.1f} s ({:.1f} of them compiling and checking); a time "
                           "is one product's, by all threads, its weights from memory.",
                           decision.Timed(), decision.Remembered(), decision.seconds, decision.CompileSeconds())) +
          "\n";
  if (!outcome.verdict.empty()) {
    text += Wrap(fmt::format("Whole token: {} ({} to {}), {}: {}.", Percent(outcome.ratio), Percent(outcome.low),
                             Percent(outcome.high), outcome.verdict, outcome.reason)) +
            "\n";
  }
  if (!outcome.against_default.empty()) {
    const std::string ratio = outcome.default_ratio > 0 ? Percent(outcome.default_ratio) + ", " : "";
    text += Wrap(fmt::format("Against the default plan: {}{}{}", ratio, outcome.against_default,
                             outcome.IsGoodAgainstDefault() ? "." : ": not installed.")) +
            "\n";
  }
  text += IdeasText(outcome.ideas, is_markdown);
  if (!outcome.plan.empty()) {
    text += Wrap(fmt::format("Installed as {}: run, bench, audit and the others take it from now on; --plan default "
                             "runs without it, boltbeam plan remove takes it out.",
                             outcome.plan)) +
            "\n";
  } else if (outcome.verdict.empty()) {
    text += decision.is_interrupted ? "Interrupted: what was timed is kept, the same command goes on from there.\n"
            : decision.HasGain()    ? ""
                                    : "No candidate is faster than what runs now: nothing to judge or install.\n";
  }
  return text;
}

}  // namespace

bool SearchOutcome::IsGoodAgainstDefault() const {
  return against_default.empty() || against_default == measure::OutcomeName(measure::Outcome::kFaster) ||
         against_default == measure::OutcomeName(measure::Outcome::kNoDifference);
}

std::string SearchReport(const search::Decision& decision, const SearchOutcome& outcome, Form form) {
  if (form == Form::kJson) return Json(decision, outcome);
  if (form == Form::kCsv) return PartsTable(decision).Csv();
  return Text(decision, outcome, form == Form::kMarkdown);
}

}  // namespace boltbeam::report
