// Parts, bandwidth and token of one run: floors, losses and their kind, and what the parts leave of the token.
#include <fmt/format.h>

#include <cmath>

#include "audit/recorded/derive.h"

namespace boltbeam::audit {
namespace {

constexpr double kNsPerUs = 1e3, kUsPerMs = 1e3;
constexpr double kSameSize = 0.05, kApart = 4;  // tables that lose the same though one is so many times larger

struct Sums {
  double floor_us = 0, now_us = 0;
};

Sums DeriveParts(Deriver& deriver, const std::string& section, double gb_s, std::vector<Launches>& launches) {
  Sums sums;
  std::size_t index = 0;
  for (const Json& part : ListOf(deriver.document(), section + "/parts")) {
    const std::string at = fmt::format("{}/parts/{}", section, index++);
    const auto bytes = NumberOf(part, "/weight_bytes"), count = NumberOf(part, "/launches");
    const auto now = NumberOf(part, "/now_us");
    if (!bytes || !count || !now || !(*count > 0) || !(*now > 0)) continue;
    const double floor_us = *bytes / gb_s / kNsPerUs, excess_us = *now - floor_us;
    deriver.Line(at, NameOf(part) + " floor_us", NumberOf(part, "/floor_us"), floor_us, kThreePlaces);
    deriver.Line(at, NameOf(part) + " excess_us", NumberOf(part, "/excess_us"), excess_us, kThreePlaces);
    deriver.Line(at, NameOf(part) + " excess_per_launch_us", NumberOf(part, "/excess_per_launch_us"),
                 excess_us / *count, kThreePlaces);
    deriver.Line(at, NameOf(part) + " share_of_rate", NumberOf(part, "/share_of_rate"), floor_us / *now, 1e-4);
    launches.push_back({NameOf(part), *count, *bytes / *count, *now / *count * kNsPerUs});
    sums.floor_us += floor_us;
    sums.now_us += *now;
  }
  return sums;
}

// What a reader should see in the fit: its kind, equal losses of unequal tables, and rows that flatter the kernel.
void DescribeFit(Deriver& deriver, const std::string& section, const TollFit& fit) {
  deriver.Finding(fmt::format("{}: {}", section, DescribeToll(fit)));
  for (std::size_t a = 0; a < fit.launches.size(); ++a) {
    for (std::size_t b = a + 1; b < fit.launches.size(); ++b) {
      const LaunchLoss &small = fit.launches[a], &large = fit.launches[b];
      const double times = std::max(large.bytes, small.bytes) / std::min(large.bytes, small.bytes);
      const double same = std::fabs(large.excess_ns / small.excess_ns - 1);
      if (fit.loss == Loss::kToll && times > kApart && same < kSameSize) {
        deriver.Finding(fmt::format("{} and {} are {:.0f} times apart in size and lose {:.3f} and {:.3f} µs a launch",
                                    small.name, large.name, times, small.excess_ns / kNsPerUs,
                                    large.excess_ns / kNsPerUs));
      }
    }
  }
  for (const LaunchLoss& loss : fit.launches) {
    if (!loss.cached) continue;
    deriver.Finding(fmt::format(
        "{} ({:.1f} MB) looks faster than the memory, {:.1f} % of its floor: it stays in the chip's cache when it is "
        "repeated, and the row flatters the kernel",
        loss.name, loss.bytes / 1e6, 100 * loss.now_ns / loss.floor_ns));
  }
}

// What is left of the token when every kernel is added up: signed, and negative when neighbours overlap.
void DeriveGap(Deriver& deriver, const std::string& section, double parts_us, double token_us,
               std::optional<double> recorded_us, double tolerance) {
  const double gap_us = token_us - parts_us;
  deriver.Line(section, "gap_us", recorded_us, gap_us, tolerance);
  if (gap_us < 0) {
    deriver.Finding(
        fmt::format("{}: the gap is {:.1f} ms: neighbours overlap in the token, which isolated times can't see",
                    section.substr(1), gap_us / kUsPerMs));
  }
}

void DeriveAccount(Deriver& deriver, const std::string& section, const Sums& sums) {
  const Json& document = deriver.document();
  const std::string at = section + "/account";
  const auto other = NumberOf(document, at + "/other_kernels_us"), gaps = NumberOf(document, at + "/gaps_us");
  const auto token = NumberOf(document, at + "/token_us");
  deriver.Line(at, "floor_us", NumberOf(document, at + "/floor_us"), sums.floor_us, kOnePlace);
  const double lost = sums.now_us - sums.floor_us;
  deriver.Line(at, "lost_in_weight_kernels_us", NumberOf(document, at + "/lost_in_weight_kernels_us"), lost, kOnePlace);
  if (!other || !token) return;
  deriver.Line(at, "gaps_us", gaps, *token - sums.now_us - *other, kOnePlace);
  deriver.Line(at, "token_us", token, Plus(sums.now_us + *other, gaps), kOnePlace);
}

// Other operations of the token, each so many times so long.
double OtherUs(const Json& document, const std::string& section) {
  double sum = 0;
  for (const Json& other : ListOf(document, section + "/other")) {
    sum += NumberOf(other, "/launches").value_or(0) * NumberOf(other, "/each_us").value_or(0);
  }
  return sum;
}

void DeriveRun(Deriver& deriver, const std::string& section) {
  const Json& document = deriver.document();
  const double gb_s = NumberOf(document, section + "/bandwidth_gb_s").value_or(0);
  std::vector<Launches> launches;
  const Sums sums = gb_s > 0 ? DeriveParts(deriver, section, gb_s, launches) : Sums{};
  if (At(document, section + "/account") != nullptr) DeriveAccount(deriver, section, sums);
  if (!launches.empty()) {
    TollFit fit = FitToll(launches, gb_s);
    DescribeFit(deriver, section.substr(1), fit);
    deriver.Fit(std::move(fit));
  }
  const auto parts_ms = NumberOf(document, section + "/recorded/parts_ms");
  const auto token_ms = NumberOf(document, section + "/recorded/token_ms");
  if (!parts_ms || !token_ms) return;
  const auto recorded = NumberOf(document, section + "/recorded/gap_ms");
  const auto recorded_us = recorded ? std::optional(*recorded * kUsPerMs) : std::nullopt;
  constexpr double kTenthOfMs = 100;  // the sources print milliseconds with one place
  if (launches.empty()) {
    DeriveGap(deriver, section, *parts_ms * kUsPerMs, *token_ms * kUsPerMs, recorded_us, kTenthOfMs);
    return;
  }
  const double parts_us = sums.now_us + OtherUs(document, section);
  deriver.Line(section + "/recorded", "parts_us", *parts_ms * kUsPerMs, parts_us, kTenthOfMs);
  DeriveGap(deriver, section, parts_us, *token_ms * kUsPerMs, recorded_us, kTenthOfMs);
}

}  // namespace

void DeriveTieOuts(Deriver& deriver) {
  for (const auto& [key, value] : deriver.document().items()) {
    if (value.is_object() && value.contains("bandwidth_gb_s")) DeriveRun(deriver, "/" + key);
  }
}

}  // namespace boltbeam::audit
