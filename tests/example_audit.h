// Test support: an audit made by hand, of a plan with a head and four layers on two threads, at two depths.
#pragma once

#include <string>
#include <utility>

#include "audit/audit.h"
#include "audit/why.h"
#include "report/audit_format.h"

namespace boltbeam::report {

inline void AddExampleSteps(audit::Account& account, audit::Audit& audit, bool first) {
  const auto add = [&](const std::string& role, const std::string& format, std::int32_t layer, double floor_ns,
                       double now_ns) {
    account.steps.push_back(
        {role, format, layer, static_cast<std::uint64_t>(floor_ns * 40), floor_ns, now_ns, now_ns * 1.02});
    if (!first) return;
    engine::StepInfo step;
    step.role = role;
    step.format = format;
    step.layer = layer;
    step.kernel = "gemv." + role;
    step.phase = static_cast<std::uint32_t>(audit.steps.size());
    step.stored_bytes = static_cast<std::uint64_t>(floor_ns * 40);
    step.streams = format != "F32";
    audit.steps.push_back(step);
  };
  for (std::int32_t layer = 0; layer < 4; ++layer) {
    add("norm", "F32", layer, 100, 2000);
    add("attn_qo", "Q4_K", layer, 200e3, 210e3 + 5e3 * layer);
    add("ffn_gate_up", "Q4_K", layer, 500e3, layer == 2 ? 900e3 : 520e3);
    add("ffn_down", "Q6_K", layer, 300e3, 310e3);
  }
  add("lm_head", "Q6_K", -1, 2000e3, 2050e3);
}

inline audit::Part ExamplePart(const audit::Account& account, const std::string& role, const std::string& format) {
  audit::Part part{.role = role, .format = format, .cause = "none"};
  for (const audit::StepTime& step : account.steps) {
    if (step.role != role) continue;
    ++part.calls;
    ++part.steps;
    part.bytes += step.bytes;
    part.floor_ns += step.floor_ns;
    part.now_ns += step.now_ns;
  }
  part.stored_bytes = part.bytes;
  part.excess_ns = part.now_ns - part.floor_ns;
  part.streams = format != "F32";
  part.flops = part.streams ? part.bytes * 4 : part.bytes / 4;
  part.cold_ns = part.streams ? part.now_ns * 1.05 : 0;
  part.hot_ns = part.streams ? part.floor_ns * 0.45 : 0;
  part.thread_ns = {part.now_ns * 0.99, part.now_ns * 1.01};
  part.imbalance_ns = part.now_ns * 0.01;
  return part;
}

inline void AddExampleTimeline(const audit::Account& account, audit::Audit& audit) {
  audit::Timeline timeline{.depth = account.depth, .token_ns = account.token.traced_ns, .spans = {}};
  for (std::uint32_t thread = 0; thread < 2; ++thread) {
    double at = 1000;
    for (std::size_t step = 0; step < account.steps.size(); ++step) {
      const double end = at + account.steps[step].now_ns;
      timeline.spans.push_back({thread, static_cast<std::int32_t>(step), static_cast<std::uint32_t>(step), at, end});
      timeline.spans.push_back({thread, -1, static_cast<std::uint32_t>(step), end, end + 500});
      at = end + 600;
    }
  }
  audit.timelines.push_back(std::move(timeline));
}

inline audit::Audit ExampleAudit() {
  audit::Audit audit;
  audit.window_tokens = 1;
  audit.bandwidth_method = "Read bandwidth: an example";
  audit.environment.date = "2026-01-02T03:04:05Z";
  audit.environment.boltbeam_version = "0";
  for (const std::uint64_t depth : {0, 4096}) {
    audit::Account account;
    account.depth = depth;
    account.read_bandwidth_gb_s = 40;
    account.band = 0.05;
    account.pairs = 100;
    account.pairs_used = 50;
    AddExampleSteps(account, audit, audit.accounts.empty());
    for (const auto& [role, format] :
         {std::pair("lm_head", "Q6_K"), std::pair("ffn_gate_up", "Q4_K"), std::pair("ffn_down", "Q6_K"),
          std::pair("attn_qo", "Q4_K"), std::pair("norm", "F32")}) {
      account.parts.push_back(ExamplePart(account, role, format));
    }
    if (depth > 0) {
      audit::Part attention{.role = "attention", .format = "F16", .cause = "rate"};
      attention.calls = attention.steps = 4;
      attention.bytes = 32'000'000;
      attention.floor_ns = 800e3;
      attention.now_ns = 1000e3;
      attention.excess_ns = 200e3;
      attention.flops = 64'000'000;
      account.parts.push_back(attention);
    }
    audit::Token& token = account.token;
    for (audit::Part& part : account.parts) {
      token.floor_ns += part.floor_ns;
      token.lost_ns += part.excess_ns;
    }
    token.wait_ns = 60e3;
    token.host_ns = 20e3;
    token.gaps_ns = 80e3;
    token.traced_ns = token.floor_ns + token.lost_ns + token.gaps_ns;
    token.unaccounted_ns = -10e3;
    token.now_ns = token.traced_ns + token.unaccounted_ns;
    token.now_low_ns = token.now_ns * 0.99;
    token.now_high_ns = token.now_ns * 1.01;
    for (audit::Part& part : account.parts) part.share = part.now_ns / token.now_ns;
    const double work = token.floor_ns + token.lost_ns;
    account.threads = {{work, 20e3, 40e3, 20e3}, {work, 20e3, 40e3, 20e3}};
    account.wall = {2 * work, work + 10e3, work - 10e3, 70e3};
    account.barriers = 17;
    account.causes = audit::CausesOf(account, {}, audit.facts);
    AddExampleTimeline(account, audit);
    audit.accounts.push_back(std::move(account));
  }
  return audit;
}

inline AuditSubject ExampleSubject() {
  AuditSubject subject;
  subject.model_filename = "a model.gguf";
  subject.model_type = "example 1B Q4_K";
  subject.machine = "Some CPU";
  subject.plan_id = "0123";
  subject.threads = 2;
  subject.kv_format = "f16";
  subject.peak_gop_s = 900;
  chip::Fact fact;
  fact.name = "read_bandwidth_gb_s";
  fact.value = 40;
  fact.unit = "GB/s";
  fact.provenance = chip::Provenance::kMeasured;
  fact.method = "generated probes";
  subject.facts = {fact};
  return subject;
}

}  // namespace boltbeam::report
