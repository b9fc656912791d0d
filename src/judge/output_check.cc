#include "judge/output_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>
#include <vector>

#include "base/ticks.h"
#include "measure/statistics.h"

namespace boltbeam::judge {
namespace {

constexpr double kCloseLogits = 1e-3;   // of the largest: what another order of summation explains
constexpr std::size_t kSecondTime = 8;  // tokens that are computed a second time
constexpr double kRemembered = 0.6;     // of a new token's time: less is not computed anew

Result<double> LargestDifference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) {
    return Fail(Code::kUsage, "output", fmt::format("{} and {} logits", a.size(), b.size()),
                "models with one vocabulary");
  }
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      return Fail(Code::kLogits, fmt::format("token {}", i), "a logit that is not finite", "numbers");
    }
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
  }
  return largest == 0 ? difference : difference / largest;
}

Condition Output(const OutputFinding& finding, const ReferenceFinding* reference, bool same_model,
                 const Thresholds& thresholds) {
  Condition condition{std::string(kOutput), State::kPass, ""};
  if (finding.tokens == 0) return {std::string(kOutput), State::kUnknown, "no output was compared"};
  if (finding.Bitwise()) {
    condition.detail = fmt::format("logits equal to the last bit at {} positions", finding.tokens);
    return condition;
  }
  if (reference != nullptr) {
    const double most = reference->kl_a * (1 + thresholds.kl_growth) + thresholds.kl_least;
    condition.state = reference->kl_b <= most ? State::kPass : State::kFail;
    condition.detail = fmt::format("divergence from the reference: A {:.5f}, B {:.5f}, at most {:.5f}; {} positions",
                                   reference->kl_a, reference->kl_b, most, reference->tokens);
    return condition;
  }
  if (finding.same_tokens == finding.tokens) {
    condition.detail =
        fmt::format("equal tokens at {} positions, logits within {:.1e}", finding.tokens, finding.largest);
    if (finding.largest > kNearLogits) {
      condition.state = State::kUnknown;
      condition.detail += ", too far for rounding: --reference decides";
    }
    return condition;
  }
  const std::uint64_t other = finding.tokens - finding.same_tokens;
  condition.detail =
      fmt::format("other tokens at {} of {} positions, logits within {:.1e}", other, finding.tokens, finding.largest);
  // Rounding may turn a near tie; another file may be better or worse. Only a reference can tell.
  const bool may_be_fine = !same_model || finding.largest <= kCloseLogits;
  condition.state = may_be_fine ? State::kUnknown : State::kFail;
  if (may_be_fine) condition.detail += ": --reference decides";
  return condition;
}

// Ticks of one token after the context, its best token read.
Result<double> TokenTicks(engine::Session& session, std::uint64_t depth, std::int32_t token) {
  BOLTBEAM_TRY(session.Truncate(depth));
  const std::uint64_t begin = base::Ticks();
  BOLTBEAM_TRY(session.Decode(token));
  (void)session.argmax();
  return static_cast<double>(base::Ticks() - begin);
}

constexpr std::uint64_t kRepeats = 9, kStride = 7919;

// A new token, the same again, and another new one, side by side: the median of the second's time over the lesser of
// the new ones' is not moved by a disturbance here and there, nor by a machine that changes its speed.
Result<double> TimeAgain(engine::Session& session, std::uint64_t depth, std::uint64_t first, std::uint32_t vocabulary) {
  const auto token = [&](std::uint64_t i) { return static_cast<std::int32_t>((first + i * kStride) % vocabulary); };
  std::vector<double> shares;
  for (std::uint64_t i = 0; i < kRepeats; ++i) {
    BOLTBEAM_TRY(TokenTicks(session, depth, token(3 * i)));  // wakes the workers
    BOLTBEAM_ASSIGN(const double before, TokenTicks(session, depth, token(3 * i + 1)));
    BOLTBEAM_ASSIGN(const double again, TokenTicks(session, depth, token(3 * i + 1)));
    BOLTBEAM_ASSIGN(const double after, TokenTicks(session, depth, token(3 * i + 2)));
    shares.push_back(again / std::max(1.0, std::min(before, after)));
  }
  BOLTBEAM_TRY(session.Truncate(depth));
  return measure::Median(shares);
}

// Where another program takes the CPUs a token of a fraction of a millisecond is as long as it likes: who remembers is
// quick each time, and others are not thrice.
Result<double> TimeAgainUntilSure(engine::Session& session, std::uint64_t depth, std::uint32_t vocabulary) {
  constexpr std::uint64_t kAttempts = 3, kFirst = 13;
  double share = 0;
  for (std::uint64_t attempt = 0; attempt < kAttempts && share < kRemembered; ++attempt) {
    BOLTBEAM_ASSIGN(const double now, TimeAgain(session, depth, kFirst + attempt * 3 * kRepeats * kStride, vocabulary));
    share = std::max(share, now);
  }
  return share;
}

Condition Fresh(const OutputFinding& finding) {
  Condition condition{std::string(kFreshOutput), State::kPass, ""};
  const double least = std::min(finding.a_again, finding.b_again);
  if (finding.reused > 0) {
    condition.state = State::kFail;
    condition.detail =
        fmt::format("the logits of another position at {} of {} positions", finding.reused, finding.tokens);
  } else if (least < kRemembered) {
    condition.state = State::kFail;
    condition.detail = fmt::format("{} remembers: a token for the second time takes {:.0f} % of a new one's time",
                                   finding.b_again < kRemembered ? "B" : "A", least * 100);
  }
  return condition;
}

}  // namespace

std::uint64_t HashLogits(std::span<const float> logits) {
  constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15U;
  std::uint64_t hash = logits.size();
  std::size_t i = 0;
  for (; i + 2 <= logits.size(); i += 2) {
    std::uint64_t word = 0;
    std::memcpy(&word, &logits[i], sizeof word);
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  }
  for (; i < logits.size(); ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, &logits[i], sizeof word);
    hash = (hash ^ word) * kPrime;
  }
  return hash;
}

Result<void> CompareOutputs(engine::Session& a, engine::Session& b, std::span<const std::int32_t> tokens,
                            std::uint32_t vocabulary, OutputFinding& finding, const std::function<bool()>& cancelled) {
  const std::uint64_t depth = a.depth();
  std::unordered_set<std::uint64_t> seen;
  std::vector<std::uint64_t> first_a, first_b;
  for (const std::int32_t token : tokens) {
    if (cancelled && cancelled()) return Fail(Code::kInterrupted, "judge", "stopped by the user");
    BOLTBEAM_TRY(a.Decode(token));
    BOLTBEAM_TRY(b.Decode(token));
    BOLTBEAM_ASSIGN(const double difference, LargestDifference(a.logits(), b.logits()));
    first_a.push_back(HashLogits(a.logits()));
    first_b.push_back(HashLogits(b.logits()));
    ++finding.tokens;
    finding.same_bits += first_a.back() == first_b.back() ? 1 : 0;
    finding.same_tokens += a.argmax() == b.argmax() ? 1 : 0;
    finding.largest = std::max(finding.largest, difference);
    finding.reused += seen.insert(first_b.back()).second ? 0 : 1;
  }
  BOLTBEAM_TRY(a.Truncate(depth));
  BOLTBEAM_TRY(b.Truncate(depth));
  for (std::size_t i = 0; i < std::min(kSecondTime, tokens.size()); ++i) {
    BOLTBEAM_TRY(a.Decode(tokens[i]));
    BOLTBEAM_TRY(b.Decode(tokens[i]));
    const bool same = HashLogits(a.logits()) == first_a[i] && HashLogits(b.logits()) == first_b[i];
    finding.unrepeated += same ? 0 : 1;
  }
  BOLTBEAM_ASSIGN(const double a_again, TimeAgainUntilSure(a, depth, vocabulary));
  BOLTBEAM_ASSIGN(const double b_again, TimeAgainUntilSure(b, depth, vocabulary));
  finding.a_again = std::min(finding.a_again, a_again);
  finding.b_again = std::min(finding.b_again, b_again);
  return {};
}

std::vector<Condition> OutputConditions(const OutputFinding& finding, const ReferenceFinding* reference,
                                        bool same_model, const Thresholds& thresholds) {
  std::vector<Condition> conditions{Output(finding, reference, same_model, thresholds)};
  conditions.push_back(Fresh(finding));
  conditions.push_back({std::string(kDeterministic), finding.unrepeated == 0 ? State::kPass : State::kFail,
                        finding.unrepeated == 0
                            ? ""
                            : fmt::format("{} positions gave other logits the second time", finding.unrepeated)});
  return conditions;
}

}  // namespace boltbeam::judge
