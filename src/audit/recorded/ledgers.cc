// The three ledgers of regions: two programs, region by region, and what the regions leave of the whole.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "audit/recorded/derive.h"

namespace boltbeam::audit {
namespace {

constexpr double kUsPerMs = 1e3, kUsPerS = 1e6;
constexpr std::array kSides{"fork_", "llama_"};  // how the fields of the two programs begin

std::optional<double> RateOf(std::optional<double> ms) {
  return ms && *ms > 0 ? std::optional(kUsPerMs / *ms) : std::nullopt;
}

void DeriveRates(Deriver& deriver) {
  const Json& document = deriver.document();
  for (const char* side : kSides) {
    const std::string at = fmt::format("/endpoint/{}", side);
    deriver.Line("/endpoint", fmt::format("{}rate_tok_s", side), NumberOf(document, at + "rate_tok_s"),
                 RateOf(NumberOf(document, at + "token_ms")), 0.005);
  }
}

// Every row's difference, and both columns' sums.
void DeriveColumns(Deriver& deriver, const std::string& difference) {
  std::size_t index = 0;
  for (const Json& row : ListOf(deriver.document(), "/regions")) {
    const auto fork = NumberOf(row, "/fork_us"), llama = NumberOf(row, "/llama_us");
    // "llama and delta approximate": a row that says of itself that it is rounded
    const bool rounded =
        row.is_object() && row.contains("note") && row["note"].dump().find("approx") != std::string::npos;
    deriver.Line(fmt::format("/regions/{}", index++), NameOf(row) + " " + difference, NumberOf(row, "/" + difference),
                 Minus(fork, llama), rounded ? kWhole : kThreePlaces);
  }
}

}  // namespace

void DeriveDecodeLedger(Deriver& deriver) {
  const Json& document = deriver.document();
  DeriveRates(deriver);
  const auto fork = NumberOf(document, "/endpoint/fork_token_ms"),
             llama = NumberOf(document, "/endpoint/llama_token_ms");
  const auto ahead_ms = Minus(llama, fork);
  const auto ahead_us = ahead_ms ? std::optional(*ahead_ms * kUsPerMs) : std::nullopt;
  deriver.Line("/endpoint", "fork_ahead_us", NumberOf(document, "/endpoint/fork_ahead_us"), ahead_us, kThreePlaces);
  deriver.Line("/endpoint", "fork_ahead_tok_s", NumberOf(document, "/endpoint/fork_ahead_tok_s"),
               Minus(RateOf(fork), RateOf(llama)), 0.005);
  const double net = SumOf(ListOf(document, "/regions"), "fork_advantage_us");
  deriver.Line("/net_fork_advantage_us", "net_fork_advantage_us", NumberOf(document, "/net_fork_advantage_us/recorded"),
               net, kThreePlaces);
  for (const std::string_view side : kSides) {
    const std::string at = fmt::format("/vocabulary/{}", side.substr(0, side.size() - 1));
    const auto prep = NumberOf(document, at + "/activation_prep_us"), body = NumberOf(document, at + "/body_us");
    deriver.Line(at, "lifecycle_us", NumberOf(document, at + "/lifecycle_us"), Plus(prep, body), kThreePlaces);
    const std::string above = fmt::format("/vocabulary/{}body_above_floor_us", side);
    deriver.Line("/vocabulary", fmt::format("{}body_above_floor_us", side), NumberOf(document, above),
                 Minus(body, NumberOf(document, "/vocabulary/streaming_floor_us")), kThreePlaces);
  }
  const auto bytes = NumberOf(document, "/vocabulary/tensor_bytes");
  const auto floor_us = NumberOf(document, "/vocabulary/streaming_floor_us");
  if (bytes && floor_us && *floor_us > 0) {
    deriver.Line("/vocabulary", "floor_implied_gb_s", NumberOf(document, "/vocabulary/recomputed/floor_implied_gb_s"),
                 *bytes / *floor_us / 1e3, kThreePlaces);
  }
  deriver.Line("/endpoint_vs_regions", "unexplained_us", NumberOf(document, "/endpoint_vs_regions/unexplained_us"),
               ahead_us ? std::optional(net - *ahead_us) : std::nullopt, kThreePlaces);
  if (ahead_us) {
    deriver.Finding(
        fmt::format("the regions are {:.1f} µs ahead and the token {:.1f}: {:.1f} µs lie outside the regions "
                    "(scheduling, graph edges, "
                    "sampling)",
                    net, *ahead_us, net - *ahead_us));
  }
}

void DeriveActiveBodies(Deriver& deriver) {
  const Json& document = deriver.document();
  DeriveColumns(deriver, "fork_minus_llama_us");
  const auto rows = ListOf(document, "/regions");
  const double fork = SumOf(rows, "fork_us"), llama = SumOf(rows, "llama_us");
  deriver.Line("/total", "fork_us", NumberOf(document, "/total/recorded/fork_us"), fork, kThreePlaces);
  deriver.Line("/total", "llama_us", NumberOf(document, "/total/recorded/llama_us"), llama, kThreePlaces);
  deriver.Line("/total", "fork_minus_llama_us", NumberOf(document, "/total/recorded/fork_minus_llama_us"), fork - llama,
               kThreePlaces);
  std::size_t index = 0;
  for (const Json& product : ListOf(document, "/products")) {
    const auto count = NumberOf(product, "/count"), each = NumberOf(product, "/each_us");
    deriver.Line(fmt::format("/products/{}", index++), NameOf(product) + " us", NumberOf(product, "/expected_us"),
                 count && each ? std::optional(*count * *each) : std::nullopt, kThreePlaces);
  }
  std::optional<double> differences[2];
  const char* sections[] = {"/node_sums", "/endpoint"};
  const char* forks[] = {"/fork_adjusted_us", "/fork_us"};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string at = sections[i];
    differences[i] = Minus(NumberOf(document, at + forks[i]), NumberOf(document, at + "/llama_us"));
    deriver.Line(at, "fork_minus_llama_us", NumberOf(document, at + "/fork_minus_llama_us"), differences[i],
                 kThreePlaces);
  }
  deriver.Line("/boundary_residual", "boundary_residual_us", NumberOf(document, "/boundary_residual/expected_us"),
               Minus(differences[1], differences[0]), kThreePlaces);
  const auto projected =
      Minus(NumberOf(document, "/endpoint/fork_us"), NumberOf(document, "/regions/6/fork_minus_llama_us"));
  deriver.Line("/projection", "projection_us", NumberOf(document, "/projection/expected_us"), projected, kThreePlaces);
  deriver.Line("/projection", "projection_tok_s", NumberOf(document, "/projection/expected_tok_s"),
               projected ? std::optional(kUsPerS / *projected) : std::nullopt, kThreePlaces);
}

void DeriveLifecycle(Deriver& deriver) {
  const Json& document = deriver.document();
  DeriveRates(deriver);
  const auto debt_ms =
      Minus(NumberOf(document, "/endpoint/fork_token_ms"), NumberOf(document, "/endpoint/llama_token_ms"));
  deriver.Line("/endpoint", "debt_us", NumberOf(document, "/endpoint/debt_us"),
               debt_ms ? std::optional(*debt_ms * kUsPerMs) : std::nullopt, kThreePlaces);
  const auto node_fork = NumberOf(document, "/node_sum/fork_us"), node_llama = NumberOf(document, "/node_sum/llama_us");
  deriver.Line("/node_sum", "debt_us", NumberOf(document, "/node_sum/debt_us"), Minus(node_fork, node_llama),
               kThreePlaces);
  DeriveColumns(deriver, "delta_us");
  double losing = 0, winning = 0;
  const auto rows = ListOf(document, "/regions");
  for (const Json& row : rows) {
    const double delta = NumberOf(row, "/delta_us").value_or(0);
    (delta > 0 ? losing : winning) += std::fabs(delta);
  }
  deriver.Line("/totals", "gross_losing_us", NumberOf(document, "/totals/recorded/gross_losing_us"), losing, kWhole);
  deriver.Line("/totals", "wins_us", NumberOf(document, "/totals/recorded/wins_us"), winning, kWhole);
  deriver.Line("/totals", "net_us", NumberOf(document, "/totals/recorded/net_us"), losing - winning, kWhole);
  // The provider is shared by several bodies and charged once.
  const double provider = NumberOf(document, "/shared_q8_provider/fork_us").value_or(0);
  const double fork = SumOf(rows, "fork_us") + provider, llama = SumOf(rows, "llama_us");
  deriver.Line("/totals", "fork_rows_minus_node_sum_us",
               NumberOf(document, "/totals/recomputed/fork_rows_minus_node_sum_us"), Minus(fork, node_fork),
               kThreePlaces);
  deriver.Line("/totals", "llama_rows_minus_node_sum_us",
               NumberOf(document, "/totals/recomputed/llama_rows_minus_node_sum_us"), Minus(llama, node_llama),
               kThreePlaces);
  if (node_fork && node_llama) {
    deriver.Finding(
        fmt::format("the rows do not sum to their node sums: {:+.3f} µs for the fork, {:+.3f} µs for llama.cpp; the "
                    "rows net {:+.1f} µs "
                    "where the node sums differ by {:+.1f}",
                    fork - *node_fork, llama - *node_llama, losing - winning, *node_fork - *node_llama));
  }
}

}  // namespace boltbeam::audit
