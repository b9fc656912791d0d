#include "audit/compare/live.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "base/ticks.h"
#include "measure/bench.h"
#include "measure/clock.h"
#include "measure/statistics.h"

namespace boltbeam::audit {
namespace {

constexpr std::size_t kLeastWindows = 6;  // of each side: of fewer pairs no 95 % interval of a median can be given
constexpr double kMostTime = 4;           // times what was asked for
constexpr std::uint64_t kSeed = 1;        // of the bootstrap
constexpr double kNsPerUs = 1e3;
constexpr const char* kMemorySpeed = "memory's speed";

// Two windows, one right after the other.
struct WindowPair {
  PeerWindow theirs;
  double ours_ns = 0, read_gb_s = 0;
  bool ours_disturbed = false;

  // Where it can't be told of theirs, ours is not judged either: both alike.
  [[nodiscard]] bool IsDisturbed() const { return theirs.disturbed && (*theirs.disturbed || ours_disturbed); }
};

class OurWindows {
 public:
  OurWindows(engine::Session& session, const InterleaveOptions& options, const measure::Clock& clock,
             std::vector<std::int32_t> tokens)
      : session_(session), options_(options), clock_(clock), tokens_(std::move(tokens)) {}

  Result<void> Run(WindowPair& pair) {
    const double read_before = Read();
    if (options_.bandwidth != nullptr) measure::AwaitSleepingThreads();  // the probe's
    const measure::Counters before = options_.counters();
    const std::uint64_t begin = base::Ticks();
    for (const std::int32_t token : tokens_) BOLTBEAM_TRY(session_.Decode(token));
    const double ns = clock_.ToNs(base::Ticks() - begin);
    pair.ours_disturbed = measure::CausesBetween(before, options_.counters(), ns).any();
    pair.ours_ns = ns / static_cast<double>(tokens_.size());
    BOLTBEAM_TRY(session_.Truncate(options_.depth));
    pair.read_gb_s = options_.bandwidth == nullptr ? 0 : 2 / (1 / read_before + 1 / Read());
    return {};
  }

 private:
  double Read() { return options_.bandwidth == nullptr ? 0 : std::ranges::max(options_.bandwidth->Read()); }

  engine::Session& session_;
  const InterleaveOptions& options_;
  const measure::Clock& clock_;
  std::vector<std::int32_t> tokens_;
};

Interleaved Collect(std::vector<WindowPair> pairs) {
  Interleaved interleaved;
  interleaved.disturbed = static_cast<std::size_t>(std::ranges::count_if(pairs, &WindowPair::IsDisturbed));
  if (pairs.size() - interleaved.disturbed >= kLeastWindows) {
    interleaved.left_out = std::exchange(interleaved.disturbed, 0);
    std::erase_if(pairs, std::mem_fn(&WindowPair::IsDisturbed));
  }
  std::vector<double> read_gb_s;
  for (const WindowPair& pair : pairs) {
    interleaved.ours_ns.push_back(pair.ours_ns);
    interleaved.theirs_ns.push_back(pair.theirs.token_ns);
    read_gb_s.push_back(pair.read_gb_s);
  }
  interleaved.read_gb_s = measure::Median(read_gb_s);
  return interleaved;
}

const MatchedRegion* Find(const Matching& matching, const std::string& role, const std::string& format) {
  const auto found = std::ranges::find_if(
      matching.regions, [&](const MatchedRegion& region) { return region.role == role && region.format == format; });
  return found == matching.regions.end() ? nullptr : &*found;
}

// Our parts with what of theirs does the same. Theirs that name no table go to the part of their role.
std::vector<Region> Regions(const LiveFindings& findings) {
  std::vector<Region> regions;
  std::vector<const MatchedRegion*> used;
  for (const Part& part : findings.account.parts) {
    Region region;
    region.region = fmt::format("{} {}", part.role, part.format);
    region.ours_ns = part.now_ns;
    region.ours_bytes = static_cast<double>(part.stored_bytes > 0 ? part.stored_bytes : part.bytes);
    region.in_theirs = false;
    for (const std::string& format : {part.format, std::string()}) {
      const MatchedRegion* theirs = Find(findings.matching, part.role, format);
      if (theirs == nullptr || std::ranges::find(used, theirs) != used.end()) continue;
      used.push_back(theirs);
      region.in_theirs = true;
      region.theirs_ns += theirs->ns;
      region.theirs_bytes = region.theirs_bytes.value_or(0) + theirs->bytes;
    }
    regions.push_back(std::move(region));
  }
  for (const MatchedRegion& theirs : findings.matching.regions) {
    if (std::ranges::find(used, &theirs) != used.end()) continue;
    Region region;
    region.region = theirs.format.empty() ? theirs.role : fmt::format("{} {}", theirs.role, theirs.format);
    region.in_ours = false;
    region.theirs_ns = theirs.ns;
    region.theirs_bytes = theirs.bytes;
    regions.push_back(std::move(region));
  }
  return regions;
}

double HotParts(const LiveFindings& findings) {
  double sum = findings.matching.unmatched_ns;
  for (const MatchedRegion& region : findings.matching.regions) sum += region.hot_ns;
  return sum;
}

// A check that says by how much two measurements of one token differ.
Term Check(std::string name, std::optional<double> ours, std::optional<double> theirs, double token_ns,
           std::string note) {
  Term term{std::move(name), ours, theirs, std::move(note), kTiesOut * token_ns};
  term.note += fmt::format(": {} the budget of {:.0f} % of the token", term.IsWithinBudget() ? "within" : "beyond",
                           100 * kTiesOut);
  return term;
}

// What of the difference between two tokens of one program the memory explains that read at one rate beside the first
// and at another beside the second: the time of the token's bytes, and never more than the difference.
double OfMemory(const Account& account, double difference_ns, double first_gb_s, double second_gb_s) {
  if (first_gb_s <= 0 || second_gb_s <= 0) return 0;
  const double bytes = account.token.floor_ns * account.read_bandwidth_gb_s;
  const double explained = bytes / first_gb_s - bytes / second_gb_s;
  return std::clamp(difference_ns, std::min(0.0, explained), std::max(0.0, explained));
}

// Our token beside theirs against that of the account, theirs beside ours against that among its parts: what the
// memory's speed explains of either, and the rest as checks.
std::array<Term, 3> WindowTerms(const Comparison& comparison, const LiveFindings& findings) {
  const Account& account = findings.account;
  const double beside_gb_s = findings.one_thread.read_gb_s;
  const double among_gb_s = findings.among_gb_s.empty() ? 0 : measure::Median(findings.among_gb_s);
  const double ours = comparison.ours_token_ns - account.token.now_ns;
  const double theirs = comparison.theirs_token_ns - findings.TheirsAmongPartsNs();
  const double ours_memory = OfMemory(account, ours, beside_gb_s, account.read_bandwidth_gb_s);
  const double theirs_memory = OfMemory(account, theirs, beside_gb_s, among_gb_s);
  return {Term{kMemorySpeed, ours_memory, theirs_memory,
               fmt::format("read at {:.1f} GB/s beside the windows, {:.1f} in our account, {:.1f} among its parts",
                           beside_gb_s, account.read_bandwidth_gb_s, among_gb_s)},
          Check("account to windows", ours - ours_memory, std::nullopt, comparison.ours_token_ns,
                "our token beside theirs less that of our account, at one speed of the memory"),
          Check("parts to windows", std::nullopt, theirs - theirs_memory, comparison.theirs_token_ns,
                "its token beside ours less that among its parts, at one speed of the memory")};
}

// How far the parts alone, and the parts with what is between them, make up the token.
void AddTieOut(Comparison& comparison, const LiveFindings& findings) {
  const double token = findings.TheirsAmongPartsNs(), miss = TieOut(findings);
  std::string windows;
  if (!findings.among_parts.empty()) {
    const auto [least, most] = std::ranges::minmax(findings.among_parts, {}, &PeerWindow::token_ns);
    windows = fmt::format(" ({} of them, {:.1f} to {:.1f} µs a token)", findings.among_parts.size(),
                          least.token_ns / kNsPerUs, most.token_ns / kNsPerUs);
  }
  comparison.notes.push_back(fmt::format(
      "Its parts alone, each timed with one thread and no repacking, are {:.1f} % of its own token, windows of which{} "
      "ran between them. Tables come out of memory; out of caches they would be {:.1f} %. Attention is over {} "
      "positions, as in the token: what its padded cache masks it goes past.",
      100 * (1 + PartsTieOut(findings)), windows, 100 * HotParts(findings) / token, findings.positions));
  const std::string verdict =
      std::fabs(miss) <= kTiesOut ? "they tie out within 10 %" : "they do not tie out within 10 %";
  if (!findings.between) {
    comparison.notes.push_back(fmt::format("What it does between operations is unknown ({}) and in the residual: {}.",
                                           findings.between_unknown, verdict));
    return;
  }
  const Between& between = *findings.between;
  comparison.notes.push_back(fmt::format(
      "Its parts and what is between them are {:.1f} % of it: {}. Between operations, measured on a skeleton of the "
      "model (the same layers and operations, tables as narrow as blocks allow, its own vocabulary): its token takes "
      "{:.1f} µs, its parts alone {:.1f} µs.",
      100 * (1 + miss), verdict, between.token_ns / kNsPerUs, between.parts_ns / kNsPerUs));
}

void AddNotes(Comparison& comparison, const LiveFindings& findings) {
  AddTieOut(comparison, findings);
  comparison.notes.push_back(fmt::format(
      "Overlap: none on one thread. Host: ours is stamped; theirs is what it does between operations. The residual, "
      "{:+.1f} µs of its token, is what its operations cost less alone{}.",
      -TieOut(findings) * findings.TheirsAmongPartsNs() / kNsPerUs,
      findings.between ? "" : ", and what it does between them"));
  double ours = 0, theirs = 0;
  for (const Region& region : comparison.regions) {
    ours += region.ours_bytes.value_or(0);
    theirs += region.theirs_bytes.value_or(0);
  }
  comparison.notes.push_back(
      fmt::format("Bytes of a token: ours {:.1f} MB as stored, theirs {:.1f} MB. Its repacking interleaves rows within "
                  "blocks of the same size: it moves the same bytes in another order.",
                  ours / 1e6, theirs / 1e6));
  for (const Term& term : comparison.terms) {
    if (term.budget_ns || term.name == kMemorySpeed) {
      comparison.notes.push_back(fmt::format("{}: {}.", term.name, term.note));
    }
  }
  if (!findings.matching.unmatched.empty()) {
    comparison.notes.push_back(
        fmt::format("In no region, counted once each: {}.", fmt::join(findings.matching.unmatched, "; ")));
  }
}

}  // namespace

double LiveFindings::TheirsAmongPartsNs() const {
  if (among_parts.empty()) return one_thread.TheirsNs();
  std::vector<double> all, undisturbed;
  for (const PeerWindow& window : among_parts) {
    all.push_back(window.token_ns);
    if (!window.disturbed.value_or(false)) undisturbed.push_back(window.token_ns);
  }
  return measure::Mean(undisturbed.empty() ? all : undisturbed);
}

double Interleaved::OursNs() const { return measure::Median(ours_ns); }
double Interleaved::TheirsNs() const { return measure::Median(theirs_ns); }

PairedTokens Interleaved::Paired(std::string basis) const {
  PairedTokens paired;
  paired.basis = std::move(basis);
  paired.pairs = std::min(ours_ns.size(), theirs_ns.size());
  paired.left_out = left_out;
  paired.disturbed = disturbed;
  for (std::size_t i = 0; i < paired.pairs; ++i) paired.ours_faster += ours_ns[i] < theirs_ns[i] ? 1 : 0;
  paired.ratio = measure::PairedRatio(ours_ns, theirs_ns, kSeed);
  return paired;
}

Result<Interleaved> Interleave(engine::Engine& engine, engine::Session& session,
                               const std::function<Result<PeerWindow>()>& theirs, const InterleaveOptions& options) {
  BOLTBEAM_ASSIGN(const measure::Clock clock, measure::GetClock());
  BOLTBEAM_TRY(measure::FillContext(engine, session, options.depth, options.seed, {{}, options.cancelled}));
  std::vector<std::int32_t> tokens =
      measure::RandomTokens(engine.model().hyper().vocab, options.tokens, options.seed + 1);
  OurWindows windows(session, options, clock, std::move(tokens));
  WindowPair warm_up;
  BOLTBEAM_TRY(windows.Run(warm_up));
  BOLTBEAM_TRY(theirs());
  std::vector<WindowPair> pairs;
  std::size_t undisturbed = 0;
  const std::uint64_t begin = base::MonotonicNs();
  for (bool ours_first = true;; ours_first = !ours_first) {
    WindowPair& pair = pairs.emplace_back();
    for (const bool ours : {ours_first, !ours_first}) {
      if (options.cancelled && options.cancelled()) return Fail(Code::kInterrupted, "compare", "Ctrl-C");
      if (ours) {
        BOLTBEAM_TRY(windows.Run(pair));
      } else {
        BOLTBEAM_ASSIGN(pair.theirs, theirs());
      }
    }
    undisturbed += pair.IsDisturbed() ? 0 : 1;
    const double spent = base::SecondsSince(begin);
    if (options.progress) options.progress(std::min(spent, options.seconds), options.seconds);
    const std::size_t enough = spent < kMostTime * options.seconds ? undisturbed : pairs.size();
    if (spent >= options.seconds && enough >= kLeastWindows) return Collect(std::move(pairs));
  }
}

double PartsTieOut(const LiveFindings& findings) {
  return findings.matching.TotalNs() / findings.TheirsAmongPartsNs() - 1;
}

double TieOut(const LiveFindings& findings) {
  const double between = findings.between ? findings.between->Ns() : 0;
  return PartsTieOut(findings) + between / findings.TheirsAmongPartsNs();
}

Result<void> RequireTieOut(const Comparison& comparison, const LiveFindings& findings) {
  constexpr const char* kCure = "within 10 %: a quieter machine, or more time (--seconds)";
  for (const Term& term : comparison.terms) {
    if (term.IsWithinBudget()) continue;
    return Fail(Code::kMeasurementUnstable, term.name, fmt::format("{:.1f} us", term.DifferenceNs() / kNsPerUs), kCure);
  }
  if (std::fabs(TieOut(findings)) <= kTiesOut) return {};
  return Fail(Code::kMeasurementUnstable, "llama.cpp's parts and what is between them",
              fmt::format("{:+.1f} % off its own token", 100 * TieOut(findings)), kCure);
}

Comparison CompareLive(const LiveFindings& findings, const std::string& theirs) {
  const Token& token = findings.account.token;
  Comparison comparison;
  comparison.ours = "boltbeam";
  comparison.theirs = theirs;
  comparison.basis = "one thread each, its weights not repacked";
  comparison.depth = findings.account.depth;
  comparison.ours_token_ns = findings.one_thread.OursNs();
  comparison.theirs_token_ns = findings.one_thread.TheirsNs();
  comparison.parts_alone = 1 + PartsTieOut(findings);
  if (findings.between) comparison.parts_and_between = 1 + TieOut(findings);
  comparison.paired = {
      findings.one_thread.Paired(comparison.basis),
      findings.fastest.Paired(fmt::format("{} threads each, as both run by default", findings.threads))};
  comparison.regions = Regions(findings);
  comparison.terms = {
      {"waiting", token.wait_ns, std::nullopt, "at barriers"},
      {"host", token.host_ns, std::nullopt, "between kernels"},
      {"unaccounted", token.unaccounted_ns, std::nullopt, "of our account"},
      {"between operations", std::nullopt, findings.between ? std::optional(findings.between->Ns()) : std::nullopt,
       findings.between ? "measured on a skeleton of the model" : "unknown: " + findings.between_unknown},
      {"in no region", std::nullopt, findings.matching.unmatched_ns, "operations whose number of runs is not known"}};
  for (Term& term : WindowTerms(comparison, findings)) comparison.terms.push_back(std::move(term));
  const double repacked = findings.theirs_repacked_ns;
  comparison.beside = {
      {"tables out of caches", std::nullopt, HotParts(findings) - findings.matching.TotalNs(), "its parts, timed hot"},
      {"repacking, one thread", std::nullopt, repacked - comparison.theirs_token_ns, "of its weights when it loads"},
      {fmt::format("{} threads instead of one", findings.threads), findings.fastest.OursNs() - comparison.ours_token_ns,
       findings.fastest.TheirsNs() - repacked, ""},
      {fmt::format("token, {} threads, repacked", findings.threads), findings.fastest.OursNs(),
       findings.fastest.TheirsNs(), "as each runs by default"}};
  AddNotes(comparison, findings);
  return comparison;
}

}  // namespace boltbeam::audit
