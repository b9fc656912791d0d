#include "report/audit_json.h"

#include <cmath>
#include <utility>

#include "audit/alone.h"
#include "audit/why.h"

namespace boltbeam::report {
namespace {

using Json = nlohmann::ordered_json;

Json PartJson(const audit::Account& account, const audit::Part& part) {
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
          {"cold_ns", part.cold_ns},
          {"hot_ns", part.hot_ns},
          {"alone_says", audit::WhatAloneSays(account, part)},
          {"thread_ns", part.thread_ns},
          {"flops", part.flops},
          {"cause", part.cause}};
}

Json TokenJson(const audit::Token& token) {
  return {{"now_ns", token.now_ns},           {"now_low_ns", token.now_low_ns},
          {"now_high_ns", token.now_high_ns}, {"floor_ns", token.floor_ns},
          {"lost_ns", token.lost_ns},         {"gaps_ns", token.gaps_ns},
          {"wait_ns", token.wait_ns},         {"host_ns", token.host_ns},
          {"traced_ns", token.traced_ns},     {"unaccounted_ns", token.unaccounted_ns}};
}

Json CauseJson(const audit::Cause& cause) {
  return {{"kind", cause.kind},         {"role", cause.role},
          {"format", cause.format},     {"recoverable_ns", cause.recoverable_ns},
          {"evidence", cause.evidence}, {"lever", cause.lever},
          {"finding", cause.is_finding}};
}

Json ThreadJson(const audit::ThreadTime& thread) {
  return {{"work_ns", thread.work_ns},
          {"imbalance_ns", thread.imbalance_ns},
          {"barrier_ns", thread.barrier_ns},
          {"idle_ns", thread.idle_ns}};
}

Json StepJson(const audit::StepTime& step) {
  return {{"role", step.role},         {"format", step.format}, {"layer", step.layer},          {"bytes", step.bytes},
          {"floor_ns", step.floor_ns}, {"now_ns", step.now_ns}, {"slowest_ns", step.slowest_ns}};
}

template <typename T, typename To>
Json List(const std::vector<T>& values, const To& to) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(to(value));
  return list;
}

// One span: thread, step of the plan (-1: at a barrier), phase, begin and end.
Json TimelineJson(const audit::Timeline& timeline) {
  const auto rounded = [](double ns) { return std::llround(ns); };
  Json spans = Json::array();
  for (const audit::TimelineSpan& span : timeline.spans) {
    spans.push_back({span.thread, span.step, span.phase, rounded(span.begin_ns), rounded(span.end_ns)});
  }
  return {{"token_ns", rounded(timeline.token_ns)},
          {"span_fields", {"thread", "step", "phase", "begin_ns", "end_ns"}},
          {"spans", std::move(spans)}};
}

// A row for each kernel, in whole nanoseconds: the page has many.
Json StepRows(const audit::Account& account) {
  Json rows = Json::array();
  for (const audit::StepTime& step : account.steps) {
    rows.push_back(
        {step.role, step.format, step.layer, step.bytes, std::llround(step.floor_ns), std::llround(step.now_ns)});
  }
  return {{"fields", {"role", "format", "layer", "bytes", "floor_ns", "now_ns"}}, {"rows", std::move(rows)}};
}

Json AccountJson(const audit::Account& account, bool rows) {
  Json parts = Json::array();
  for (const audit::Part& part : account.parts) parts.push_back(PartJson(account, part));
  return {{"depth", account.depth},
          {"read_bandwidth_gb_s", account.read_bandwidth_gb_s},
          {"band", account.band},
          {"cached_share", account.cached_share},
          {"alone_before_gb_s", account.alone_before_gb_s},
          {"alone_after_gb_s", account.alone_after_gb_s},
          {"pairs", account.pairs},
          {"pairs_used", account.pairs_used},
          {"tok_s", account.TokensPerSecond()},
          {"limit_tok_s", account.LimitTokensPerSecond()},
          {"share_of_limit", account.token.floor_ns / account.token.now_ns},
          {"ties_out", account.TiesOut()},
          {"token", TokenJson(account.token)},
          {"parts", std::move(parts)},
          {"causes", List(account.causes, CauseJson)},
          {"wall",
           {{"kernels_sum_ns", account.wall.sum_ns},
            {"overlap_ns", account.wall.overlap_ns},
            {"kernels_union_ns", account.wall.union_ns},
            {"gaps_ns", account.wall.gaps_ns}}},
          {"barriers", account.barriers},
          {"threads", List(account.threads, ThreadJson)},
          {"steps", rows ? StepRows(account) : List(account.steps, StepJson)}};
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

Json AuditDocument(const AuditSubject& subject, const audit::Audit& audit, bool timelines) {
  Json depths = Json::array();
  for (std::size_t i = 0; i < audit.accounts.size(); ++i) {
    depths.push_back(AccountJson(audit.accounts[i], timelines));
    if (timelines && i < audit.timelines.size()) depths.back()["timeline"] = TimelineJson(audit.timelines[i]);
  }
  return {{"schema", "boltbeam.audit.v1"},
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
            {"finding_share", audit::kFindingShare},
            {"seed", audit.seed}}},
          {"environment", EnvironmentJson(audit)},
          {"depths", std::move(depths)}};
}

std::string AuditJson(const AuditSubject& subject, const audit::Audit& audit) {
  return AuditDocument(subject, audit, false).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace boltbeam::report
