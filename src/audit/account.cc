#include "audit/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "audit/causes.h"
#include "audit/floors.h"
#include "measure/statistics.h"
#include "roofline/formulas.h"

namespace boltbeam::audit {
namespace {

constexpr std::size_t kLeastPairs = 5;

// The sum of both kinds of tokens orders them: symmetric, so that leaving out the outer ones favours neither.
// Pairs during which the memory changed its speed are left out, unless hardly any others are left: those between whose
// bandwidth readings it did, and those whose two windows differ by more than what tells such a change, counted from
// what the windows of all pairs differ by.
std::vector<std::size_t> ChoosePairs(std::span<const Pair> pairs) {
  std::vector<double> ratios;
  for (const Pair& pair : pairs) ratios.push_back(std::log(pair.token_ns / pair.traced.total));
  const double middle = measure::Median(ratios);
  const auto moved = [&](std::size_t index) {
    return pairs[index].memory_moved || std::abs(ratios[index] - middle) > kMovedShare;
  };
  std::size_t held = 0;
  for (std::size_t index = 0; index < pairs.size(); ++index) held += moved(index) ? 0 : 1;
  std::vector<std::size_t> candidates;
  std::vector<double> totals;
  for (std::size_t index = 0; index < pairs.size(); ++index) {
    if (moved(index) && held >= 2 * kLeastPairs) continue;
    candidates.push_back(index);
    totals.push_back(pairs[index].token_ns + pairs[index].traced.total);
  }
  std::vector<std::size_t> chosen = measure::MiddleHalf(totals);
  for (std::size_t& index : chosen) index = candidates[index];
  return chosen;
}

template <typename Of>
double MeanOver(const std::vector<std::size_t>& chosen, std::span<const Pair> pairs, const Of& of) {
  double sum = 0;
  for (const std::size_t index : chosen) sum += of(pairs[index]);
  return sum / static_cast<double>(chosen.size());
}

struct Bandwidth {
  double gb_s = 0;
  double spread = 0;
};

// Of every reading the fastest shape; over the pairs the mean time of a byte, as their tokens' times are means: while
// the machine's memory slows down and recovers, both follow it in the same way.
Bandwidth ReadBandwidth(const std::vector<std::size_t>& chosen, std::span<const Pair> pairs) {
  std::vector<double> ns_per_byte;
  for (const std::size_t index : chosen) {
    const double gb_s = *std::ranges::max_element(pairs[index].read_gb_s);
    ns_per_byte.push_back(1 / gb_s);
  }
  return {1 / measure::Mean(ns_per_byte), measure::Summarise(ns_per_byte).RelativeSpread()};
}

/// What a part has of a step.
struct StepShare {
  std::size_t part = 0;
  double share = 1;
};

// Steps belong to the part of their role and format; a role that the graph knows under one format only takes every step
// of that role, because a kernel without weights may name its operands' format differently.
std::size_t PartOf(const std::string& role, const std::string& format, std::vector<Part>& parts) {
  auto match =
      std::ranges::find_if(parts, [&](const Part& part) { return part.role == role && part.format == format; });
  if (match == parts.end()) {
    const auto same_role = [&](const Part& part) { return part.role == role; };
    if (std::ranges::count_if(parts, same_role) == 1) match = std::ranges::find_if(parts, same_role);
  }
  if (match == parts.end()) {
    parts.push_back({.role = role, .format = format, .cause = {}});
    match = parts.end() - 1;
  }
  return static_cast<std::size_t>(match - parts.begin());
}

// A step that computes the tables of several parts is divided among them by their bytes, which are all of one format.
std::vector<std::vector<StepShare>> AssignSteps(const AccountInput& input, std::vector<Part>& parts) {
  std::vector<std::vector<StepShare>> shares;
  for (const engine::StepInfo& step : input.steps) {
    std::vector<std::pair<std::string, std::uint64_t>> roles = step.parts;
    if (roles.empty()) roles.emplace_back(step.role, step.stored_bytes);
    std::vector<StepShare>& of_step = shares.emplace_back();
    for (const auto& [role, bytes] : roles) {
      const std::size_t part = PartOf(role, step.format, parts);
      parts[part].stored_bytes += bytes;
      const bool is_new = std::ranges::find(of_step, part, &StepShare::part) == of_step.end();
      if (is_new) ++parts[part].steps;
      of_step.push_back(
          {part, roles.size() == 1 ? 1 : static_cast<double>(bytes) / static_cast<double>(step.stored_bytes)});
    }
  }
  return shares;
}

std::vector<Part> PartsOfFloors(const AccountInput& input, double read_gb_s) {
  std::vector<Part> parts;
  for (const PartFloor& floor : input.floors) {
    Part part{.role = floor.role, .format = floor.format, .cause = {}};
    part.calls = floor.calls;
    part.flops = floor.flops;
    part.bytes = floor.memory_bytes > 0 ? floor.memory_bytes : floor.activation_bytes;
    const double gb_s = floor.memory_bytes > 0 ? read_gb_s : input.cache_gb_s;
    part.floor_ns = gb_s > 0 ? static_cast<double>(part.bytes) / gb_s : 0;
    parts.push_back(std::move(part));
  }
  return parts;
}

Result<void> AddTimes(const AccountInput& input, const std::vector<std::size_t>& chosen, Account& account) {
  std::vector<Part>& parts = account.parts;
  const std::vector<std::vector<StepShare>> shares = AssignSteps(input, parts);
  for (std::size_t step = 0; step < input.steps.size(); ++step) {
    const double work = MeanOver(chosen, input.pairs, [&](const Pair& p) { return p.traced.work[step]; });
    const double slowest = MeanOver(chosen, input.pairs, [&](const Pair& p) { return p.traced.slowest[step]; });
    const double release =
        MeanOver(chosen, input.pairs, [&](const Pair& p) { return p.traced.release[input.steps[step].phase]; });
    const std::size_t threads = input.pairs[0].traced.thread_work.size();
    for (const StepShare& share : shares[step]) {
      Part& part = parts[share.part];
      part.thread_ns.resize(threads);
      part.streams = part.streams || input.steps[step].streams;
      for (std::size_t thread = 0; thread < threads; ++thread) {
        part.thread_ns[thread] += share.share * MeanOver(chosen, input.pairs, [&](const Pair& p) {
                                    return p.traced.by_thread[step * threads + thread];
                                  });
      }
      account.steps.push_back(
          {part.role, part.format, input.steps[step].layer,
           static_cast<std::uint64_t>(share.share * static_cast<double>(input.steps[step].stored_bytes)), 0,
           share.share * work, share.share * slowest});
      part.now_ns += share.share * work;
      part.imbalance_ns += share.share * (slowest - work);
      part.release_ns += share.share * release;
    }
  }
  for (const PartFloor& floor : input.floors) {
    const auto part =
        std::ranges::find_if(parts, [&](const Part& p) { return p.role == floor.role && p.format == floor.format; });
    if (part->steps == 0 && floor.memory_bytes > 0) {
      return Fail(Code::kAccountOpen, fmt::format("{} {}", floor.role, floor.format),
                  fmt::format("{} bytes that no kernel of the plan reads", floor.memory_bytes),
                  "a kernel for every part of the token");
    }
  }
  // A kernel that the graph does not name (quantisation, the best logit) touches activations only: what it reads, at
  // the caches' rate.
  for (Part& part : parts) {
    if (part.calls != 0 || part.steps == 0) continue;
    part.calls = part.steps;
    part.bytes = part.stored_bytes;
    part.flops = part.bytes / sizeof(float);  // at least one for each value
    part.floor_ns = input.cache_gb_s > 0 ? static_cast<double>(part.bytes) / input.cache_gb_s : 0;
  }
  // What only touches activations and has no kernel of its own is done inside another part's kernel.
  std::erase_if(parts, [](const Part& part) { return part.steps == 0; });
  return {};
}

// What was asked for goes on coming while threads wait at the part's barriers: in many short launches that is much of
// it.
Result<void> RefuseFasterThanFloor(const Part& part, double band, double cached_share) {
  const double slowest = part.now_ns + part.imbalance_ns + part.release_ns;
  if (slowest >= part.floor_ns * (1 - band) * (1 - cached_share)) return {};
  return Fail(Code::kMeasurementImpossible, fmt::format("{} {}", part.role, part.format),
              fmt::format("{:.1f} us, faster than its floor of {:.1f} us by more than the session's {:.1f} %",
                          slowest / 1e3, part.floor_ns / 1e3, band * 100),
              "no part below its floor: an instrument fault (time stamps, or the bandwidth probe)");
}

// A part's floor is that of its kernels together, by the bytes that they read.
void AddStepFloors(Account& account) {
  for (StepTime& step : account.steps) {
    const auto part = std::ranges::find_if(
        account.parts, [&](const Part& p) { return p.role == step.role && p.format == step.format; });
    const double share = part->stored_bytes > 0
                             ? static_cast<double>(step.bytes) / static_cast<double>(part->stored_bytes)
                             : 1 / static_cast<double>(part->steps);
    step.floor_ns = share * part->floor_ns;
  }
}

void AddWall(const AccountInput& input, const std::vector<std::size_t>& chosen, Account& account) {
  const std::size_t threads = input.pairs[0].traced.thread_work.size();
  const auto mean = [&](const auto& of) { return MeanOver(chosen, input.pairs, of); };
  const double barriers =
      mean([](const Pair& p) { return std::accumulate(p.traced.release.begin(), p.traced.release.end(), 0.0); });
  for (std::size_t thread = 0; thread < threads; ++thread) {
    ThreadTime time;
    time.work_ns = mean([&](const Pair& p) { return p.traced.thread_work[thread]; });
    time.barrier_ns = barriers;
    time.imbalance_ns = mean([&](const Pair& p) { return p.traced.thread_wait[thread]; }) - barriers;
    time.idle_ns = mean([&](const Pair& p) { return p.traced.thread_host[thread]; });
    account.wall.sum_ns += time.work_ns;
    account.threads.push_back(time);
  }
  account.wall.union_ns = mean([](const Pair& p) { return p.traced.busy; });
  account.wall.overlap_ns = account.wall.sum_ns - account.wall.union_ns;
  account.wall.gaps_ns = mean([](const Pair& p) { return p.traced.total; }) - account.wall.union_ns;
  account.barriers = static_cast<std::uint32_t>(input.pairs[0].traced.release.size());
}

Token TokenOf(const AccountInput& input, const std::vector<std::size_t>& chosen, const std::vector<Part>& parts) {
  Token token;
  token.now_ns = MeanOver(chosen, input.pairs, [](const Pair& p) { return p.token_ns; });
  token.wait_ns = MeanOver(chosen, input.pairs, [](const Pair& p) { return p.traced.wait; });
  token.host_ns = MeanOver(chosen, input.pairs, [](const Pair& p) { return p.traced.host; });
  token.gaps_ns = token.wait_ns + token.host_ns;
  for (const Part& part : parts) {
    token.floor_ns += part.floor_ns;
    token.lost_ns += roofline::LostNs(part.now_ns, part.floor_ns);
  }
  token.traced_ns = token.floor_ns + token.lost_ns + token.gaps_ns;
  token.unaccounted_ns = roofline::UnaccountedNs(token.now_ns, token.floor_ns, token.lost_ns, token.gaps_ns);
  std::vector<double> tokens;
  for (const std::size_t index : chosen) tokens.push_back(input.pairs[index].token_ns);
  const measure::Interval interval = measure::BootstrapMean(tokens, input.seed);
  token.now_low_ns = interval.low;
  token.now_high_ns = interval.high;
  return token;
}

}  // namespace

double ResidualError(std::span<const Pair> pairs) {
  std::vector<double> differences;
  for (const std::size_t index : ChoosePairs(pairs)) {
    differences.push_back(pairs[index].token_ns / pairs[index].traced.total - 1);
  }
  return measure::StandardDeviation(differences) / std::sqrt(static_cast<double>(differences.size()));
}

bool Account::TiesOut() const { return std::abs(token.unaccounted_ns) <= kResidualBudget * token.now_ns; }

Result<Account> BuildAccount(const AccountInput& input) {
  if (input.pairs.size() < kLeastPairs) {
    return Fail(Code::kMeasurementUnstable, fmt::format("depth {}", input.depth),
                fmt::format("{} pairs of windows", input.pairs.size()),
                fmt::format("at least {}: more time (--seconds)", kLeastPairs));
  }
  Account account;
  account.depth = input.depth;
  const std::vector<std::size_t> chosen = ChoosePairs(input.pairs);
  account.pairs = input.pairs.size();
  account.pairs_used = chosen.size();
  const Bandwidth bandwidth = ReadBandwidth(chosen, input.pairs);
  account.read_bandwidth_gb_s = bandwidth.gb_s;
  account.band = roofline::Band(bandwidth.spread);
  // Spread over its parts: a small model's part may be that much faster than the memory.
  account.cache_bytes = input.cache_bytes;
  account.cached_share =
      roofline::CachedShare(static_cast<double>(input.cache_bytes), static_cast<double>(MemoryBytes(input.floors)));
  account.parts = PartsOfFloors(input, bandwidth.gb_s);
  BOLTBEAM_TRY(AddTimes(input, chosen, account));
  account.token = TokenOf(input, chosen, account.parts);
  AddStepFloors(account);
  AddWall(input, chosen, account);
  for (Part& part : account.parts) {
    BOLTBEAM_TRY(RefuseFasterThanFloor(part, account.band, account.cached_share));
    part.excess_ns = roofline::LostNs(part.now_ns, part.floor_ns);
    part.share = part.now_ns / account.token.now_ns;
    part.cause = CauseOf(part, account.band);
  }
  std::ranges::stable_sort(account.parts, [](const Part& a, const Part& b) { return a.now_ns > b.now_ns; });
  return account;
}

}  // namespace boltbeam::audit
