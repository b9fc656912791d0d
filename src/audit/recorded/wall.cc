// The wall identity: wall = union + host gap, union = node sum - overlap. Union is that of intervals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "audit/recorded/derive.h"

namespace boltbeam::audit {
namespace {

constexpr double kSourcePrecision = 0.001;

void DeriveIdentity(Deriver& deriver) {
  std::size_t index = 0;
  for (const Json& account : ListOf(deriver.document(), "/accounts")) {
    const std::string at = fmt::format("/accounts/{}", index++);
    const auto number = [&](const char* key) { return NumberOf(account, fmt::format("/{}", key)); };
    const auto united = Minus(number("node_sum_us"), number("overlap_us"));
    const auto wall = Plus(number("union_us"), number("host_gap_us"));
    deriver.Line(at, NameOf(account) + " union_us", number("union_us"), united, kSourcePrecision);
    deriver.Line(at, NameOf(account) + " wall_us", number("wall_us"), wall, kSourcePrecision);
    const auto residual = Minus(number("wall_us"), wall);
    deriver.Line(at, NameOf(account) + " residual_us", 0, residual, kSourcePrecision);
    if (const auto us = number("wall_us"); us && *us > 0) {
      deriver.Line(at, NameOf(account) + " rate_tok_s", number("rate_tok_s"), 1e6 / *us, 0.006);
    }
    if (residual && std::fabs(*residual) <= kSourcePrecision) {
      deriver.Finding(
          fmt::format("{}: the residual is zero at source precision ({:+.4f} µs)", NameOf(account), *residual));
    }
  }
}

void DeriveDeltas(Deriver& deriver) {
  const Json& document = deriver.document();
  const auto accounts = ListOf(document, "/accounts");
  if (accounts.size() != 2) return;
  for (const char* key : {"wall_us", "union_us", "host_gap_us", "node_sum_us", "overlap_us"}) {
    const std::string path = fmt::format("/{}", key);
    const double tolerance = std::string_view(key) == "union_us" ? 0.06 : kSourcePrecision;  // printed with one place
    deriver.Line("/deltas", fmt::format("difference of {}", key),
                 NumberOf(document, fmt::format("/deltas/recorded/{}", key)),
                 Minus(NumberOf(accounts[0], path), NumberOf(accounts[1], path)), tolerance);
  }
}

void DeriveClasses(Deriver& deriver) {
  const Json& document = deriver.document();
  const double tolerance = NumberOf(document, "/classes/tolerance/abs_us").value_or(kOnePlace);
  const auto rows = ListOf(document, "/classes/rows");
  for (const Json& row : rows) {
    deriver.Line("/classes", NameOf(row) + " delta_us", NumberOf(row, "/delta_us"),
                 Minus(NumberOf(row, "/fork_us"), NumberOf(row, "/llama_us")), tolerance);
  }
  for (const char* key : {"fork_us", "llama_us", "delta_us"}) {
    if (rows.empty()) break;
    deriver.Line("/classes/sum", fmt::format("sum of {}", key),
                 NumberOf(document, fmt::format("/classes/sum/recorded/{}", key)), SumOf(rows, key), tolerance);
  }
}

// Kernels that are resident and wait do no work: union = useful - useful overlap + what only spins.
void DeriveResidence(Deriver& deriver) {
  const Json& document = deriver.document();
  const std::string at = "/residence_identity";
  const double tolerance = NumberOf(document, at + "/tolerance/abs_us").value_or(kSourcePrecision);
  const auto united = NumberOf(document, at + "/union_us");
  deriver.Line(at, "residence union_us", united,
               Minus(NumberOf(document, at + "/node_sum_us"), NumberOf(document, at + "/overlap_us")), tolerance);
  for (const Json& arm : ListOf(document, at + "/arms")) {
    deriver.Line(
        at, NameOf(arm) + " union_us", united,
        Plus(Minus(NumberOf(arm, "/useful_us"), NumberOf(arm, "/useful_overlap_us")), NumberOf(arm, "/spin_only_us")),
        tolerance);
  }
  const std::string correction = "/correction_20260822";
  deriver.Line(correction, "union_difference_us", NumberOf(document, correction + "/union_difference_us"),
               Minus(NumberOf(document, correction + "/programmatic_launch_on/union_us"),
                     NumberOf(document, correction + "/programmatic_launch_off/union_us")),
               kSourcePrecision);
}

void DeriveBrackets(Deriver& deriver) {
  std::size_t index = 0;
  for (const Json& bracket : ListOf(deriver.document(), "/brackets")) {
    const std::string at = fmt::format("/brackets/{}", index++);
    const auto a = NumberOf(bracket, "/control_a_us"), c = NumberOf(bracket, "/control_c_us");
    const auto candidate = NumberOf(bracket, "/candidate_us");
    if (!a || !c || !candidate) continue;
    const double mid = (*a + *c) / 2, drift = std::fabs(*a - *c), delta = *candidate - mid;
    deriver.Line(at, NameOf(bracket) + " control_mid_us", NumberOf(bracket, "/expected_control_mid_us"), mid,
                 kSourcePrecision);
    deriver.Line(at, NameOf(bracket) + " delta_us", NumberOf(bracket, "/expected_delta_us"), delta, kThreePlaces);
    const char* verdict = std::fabs(delta) <= drift ? "neutral: within the drift of the controls"
                          : delta < 0               ? "faster"
                                                    : "slower";
    deriver.Finding(
        fmt::format("{}: {:+.3f} µs with controls {:.3f} µs apart: {}", NameOf(bracket), delta, drift, verdict));
  }
}

void DeriveRowSums(Deriver& deriver) {
  const Json& document = deriver.document();
  const auto anchors = ListOf(document, "/anchor_bodies_20260822/rows");
  for (const char* key : {"fork_us", "llama_us"}) {
    if (anchors.empty()) break;
    deriver.Line("/anchor_bodies_20260822", fmt::format("anchor {}", key),
                 NumberOf(document, fmt::format("/anchor_bodies_20260822/total/{}", key)), SumOf(anchors, key),
                 kThreePlaces);
  }
  const std::string tie = "/tie_out_5090_october";
  double kernels = 0;
  for (const Json& row : ListOf(document, tie + "/weight_kernel_rows")) {
    kernels += NumberOf(row, "/launches").value_or(0) * NumberOf(row, "/each_us").value_or(0);
  }
  if (kernels > 0) {
    deriver.Line(tie, "weight_kernels_us", NumberOf(document, tie + "/recomputed/weight_kernels_us"), kernels,
                 kOnePlace);
    const auto busy = Plus(NumberOf(document, tie + "/weight_kernels_ms"), NumberOf(document, tie + "/other_ms"));
    deriver.Line(tie, "gpu_busy_ms", NumberOf(document, tie + "/gpu_busy_ms"), busy, kThreePlaces);
    deriver.Line(tie, "token_ms", NumberOf(document, tie + "/token_ms"),
                 Plus(busy, NumberOf(document, tie + "/idle_ms")), kThreePlaces);
  }
  double isolated = 0;
  for (const Json& row : ListOf(document, "/isolated_sum_m3/rows")) {
    isolated += NumberOf(row, "/count").value_or(0) * NumberOf(row, "/each_us").value_or(0);
  }
  if (isolated > 0) {
    deriver.Line("/isolated_sum_m3", "sum_ms", NumberOf(document, "/isolated_sum_m3/sum_ms/recorded"), isolated / 1e3,
                 0.06);
  }
}

// The same kernels alone, under three ways to empty a cache, against the token: which way can be true.
void DeriveIsolated(Deriver& deriver) {
  const Json& document = deriver.document();
  const std::string at = "/isolated_vs_in_model_5090";
  const auto rows = ListOf(document, at + "/rows");
  const auto sum = [&](const char* key, double floor_us) {
    double ms = 0;
    for (const Json& row : rows) {
      ms += NumberOf(row, "/count").value_or(0) * (NumberOf(row, fmt::format("/{}", key)).value_or(0) - floor_us) / 1e3;
    }
    return ms;
  };
  if (rows.empty()) return;
  const double floor_us = NumberOf(rows[0], "/after_read_sweep_us").value_or(0);  // the empty kernel
  const auto recorded = [&](const char* key) { return NumberOf(document, at + "/sums/recorded_ms/" + key); };
  deriver.Line(at + "/sums", "isolated, no flush, ms", recorded("none"), sum("none_us", 0), 0.006);
  deriver.Line(at + "/sums", "isolated, store, ms", recorded("store"), sum("after_store_us", 0), 0.006);
  deriver.Line(at + "/sums", "isolated, read sweep less the empty kernel, ms", recorded("read_sweep_less_floor"),
               sum("after_read_sweep_us", floor_us), kThreePlaces);
  deriver.Line(at + "/sums", "in the model, ms", recorded("in_model"), sum("in_model_us", 0), kThreePlaces);
}

}  // namespace

void DeriveWallAccount(Deriver& deriver) {
  DeriveIdentity(deriver);
  DeriveDeltas(deriver);
  DeriveClasses(deriver);
  DeriveResidence(deriver);
  DeriveBrackets(deriver);
  DeriveRowSums(deriver);
  DeriveIsolated(deriver);
}

}  // namespace boltbeam::audit
