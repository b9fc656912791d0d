// The formulas of docs/formulas.md, one function each. A test checks the document's examples against them.
#pragma once

#include <algorithm>

namespace boltbeam::roofline {

/// Nanoseconds to move bytes: 1 GB/s is one byte a nanosecond.
constexpr double MemoryFloorNs(double bytes, double bandwidth_gb_s) { return bytes / bandwidth_gb_s; }

/// Nanoseconds for that many floating-point operations.
constexpr double ComputeFloorNs(double flops, double peak_flop_s) { return flops / peak_flop_s * 1e9; }

/// Tokens per second when each pass of `tokens` takes floor_ns.
constexpr double LimitTokensPerSecond(double floor_ns, double tokens = 1) { return tokens * 1e9 / floor_ns; }

/// Operations that the chip can do for each byte its memory delivers.
constexpr double Ridge(double peak_flop_s, double bandwidth_gb_s) { return peak_flop_s / (bandwidth_gb_s * 1e9); }

/// M*: tokens processed together at which a table's bytes and its sums take the same time.
constexpr double CrossoverBatch(double bits_per_weight, double ridge) { return bits_per_weight / 16 * ridge; }

/// Operations per byte of one decoded token.
constexpr double DecodeIntensity(double bits_per_weight) { return 16 / bits_per_weight; }

constexpr double BitsPerWeight(double bytes, double elements) { return 8 * bytes / elements; }

constexpr double TableBytes(double rows, double cols, double bits_per_weight) {
  return rows * cols * bits_per_weight / 8;
}

/// 16-bit vectors into and out of one product.
constexpr double ActivationBytes(double rows, double cols) { return 2 * (rows + cols); }

/// Keys and values of `positions` tokens in every layer.
constexpr double KvBytes(double layers, double kv_heads, double head_dim, double element_bytes, double positions) {
  return layers * 2 * kv_heads * head_dim * element_bytes * positions;
}

/// Multiply-adds of a product with `columns` vectors, two operations each.
constexpr double MatmulFlops(double elements, double columns) { return 2 * elements * columns; }

/// Scores and weighted sums of `tokens` new positions after `depth` old ones: each sees what came before it and itself.
constexpr double AttentionFlops(double layers, double heads, double head_dim, double tokens, double depth) {
  return layers * 4 * heads * head_dim * (tokens * depth + tokens * (tokens + 1) / 2);
}

/// Nanoseconds that so many vector instructions take at least.
constexpr double UnpackFloorNs(double instructions, double instructions_per_s) {
  return instructions / instructions_per_s * 1e9;
}

/// One rate for work of two kinds, by how much there is of each: what is slow weighs as long as it takes.
constexpr double MixedPeak(double flops, double peak_flop_s, double other_flops, double other_peak_flop_s) {
  return (flops + other_flops) / (flops / peak_flop_s + other_flops / other_peak_flop_s);
}

/// Little's law: bytes that have to be under way to keep a memory of that latency busy.
constexpr double BytesInFlight(double bandwidth_gb_s, double latency_ns) { return bandwidth_gb_s * latency_ns; }

/// What a kernel takes above its floor; negative when a cache held part of its bytes.
constexpr double LostNs(double now_ns, double floor_ns) { return now_ns - floor_ns; }

/// What the stamped tokens do not explain of the token without stamps.
constexpr double UnaccountedNs(double token_ns, double floor_ns, double lost_ns, double gaps_ns) {
  return token_ns - (floor_ns + lost_ns + gaps_ns);
}

/// Relative: what a session whose bandwidth readings spread by so much can't tell apart.
constexpr double Band(double relative_spread) { return std::max(0.05, 2 * relative_spread); }

/// Of the bytes that every token streams: the most that can stay in the last-level cache from one token to the next.
constexpr double CachedShare(double cache_bytes, double streamed_bytes) {
  return streamed_bytes > 0 ? std::min(1.0, cache_bytes / streamed_bytes) : 0;
}

/// The lab's line: seconds of a token that reads so many bytes at the fitted bandwidth, after its fixed cost.
constexpr double LineSeconds(double fixed_s, double bytes, double bandwidth_gb_s) {
  return fixed_s + bytes / (bandwidth_gb_s * 1e9);
}

/// Seconds that a token takes more at the second memory speed than at the first: it follows a stream by `factor`.
constexpr double MemoryShiftS(double factor, double bytes, double from_gb_s, double to_gb_s) {
  return factor * bytes / 1e9 * (1 / to_gb_s - 1 / from_gb_s);
}

/// GB/s that a rate implies when each token reads all those bytes.
constexpr double ImpliedBandwidth(double bytes, double tok_s) { return bytes * tok_s / 1e9; }

/// Of what lies between the published bandwidth and the fitted one: the part that a mere stream misses too.
constexpr double MemoryShareOfGap(double fitted_gb_s, double streamed_gb_s, double published_gb_s) {
  return (published_gb_s - streamed_gb_s) / (published_gb_s - fitted_gb_s);
}

}  // namespace boltbeam::roofline
