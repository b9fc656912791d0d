#include "audit/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "audit/alone.h"
#include "audit/causes.h"
#include "roofline/formulas.h"

namespace boltbeam::audit {
namespace {

constexpr std::array kKinds = {
    CauseKind{"compute", "its instructions alone take about as long: unpacking or sums bind, not the memory"},
    CauseKind{"rate", "its instructions are fast and its bytes come slowly: order, prefetching, bytes in flight"},
    CauseKind{"memory", "slower inside the token than alone: what runs around it disturbs its stream"},
    CauseKind{"toll", "launched more often than it has tables: each launch costs a start and a barrier"},
    CauseKind{"small", "each call is too short to fill the memory"},
    CauseKind{"imbalance", "one thread takes longer than the others, which wait"},
    CauseKind{"barrier", "barriers take longer inside the token than alone"},
    CauseKind{"boundary", "what the plan's barriers and the host between kernels cost at the least"},
    CauseKind{"bytes", "the plan reads more bytes than the file's tables have"},
    CauseKind{"scales", "unpacking packed scales: written out they cost bytes and save instructions"},
    CauseKind{"unit", "not the arithmetic instruction that this chip is best at"},
    CauseKind{"throttled", "stopped by a quota of CPU time"},
    CauseKind{"taken", "another process takes the memory's rate"},
};

std::string Us(double ns) { return fmt::format("{:.{}f} us", ns / 1e3, std::abs(ns) < 1e5 ? 1 : 0); }

class Finder {
 public:
  Finder(const Account& account, std::span<const PartPlan> plans, const SessionFacts& facts)
      : a_(account), plans_(plans), facts_(facts) {}

  std::vector<Cause> Find() && {
    for (const Part& part : a_.parts) OfPart(part);
    OfThreads();
    OfBarriers();
    OfSession();
    std::erase_if(causes_, [](const Cause& cause) { return cause.recoverable_ns <= 0; });
    std::ranges::stable_sort(causes_, std::ranges::greater{}, &Cause::recoverable_ns);
    return std::move(causes_);
  }

 private:
  void Add(std::string_view kind, const Part* part, double ns, std::string evidence, std::string lever) {
    causes_.push_back({std::string(kind), part ? part->role : "", part ? part->format : "", ns, std::move(evidence),
                       std::move(lever), false});
  }

  const PartPlan* PlanOf(const Part& part) const {
    const auto plan =
        std::ranges::find_if(plans_, [&](const PartPlan& p) { return p.role == part.role && p.format == part.format; });
    return plan == plans_.end() ? nullptr : &*plan;
  }

  /// How much slower a thread is than the mean in all other parts: a slow CPU is not one part's fault.
  double PaceOf(std::size_t thread, const Part* without) const {
    double own = 0, all = 0;
    for (const Part& part : a_.parts) {
      if (&part == without || !part.streams || part.thread_ns.size() != a_.threads.size()) continue;
      own += part.thread_ns[thread];
      all += std::accumulate(part.thread_ns.begin(), part.thread_ns.end(), 0.0);
    }
    return all > 0 ? own * static_cast<double>(a_.threads.size()) / all : 1;
  }

  struct Late {
    std::size_t thread = 0;
    double own_ns = 0, others_ns = 0;
  };
  /// Of times by thread: the slowest, and the mean of the others.
  static Late SlowestOf(const std::vector<double>& ns) {
    Late late;
    late.thread = static_cast<std::size_t>(std::ranges::max_element(ns) - ns.begin());
    late.own_ns = ns[late.thread];
    late.others_ns = (std::accumulate(ns.begin(), ns.end(), 0.0) - late.own_ns) / static_cast<double>(ns.size() - 1);
    return late;
  }

  void OfPart(const Part& part) {
    double excess = part.excess_ns - a_.band * part.floor_ns > 0 ? part.excess_ns : 0;
    if (part.streams) {
      excess = std::max(0.0, excess - OfLateThread(part));
      if (excess <= a_.band * part.floor_ns) excess = 0;
      excess *= 1 - OfLaunches(part, excess);
      OfTable(part);
    }
    if (excess > 0) OfExcess(part, excess);
  }

  /// What the late thread adds to the mean over threads. It is late by its own stamps, and more so than elsewhere.
  double OfLateThread(const Part& part) {
    const std::size_t threads = part.thread_ns.size();
    if (threads < 2) return 0;
    const Late late = SlowestOf(part.thread_ns);
    std::vector<double> paced;
    for (std::size_t thread = 0; thread < threads; ++thread) {
      paced.push_back(part.thread_ns[thread] / PaceOf(thread, &part));
    }
    const Late beyond_pace = SlowestOf(paced);
    if (beyond_pace.thread != late.thread) return 0;
    const double more = std::min(late.own_ns - late.others_ns, beyond_pace.own_ns - beyond_pace.others_ns);
    if (more <= kOddShare * late.others_ns) return 0;
    Add("imbalance", &part, more,
        fmt::format("thread {} takes {} in it, the others {}; its pace elsewhere is allowed for", late.thread,
                    Us(late.own_ns), Us(late.others_ns)),
        "route shared-tails; what else runs on that thread's CPU; fewer threads (-t)");
    named_imbalance_ns_ += more;
    return more / static_cast<double>(threads);
  }

  /// The share of the part's time above its floor that launches beyond its tables cost.
  double OfLaunches(const Part& part, double excess) {
    if (part.calls == 0 || part.steps <= part.calls || part.stored_bytes == 0) return 0;
    const double extra = 1 - static_cast<double>(part.calls) / static_cast<double>(part.steps);
    const double cost = extra * (std::max(excess, 0.0) + part.release_ns + part.imbalance_ns);
    Add("toll", &part, cost,
        fmt::format("{} launches for {} tables, {:.0f} kB each; {} a launch above its bytes", part.steps, part.calls,
                    static_cast<double>(part.bytes) / static_cast<double>(part.steps) / 1e3,
                    Us((excess + part.release_ns) / static_cast<double>(part.steps))),
        "fewer and larger launches");
    toll_release_ns_ += extra * part.release_ns;
    return extra;
  }

  void OfExcess(const Part& part, double excess) {
    const std::string kind = CauseOf(part, a_.band);
    const PartPlan* plan = PlanOf(part);
    const double rate = static_cast<double>(part.bytes) / part.now_ns;
    if (kind == "compute") {
      std::string evidence = fmt::format("out of the caches it still takes {} of {}", Us(part.hot_ns), Us(part.now_ns));
      if (part.hot_ns <= 0)
        evidence = fmt::format("{:.1f} GB/s where the memory gives {:.1f}", rate, a_.read_bandwidth_gb_s);
      if (plan != nullptr && plan->instructions_per_byte > 0) {
        evidence += fmt::format("; {:.2f} vector instructions a byte", plan->instructions_per_byte);
      }
      Add(kind, &part, excess, std::move(evidence),
          "knobs dot, scales, vectors, unroll; a format with fewer instructions a weight");
    } else if (kind == "rate" || kind == "memory") {
      std::string evidence = fmt::format("{:.1f} GB/s where the memory gives {:.1f}", rate, a_.read_bandwidth_gb_s);
      if (part.hot_ns > 0) {
        evidence += fmt::format("; alone {}, out of the caches {}", Us(part.cold_ns), Us(part.hot_ns));
      }
      if (const std::string says = WhatAloneSays(a_, part); says.starts_with("alone")) evidence += "; " + says;
      evidence += FlightWords(plan);
      // Alone it is at its floor: all that speaks against the token is how far beyond the band it is.
      Add(kind, &part, kind == "rate" ? excess : excess - a_.band * part.floor_ns, std::move(evidence),
          kind == "rate" ? "knobs order, prefetch, unroll, vectors" : "knobs prefetch, hint; a quieter machine");
    } else if (kind == "small" || kind == "barrier") {
      Add("small", &part, excess,
          fmt::format("{} calls of {} each, whose bytes take {}", part.steps,
                      Us(part.now_ns / static_cast<double>(part.steps)),
                      Us(part.floor_ns / static_cast<double>(part.steps))),
          RouteLever("a fusion into a neighbour"));
    }
  }

  /// Little's law: what the memory's rate needs in flight at its latency, against what the kernel's own program asks
  /// for ahead. Its time says nothing of that: it is what is to be explained.
  std::string FlightWords(const PartPlan* plan) const {
    const roofline::InFlight asked = roofline::InFlightAt(a_.read_bandwidth_gb_s, facts_.latencies);
    std::string words = InFlightText(asked);
    if (words.empty()) return {};
    const auto threads = static_cast<double>(std::max<std::size_t>(1, a_.threads.size()));
    const double needed = asked.bytes.value_or(asked.bytes_loaded.value_or(0)) / threads;
    words = fmt::format("; in flight: {}; ", words);
    if (plan == nullptr) return words + "what its kernel keeps there is not known";
    if (plan->ahead_bytes <= 0) {
      return words + "its program asks for none ahead: what the chip fetches by itself is not known";
    }
    return words + fmt::format("its program asks for {:.1f} kB ahead on each thread: {}", plan->ahead_bytes / 1e3,
                               plan->ahead_bytes < needed ? "too few" : "enough, if the core holds as many requests");
  }

  /// What the plan's own figures say of a part that reads tables.
  void OfTable(const Part& part) {
    const double more = static_cast<double>(part.stored_bytes) - static_cast<double>(part.bytes);
    const PartPlan* plan = PlanOf(part);
    if (plan == nullptr) return;
    if (more > kOddShare * static_cast<double>(part.bytes)) {
      Add("bytes", &part, roofline::MemoryFloorNs(more, a_.read_bandwidth_gb_s),
          fmt::format("{:.2f} MB are read, the file's tables have {:.2f} MB",
                      static_cast<double>(part.stored_bytes) / 1e6, static_cast<double>(part.bytes) / 1e6),
          plan->geometry.find("scales=packed") == std::string::npos ? "knob scales=packed"
                                                                    : "a format whose codes need not be written out");
    }
    const double bound = std::max(0.0, part.hot_ns - part.floor_ns);  // what instructions take above the bytes
    if (plan->dot != plan->best_dot && !plan->best_dot.empty()) {
      Add("unit", &part, std::max(bound, part.excess_ns - a_.band * part.floor_ns),
          fmt::format("it multiplies with {}, this chip has {}", plan->dot, plan->best_dot),
          fmt::format("knob dot={}, without --isa", plan->best_dot));
    }
    if (bound > 0 && plan->words_instructions > 0 && plan->words_instructions < 1) {
      const double bytes = (plan->words_growth - 1) * static_cast<double>(part.stored_bytes);
      const double saved = part.hot_ns * (1 - plan->words_instructions) -
                           roofline::MemoryFloorNs(std::max(0.0, bytes), a_.read_bandwidth_gb_s);
      Add("scales", &part, std::min(saved, bound),
          fmt::format("scales apart take {:.0f} % fewer instructions and {:.1f} % more bytes",
                      (1 - plan->words_instructions) * 100, (plan->words_growth - 1) * 100),
          "knob scales=words");
    }
  }

  void OfThreads() {
    if (a_.threads.size() < 2) return;
    std::vector<double> work;
    for (const ThreadTime& thread : a_.threads) work.push_back(thread.work_ns);
    const Late late = SlowestOf(work);
    const double more = late.own_ns - late.others_ns - named_imbalance_ns_;
    if (more <= kOddShare * late.others_ns) return;
    Add("imbalance", nullptr, more,
        fmt::format("thread {} works for {}, the others for {}", late.thread, Us(late.own_ns), Us(late.others_ns)),
        "what else runs on that thread's CPU; route shared-tails; fewer threads (-t)");
  }

  void OfBarriers() {
    if (a_.threads.empty() || a_.barriers == 0) return;
    const double all = a_.threads.front().barrier_ns - toll_release_ns_;
    const double alone = facts_.barrier_ns * a_.barriers;
    if (facts_.barrier_ns > 0 && a_.threads.size() > 1) {
      Add("barrier", nullptr, all - alone,
          fmt::format("{} barriers let go after {} each, alone after {}", a_.barriers, Us(all / a_.barriers),
                      Us(facts_.barrier_ns)),
          "what else runs on these CPUs; fewer barriers");
    }
    const double boundary = std::min(all, alone > 0 ? alone : all) + a_.token.host_ns;
    Add("boundary", nullptr, boundary,
        fmt::format("{} barriers at their least, and {} between kernels", a_.barriers, Us(a_.token.host_ns)),
        RouteLever("fewer phases: a fusion"));
  }

  void OfSession() {
    if (facts_.throttled_share > 0) {
      Add("throttled", nullptr, std::min(1.0, facts_.throttled_share) * a_.token.now_ns,
          fmt::format("threads were stopped for {:.0f} % of the time", facts_.throttled_share * 100),
          "a larger quota, or fewer threads (-t) than it has CPUs");
    }
    constexpr double kBusyCpus = 0.25;
    const double lower = 1 - a_.read_bandwidth_gb_s / facts_.reference_gb_s;
    // Threads that are stopped read slowly, the probe's too.
    const bool is_stopped = facts_.throttled_share > kOddShare;
    if (facts_.reference_gb_s > 0 && facts_.other_cpus > kBusyCpus && lower > kOddShare && !is_stopped) {
      Add("taken", nullptr, a_.token.floor_ns * lower,
          fmt::format("{:.1f} GB/s now, {:.1f} when the chip was measured; other processes keep {:.1f} CPUs busy",
                      a_.read_bandwidth_gb_s, facts_.reference_gb_s, facts_.other_cpus),
          "stop what else reads memory");
    }
  }

  std::string RouteLever(std::string_view otherwise) const {
    if (facts_.idle_routes.empty()) return fmt::format("{}; every route that this plan can take is on", otherwise);
    return fmt::format("--with {}", fmt::join(facts_.idle_routes, ","));
  }

  static constexpr double kOddShare = 0.02;
  const Account& a_;
  std::span<const PartPlan> plans_;
  const SessionFacts& facts_;
  double named_imbalance_ns_ = 0, toll_release_ns_ = 0;
  std::vector<Cause> causes_;
};

}  // namespace

std::span<const CauseKind> CauseKinds() { return kKinds; }

std::vector<Cause> CausesOf(const Account& account, std::span<const PartPlan> plans, const SessionFacts& facts) {
  std::vector<Cause> causes = Finder(account, plans, facts).Find();
  for (Cause& cause : causes) {
    double together = 0;
    for (const Cause& other : causes) {
      if (other.kind == cause.kind && other.role == cause.role) together += other.recoverable_ns;
    }
    cause.is_finding = together >= kFindingShare * account.token.now_ns;
  }
  return causes;
}

std::optional<Finding> FindingOf(const Account& account) {
  std::vector<Finding> findings;
  for (const Cause& cause : account.causes) {
    if (!cause.is_finding) continue;
    auto same = std::ranges::find_if(findings, [&](const Finding& finding) {
      return finding.cause->kind == cause.kind && finding.cause->role == cause.role;
    });
    if (same == findings.end()) same = findings.insert(findings.end(), {&cause, 0});
    same->recoverable_ns += cause.recoverable_ns;
  }
  const auto largest = std::ranges::max_element(findings, {}, &Finding::recoverable_ns);
  return largest == findings.end() ? std::nullopt : std::optional(*largest);
}

}  // namespace boltbeam::audit
