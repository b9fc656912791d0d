#include "report/audit_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicro = 1e3;  // ns
constexpr double kCacheWorthNaming = 0.02;
constexpr double kLongTokenNs = 1e7;

// A long token's microseconds need no tenths, and its table no wider columns.
struct Micro {
  explicit Micro(const audit::Account& account) : places(account.token.now_ns < kLongTokenNs ? 1 : 0) {}
  std::string operator()(double ns) const { return Decimal(ns / kMicro, places); }
  int places;
};

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

Table TieOut(const audit::Account& account) {
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

std::string Rate(const audit::Account& account) {
  return fmt::format("{:.2f} tok/s; limit {:.2f} tok/s; {} of the limit.", account.TokensPerSecond(),
                     account.LimitTokensPerSecond(), Percent(account.token.floor_ns / account.token.now_ns));
}

std::string Heading(const AuditSubject& subject, const audit::Account& account) {
  return fmt::format("{}, {} threads, depth {}; times in µs, shares in %", subject.model_type, subject.threads,
                     account.depth);
}

std::string Method(const audit::Audit& audit, const audit::Account& account) {
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

Json PartJson(const audit::Part& part) {
  return {{"role", part.role},
          {"format", part.format},
          {"calls", part.calls},
          {"steps", part.steps},
          {"bytes", part.bytes},
          {"stored_bytes", part.stored_bytes},
          {"floor_ns", part.floor_ns},
          {"now_ns", part.now_ns},
          {"excess_ns", part.excess_ns},
          {"share", part.share},
          {"imbalance_ns", part.imbalance_ns},
          {"barrier_ns", part.release_ns},
          {"cause", part.cause}};
}

Json TokenJson(const audit::Token& token) {
  return {{"now_ns", token.now_ns},           {"now_low_ns", token.now_low_ns},
          {"now_high_ns", token.now_high_ns}, {"floor_ns", token.floor_ns},
          {"lost_ns", token.lost_ns},         {"gaps_ns", token.gaps_ns},
          {"wait_ns", token.wait_ns},         {"host_ns", token.host_ns},
          {"traced_ns", token.traced_ns},     {"unaccounted_ns", token.unaccounted_ns}};
}

Json AccountJson(const audit::Account& account) {
  Json parts = Json::array();
  for (const audit::Part& part : account.parts) parts.push_back(PartJson(part));
  return {{"depth", account.depth},
          {"read_bandwidth_gb_s", account.read_bandwidth_gb_s},
          {"band", account.band},
          {"cached_share", account.cached_share},
          {"pairs", account.pairs},
          {"pairs_used", account.pairs_used},
          {"tok_s", account.TokensPerSecond()},
          {"limit_tok_s", account.LimitTokensPerSecond()},
          {"share_of_limit", account.token.floor_ns / account.token.now_ns},
          {"ties_out", account.TiesOut()},
          {"token", TokenJson(account.token)},
          {"parts", std::move(parts)}};
}

Json EnvironmentJson(const audit::Audit& audit) {
  const measure::Environment& environment = audit.environment;
  return {{"date", environment.date},
          {"cpu", environment.cpu_model},
          {"kernel", environment.kernel},
          {"governor", environment.governor},
          {"huge_pages", environment.huge_pages},
          {"affinity", environment.affinity},
          {"quota_cpus", environment.quota_cpus},
          {"load_1m", environment.load_1m},
          {"disturbances", audit.disturbances},
          {"disturbed_share", audit.disturbed_share},
          {"stable", audit.disturbed_share <= audit::kDisturbedShare},
          {"boltbeam", environment.boltbeam_version}};
}

}  // namespace

std::vector<std::string> AuditNotes(const audit::Audit& audit) {
  std::vector<std::string> notes;
  if (audit.disturbed_share > audit::kDisturbedShare) {
    notes.push_back(fmt::format(
        "the machine was disturbed in {} of the rounds: {}", Percent(audit.disturbed_share, 0),
        audit.disturbances.empty() ? "short interruptions" : fmt::format("{}", fmt::join(audit.disturbances, "; "))));
  }
  return notes;
}

std::string AuditText(const AuditSubject& subject, const audit::Audit& audit) {
  std::string text = fmt::format("{}\n{}\n", base::Printable(subject.model_filename), subject.machine);
  for (const audit::Account& account : audit.accounts) {
    text += fmt::format("\n{}\n\n{}\n{}\n{}\n{}\n", Heading(subject, account), PartsTable(account).Text(),
                        TieOut(account).Text(), Rate(account), Wrap(Method(audit, account)));
  }
  return text;
}

std::string AuditMarkdown(const AuditSubject& subject, const audit::Audit& audit) {
  std::string text = fmt::format("# Audit of {}\n\n{}\n", base::Printable(subject.model_filename), subject.machine);
  for (const audit::Account& account : audit.accounts) {
    text += fmt::format("\n## {}\n\n{}\n{}\n{}\n\n{}\n", Heading(subject, account), PartsTable(account).Markdown(),
                        TieOut(account).Markdown(), Rate(account), Method(audit, account));
  }
  return text;
}

std::string AuditJson(const AuditSubject& subject, const audit::Audit& audit) {
  Json depths = Json::array();
  for (const audit::Account& account : audit.accounts) depths.push_back(AccountJson(account));
  const Json document = {
      {"schema", "boltbeam.audit.v1"},
      {"model", {{"filename", subject.model_filename}, {"type", subject.model_type}}},
      {"machine", subject.machine},
      {"threads", subject.threads},
      {"kv_format", subject.kv_format},
      {"plan_id", subject.plan_id},
      {"weights_bytes", subject.memory.weights_bytes},
      {"kv_bytes", subject.memory.kv_bytes},
      {"huge_page_bytes", subject.memory.huge_page_bytes},
      {"protocol",
       {{"rounds", "probe, then pairs of windows A B, B A, B A, A B; the next round with A and B exchanged"},
        {"estimate", "mean over the middle half of the pairs by total time"},
        {"window_tokens", audit.window_tokens},
        {"bandwidth", audit.bandwidth_method},
        {"cache_bandwidth_gb_s", audit.cache_gb_s},
        {"clock", audit.clock},
        {"stamp_ns", audit.stamp_ns},
        {"stamps_per_thread", audit.stamps},
        {"residual_budget", audit::kResidualBudget},
        {"seed", audit.seed}}},
      {"environment", EnvironmentJson(audit)},
      {"depths", std::move(depths)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace boltbeam::report
