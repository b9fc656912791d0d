#include "report/account_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "audit/alone.h"
#include "audit/toll_fit.h"
#include "audit/why.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

constexpr double kMicro = 1e3;  // ns
constexpr double kCacheWorthNaming = 0.02;
constexpr double kLongTokenNs = 1e7;

// A long token's microseconds need no tenths, and its table no wider columns.
struct Micro {
  explicit Micro(const audit::Account& account) : places(account.token.now_ns < kLongTokenNs ? 1 : 0) {}
  std::string operator()(double ns) const { return Decimal(ns / kMicro, places); }
  int places;
};

std::string RowName(const std::string& role, const std::string& format) {
  if (role.empty()) return "the token";
  return format.empty() || format == "F32" ? role : role + " " + format;
}

}  // namespace

Table PartsTable(const audit::Account& account) {
  const Micro micro(account);
  Table table({{"part", "role", Align::kLeft},
               {"format", "format", Align::kLeft},
               {"calls", "calls"},
               {"bytes", "bytes"},
               {"floor", "floor_ns"},
               {"now", "now_ns"},
               {"excess", "excess_ns"},
               {"share", "share"},
               {"cause", "cause", Align::kLeft}});
  for (const audit::Part& part : account.parts) {
    table.Add({part.role, part.format, std::to_string(part.calls), Bytes(static_cast<double>(part.bytes)),
               micro(part.floor_ns), micro(part.now_ns), micro(part.excess_ns), Decimal(part.share * 100, 1),
               part.cause});
  }
  return table;
}

Table TieOutTable(const audit::Account& account) {
  const audit::Token& token = account.token;
  const Micro micro(account);
  Table table({{"", "line", Align::kLeft}, {"time", "ns"}, {"share", "share"}, {"", "", Align::kLeft}});
  const auto line = [&](const char* name, double ns, std::string remark) {
    table.Add({name, micro(ns), Decimal(ns / token.now_ns * 100, 1), std::move(remark)});
  };
  line("  floor", token.floor_ns, fmt::format("all bytes at {:.2f} GB/s", account.read_bandwidth_gb_s));
  line("+ lost in kernels", token.lost_ns, "");
  line("+ gaps", token.gaps_ns, fmt::format("waiting {}, host {}", micro(token.wait_ns), micro(token.host_ns)));
  line("+ unaccounted", token.unaccounted_ns,
       account.TiesOut() ? fmt::format("within {}", Percent(audit::kResidualBudget, 0))
                         : fmt::format("more than {}: does not tie out", Percent(audit::kResidualBudget, 0)));
  table.AddRule();
  line("= token", token.now_ns, fmt::format("{} to {}", micro(token.now_low_ns), micro(token.now_high_ns)));
  return table;
}

std::string RateText(const audit::Account& account) {
  return fmt::format("{:.2f} tok/s; limit {:.2f} tok/s; {} of the limit.", account.TokensPerSecond(),
                     account.LimitTokensPerSecond(), Percent(account.token.floor_ns / account.token.now_ns));
}

std::string AccountHeading(const AuditSubject& subject, const audit::Account& account) {
  return fmt::format("{}, {} threads, depth {}; times in µs, shares in %", subject.model_type, subject.threads,
                     account.depth);
}

std::string MethodText(const audit::Audit& audit, const audit::Account& account) {
  return fmt::format(
      "{} of {} pairs of windows (the middle half by time), {} each, one window plain and one stamped. {}. "
      "The session can't tell apart less than {}.{}",
      account.pairs_used, account.pairs,
      audit.window_tokens == 1 ? "a token" : fmt::format("{} tokens", audit.window_tokens), audit.bandwidth_method,
      Percent(account.band),
      account.cached_share < kCacheWorthNaming
          ? ""
          : fmt::format(
                " Up to {} of what a token reads may stay in the last-level cache: a part can be that much faster "
                "than memory.",
                Percent(account.cached_share)));
}

Table CausesTable(const audit::Account& account) {
  const Micro micro(account);
  Table table({{"gives back", "recoverable_ns"},
               {"%", "share"},
               {"", "finding", Align::kLeft},
               {"cause", "cause", Align::kLeft},
               {"part", "part", Align::kLeft},
               {"lever", "lever", Align::kLeft}});
  for (const audit::Cause& cause : account.causes) {
    table.Add({micro(cause.recoverable_ns), Decimal(cause.recoverable_ns / account.token.now_ns * 100, 1),
               cause.is_finding ? "finding" : "", cause.kind, RowName(cause.role, cause.format), cause.lever});
  }
  return table;
}

std::string FindingsText(const audit::Account& account) {
  const auto count = std::ranges::count_if(account.causes, &audit::Cause::is_finding);
  const std::string rule = fmt::format("causes of one kind and part that are worth {} of the token together, or more",
                                       Percent(audit::kFindingShare, 0));
  if (count == 0) return fmt::format("No finding ({}); what follows are ordinary lines.", rule);
  return fmt::format("{} of {} lines are findings: {}. The others are ordinary lines.", count, account.causes.size(),
                     rule);
}

std::string CausesText(const audit::Account& account) {
  const Micro micro(account);
  if (account.causes.empty()) return "No cause beyond what the session can't tell apart.\n";
  std::string text = Wrap(FindingsText(account)) + "\n\nWhat a cure gives back at most:\n";
  for (const audit::Cause& cause : account.causes) {
    text += fmt::format("\n{:>9} µs  {:>5}  {}: {}{}\n", micro(cause.recoverable_ns),
                        Percent(cause.recoverable_ns / account.token.now_ns), RowName(cause.role, cause.format),
                        cause.kind, cause.is_finding ? " (a finding)" : "");
    constexpr std::size_t kIndent = 14;
    const std::string pad(kIndent, ' ');
    text += pad + Wrap(cause.evidence + ".", kIndent, 80, kIndent) + "\n";
    text += pad + Wrap("Lever: " + cause.lever + ".", kIndent, 80, kIndent) + "\n";
  }
  return text;
}

Table AloneTable(const audit::Account& account) {
  const Micro micro(account);
  Table table({{"part", "role", Align::kLeft},
               {"format", "format", Align::kLeft},
               {"floor", "floor_ns"},
               {"in token", "now_ns"},
               {"cold", "cold_ns"},
               {"hot", "hot_ns"},
               {"which says", "", Align::kLeft}});
  for (const audit::Part& part : account.parts) {
    if (part.hot_ns <= 0) continue;
    table.Add({part.role, part.format, micro(part.floor_ns), micro(part.now_ns), micro(part.cold_ns),
               micro(part.hot_ns), audit::WhatAloneSays(account, part)});
  }
  return table;
}

Table WallTable(const audit::Account& account) {
  const Micro micro(account);
  const audit::Wall& wall = account.wall;
  Table table({{"", "line", Align::kLeft}, {"time", "ns"}, {"", "", Align::kLeft}});
  table.Add({"  sum of kernels", micro(wall.sum_ns), fmt::format("of {} threads", account.threads.size())});
  table.Add({"- overlap", micro(wall.overlap_ns), "more than one thread in a kernel"});
  table.AddRule();
  table.Add({"= union of kernels", micro(wall.union_ns), "at least one thread in a kernel"});
  table.Add({"+ gaps", micro(wall.gaps_ns), "no thread in a kernel"});
  table.AddRule();
  table.Add({"= token with stamps", micro(account.token.traced_ns), ""});
  table.Add({"+ unaccounted", micro(account.token.unaccounted_ns), ""});
  table.AddRule();
  table.Add({"= token", micro(account.token.now_ns), ""});
  return table;
}

Table ThreadsTable(const audit::Account& account) {
  const Micro micro(account);
  Table table({{"thread", "thread"},
               {"work", "work_ns"},
               {"imbalance", "imbalance_ns"},
               {"barrier", "barrier_ns"},
               {"idle", "idle_ns"},
               {"sum", "sum_ns"}});
  for (std::size_t i = 0; i < account.threads.size(); ++i) {
    const audit::ThreadTime& thread = account.threads[i];
    table.Add({std::to_string(i), micro(thread.work_ns), micro(thread.imbalance_ns), micro(thread.barrier_ns),
               micro(thread.idle_ns),
               micro(thread.work_ns + thread.imbalance_ns + thread.barrier_ns + thread.idle_ns)});
  }
  return table;
}

Table LayersTable(const audit::Account& account) {
  const Micro micro(account);
  Table table({{"layer", "layer"},
               {"part", "role", Align::kLeft},
               {"format", "format", Align::kLeft},
               {"bytes", "bytes"},
               {"floor", "floor_ns"},
               {"now", "now_ns"},
               {"excess", "excess_ns"}});
  std::map<std::pair<std::int32_t, std::string>, audit::StepTime> rows;
  for (const audit::StepTime& step : account.steps) {
    audit::StepTime& row = rows[{step.layer, step.role + " " + step.format}];
    row.role = step.role;
    row.format = step.format;
    row.layer = step.layer;
    row.bytes += step.bytes;
    row.floor_ns += step.floor_ns;
    row.now_ns += step.now_ns;
  }
  for (const auto& [key, row] : rows) {
    table.Add({row.layer < 0 ? "-" : std::to_string(row.layer), row.role, row.format,
               Bytes(static_cast<double>(row.bytes)), micro(row.floor_ns), micro(row.now_ns),
               micro(row.now_ns - row.floor_ns)});
  }
  return table;
}

Table DepthsTable(const audit::Audit& audit) {
  Table table({{"depth", "depth"},
               {"GB/s", "read_bandwidth_gb_s"},
               {"floor µs", "floor_ns"},
               {"token µs", "now_ns"},
               {"tok/s", "tok_s"},
               {"of limit %", "share"},
               {"unaccounted %", "unaccounted"}});
  for (const audit::Account& account : audit.accounts) {
    const audit::Token& token = account.token;
    table.Add({std::to_string(account.depth), Decimal(account.read_bandwidth_gb_s, 2),
               Decimal(token.floor_ns / kMicro, 0), Decimal(token.now_ns / kMicro, 0),
               Decimal(account.TokensPerSecond(), 2), Decimal(token.floor_ns / token.now_ns * 100, 1),
               Decimal(token.unaccounted_ns / token.now_ns * 100, 2)});
  }
  return table;
}

Table FactsTable(const std::vector<chip::Fact>& facts) {
  Table table({{"fact", "name", Align::kLeft},
               {"value", "value"},
               {"unit", "unit", Align::kLeft},
               {"known by", "provenance", Align::kLeft},
               {"method", "method", Align::kLeft},
               {"date", "date", Align::kLeft}});
  for (const chip::Fact& fact : facts) {
    table.Add({fact.name, fact.value >= 1e6 ? Scaled(fact.value) : fmt::format("{:g}", fact.value), fact.unit,
               std::string(chip::ProvenanceName(fact.provenance)), fact.method, fact.date});
  }
  return table;
}

Table ComparisonTable(const OtherProgram& comparison) {
  Table table({{"region", "region", Align::kLeft},
               {"ours µs", "ours_ns"},
               {"theirs µs", "theirs_ns"},
               {"ours - theirs", "difference_ns"}});
  for (const OtherProgram::Region& region : comparison.regions) {
    table.Add({region.name, Decimal(region.ours_ns / kMicro, 1), Decimal(region.theirs_ns / kMicro, 1),
               Decimal((region.ours_ns - region.theirs_ns) / kMicro, 1)});
  }
  if (!comparison.terms.empty()) table.AddRule();
  const auto shown = [](const std::optional<double>& ns) { return ns ? Decimal(*ns / kMicro, 1) : std::string("-"); };
  for (const OtherProgram::Term& term : comparison.terms) {
    table.Add({term.name, shown(term.ours_ns), shown(term.theirs_ns),
               Decimal((term.ours_ns.value_or(0) - term.theirs_ns.value_or(0)) / kMicro, 1)});
  }
  return table;
}

std::string TollText(const audit::Account& account) {
  std::map<std::tuple<std::string, std::string, std::uint64_t>, audit::Launches> kinds;
  for (const audit::Part& part : account.parts) {
    if (!part.streams || part.stored_bytes == 0) continue;
    for (const audit::StepTime& step : account.steps) {
      if (step.role != part.role || step.format != part.format) continue;
      audit::Launches& kind = kinds[{step.role, step.format, step.bytes}];
      kind.name = RowName(step.role, step.format);
      kind.bytes = step.floor_ns * account.read_bandwidth_gb_s;
      kind.now_ns = (kind.now_ns * kind.count + step.now_ns) / (kind.count + 1);
      ++kind.count;
    }
  }
  std::vector<audit::Launches> launches;
  for (auto& [key, kind] : kinds) launches.push_back(std::move(kind));
  if (launches.empty()) return {};
  return "Toll or rate: " + audit::DescribeToll(audit::FitToll(launches, account.read_bandwidth_gb_s, account.band)) +
         ".";
}

std::string VerdictText(const audit::Account& account) {
  const double share = account.token.unaccounted_ns / account.token.now_ns;
  return fmt::format("The account {}: {} of the token are unaccounted for, the budget is {}.",
                     account.TiesOut() ? "closes" : "does not close", Percent(share, 2),
                     Percent(audit::kResidualBudget, 0));
}

std::vector<std::string> Limits(const AuditSubject& subject, const audit::Audit& audit) {
  std::vector<std::string> limits = {
      "It is one session on one machine: another day, another memory layout or a busier neighbour give other figures. "
      "Only "
      "figures of one session belong in one comparison.",
      "A kernel alone is not the kernel in the token: alone a small table stays in a cache, and nothing overlaps with "
      "it. The "
      "columns cold and hot are beside the account, never in it.",
      "Floors are bytes over the measured read rate. They say what the memory asks, not what instructions ask.",
      "What a cure gives back is an upper bound: curing one cause can uncover the next, and two causes of the same "
      "part may "
      "share their time."};
  if (subject.threads > 1) {
    limits.emplace_back(
        "A part's time is the mean over threads; what the others wait for the slowest stands under waiting.");
  }
  if (std::ranges::any_of(audit.accounts,
                          [](const auto& account) { return account.cached_share >= kCacheWorthNaming; })) {
    limits.emplace_back(
        "A part of what a token reads may stay in the last-level cache: such a part can be faster than memory.");
  }
  if (audit.accounts.size() == 1) {
    limits.emplace_back(
        "It was taken at one depth of context: attention grows with the depth, everything else does not.");
  }
  if (audit.facts.reference_gb_s <= 0) {
    limits.emplace_back(
        "This chip was not measured on its own (chip measure): whether others take the memory's rate can't be "
        "told from a memory that is slow.");
  }
  if (audit.disturbed_share > audit::kDisturbedShare) {
    limits.emplace_back("Other programs disturbed this session: see the notes.");
  }
  return limits;
}

std::vector<std::pair<std::string, std::string>> Glossary() {
  std::vector<std::pair<std::string, std::string>> words = {
      {"token", "One step of writing: every table of the model is read once."},
      {"part", "A kind of work in the token, such as all tables that feed the feed-forward block, in one format."},
      {"floor",
       "The least time that a part can take: its bytes over the bytes a second that the memory gave in the same "
       "rounds."},
      {"now", "What the part took inside the real token, from time stamps: the mean over threads."},
      {"excess, lost", "Now less the floor."},
      {"gaps", "Time in no kernel: waiting at barriers, and the host between kernels."},
      {"unaccounted",
       "The token measured without time stamps, less all lines. It is a check; no line is filled in to make it small."},
      {"band", "What the session can't tell apart: twice the spread of its bandwidth readings, at least 5 %."},
      {"cold, hot",
       "A kernel alone: after the caches were swept by reading, and over so little that it stays in them."},
      {"imbalance", "Waiting for the slowest thread."},
      {"barrier", "What even the last thread to arrive waits until all go on."},
      {"none", "As a part's cause: it is at its floor, within the band. As a finding: nothing is worth naming."},
      {"cached", "As a part's cause: faster than its floor, because some of its bytes stayed in a cache."},
      {"finding",
       fmt::format("Causes of one kind and part that are worth {} of the token together, or more. Smaller ones are "
                   "ordinary lines.",
                   Percent(audit::kFindingShare, 0))},
      {"tie out, closes", "The lines of an account sum to what was measured as a whole, within a stated budget."},
      {"token with stamps", "The token while each kernel's beginning and end were noted."},
      {"toll, rate", "Time lost for each launch, however large; and for each byte, however many launches."},
      {"route, knob", "A fusion that a plan may take, and a choice in a kernel's geometry: kernel list names them."}};
  for (const audit::CauseKind& kind : audit::CauseKinds()) {
    words.emplace_back("cause " + std::string(kind.kind), std::string(kind.meaning) + ".");
  }
  return words;
}

}  // namespace boltbeam::report
