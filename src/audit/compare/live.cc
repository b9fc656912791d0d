#include "audit/compare/live.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/ticks.h"
#include "measure/bench.h"
#include "measure/clock.h"
#include "measure/statistics.h"

namespace boltbeam::audit {
namespace {

constexpr std::size_t kLeastWindows = 6;  // of each side: of fewer pairs no 95 % interval of a median can be given
constexpr std::uint64_t kSeed = 1;        // of the bootstrap
constexpr double kNsPerUs = 1e3;

class OurWindows {
 public:
  OurWindows(engine::Session& session, const InterleaveOptions& options, const measure::Clock& clock,
             std::vector<std::int32_t> tokens)
      : session_(session), depth_(options.depth), clock_(clock), tokens_(std::move(tokens)) {}

  Result<double> Window() {
    const std::uint64_t begin = base::Ticks();
    for (const std::int32_t token : tokens_) BOLTBEAM_TRY(session_.Decode(token));
    const double ns = clock_.ToNs(base::Ticks() - begin) / static_cast<double>(tokens_.size());
    BOLTBEAM_TRY(session_.Truncate(depth_));
    return ns;
  }

 private:
  engine::Session& session_;
  std::uint64_t depth_;
  const measure::Clock& clock_;
  std::vector<std::int32_t> tokens_;
};

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

// How far the parts alone, and the parts with what is between them, make up the token.
void AddTieOut(Comparison& comparison, const LiveFindings& findings) {
  const double token = findings.TheirsAmongPartsNs(), miss = TieOut(findings);
  std::string windows;
  if (!findings.among_parts_ns.empty()) {
    const auto [least, most] = std::ranges::minmax(findings.among_parts_ns);
    windows = fmt::format(" ({} of them, {:.1f} to {:.1f} µs a token)", findings.among_parts_ns.size(),
                          least / kNsPerUs, most / kNsPerUs);
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
    if (term.budget_ns) comparison.notes.push_back(fmt::format("{}: {}.", term.name, term.note));
  }
  if (!findings.matching.unmatched.empty()) {
    comparison.notes.push_back(
        fmt::format("In no region, counted once each: {}.", fmt::join(findings.matching.unmatched, "; ")));
  }
}

}  // namespace

double LiveFindings::TheirsAmongPartsNs() const {
  return among_parts_ns.empty() ? one_thread.TheirsNs() : measure::Mean(among_parts_ns);
}

double Interleaved::OursNs() const { return measure::Median(ours_ns); }
double Interleaved::TheirsNs() const { return measure::Median(theirs_ns); }

PairedTokens Interleaved::Paired(std::string basis) const {
  PairedTokens paired;
  paired.basis = std::move(basis);
  paired.pairs = std::min(ours_ns.size(), theirs_ns.size());
  for (std::size_t i = 0; i < paired.pairs; ++i) paired.ours_faster += ours_ns[i] < theirs_ns[i] ? 1 : 0;
  paired.ratio = measure::PairedRatio(ours_ns, theirs_ns, kSeed);
  return paired;
}

Result<Interleaved> Interleave(engine::Engine& engine, engine::Session& session,
                               const std::function<Result<double>()>& theirs, const InterleaveOptions& options) {
  BOLTBEAM_ASSIGN(const measure::Clock clock, measure::GetClock());
  BOLTBEAM_TRY(measure::FillContext(engine, session, options.depth, options.seed, {{}, options.cancelled}));
  std::vector<std::int32_t> tokens =
      measure::RandomTokens(engine.model().hyper().vocab, options.tokens, options.seed + 1);
  OurWindows windows(session, options, clock, std::move(tokens));
  BOLTBEAM_TRY(windows.Window());  // warms up
  BOLTBEAM_TRY(theirs());
  Interleaved interleaved;
  const std::uint64_t begin = base::MonotonicNs();
  for (bool ours_first = true;; ours_first = !ours_first) {
    for (const bool ours : {ours_first, !ours_first}) {
      if (options.cancelled && options.cancelled()) return Fail(Code::kInterrupted, "compare", "Ctrl-C");
      BOLTBEAM_ASSIGN(const double ns, ours ? windows.Window() : theirs());
      (ours ? interleaved.ours_ns : interleaved.theirs_ns).push_back(ns);
    }
    const double spent = base::SecondsSince(begin);
    if (options.progress) options.progress(std::min(spent, options.seconds), options.seconds);
    if (spent >= options.seconds && interleaved.ours_ns.size() >= kLeastWindows) return interleaved;
  }
}

double PartsTieOut(const LiveFindings& findings) {
  return findings.matching.TotalNs() / findings.TheirsAmongPartsNs() - 1;
}

double TieOut(const LiveFindings& findings) {
  const double between = findings.between ? findings.between->Ns() : 0;
  return PartsTieOut(findings) + between / findings.TheirsAmongPartsNs();
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
      Check("account to windows", comparison.ours_token_ns - token.now_ns, std::nullopt, comparison.ours_token_ns,
            "our token beside theirs less that of our account"),
      Check("parts to windows", std::nullopt, comparison.theirs_token_ns - findings.TheirsAmongPartsNs(),
            comparison.theirs_token_ns, "its token beside ours less that among its parts"),
      {"between operations", std::nullopt, findings.between ? std::optional(findings.between->Ns()) : std::nullopt,
       findings.between ? "measured on a skeleton of the model" : "unknown: " + findings.between_unknown},
      {"in no region", std::nullopt, findings.matching.unmatched_ns, "operations whose number of runs is not known"}};
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
