#include "audit/compare/stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/json_members.h"
#include "base/printable.h"

namespace boltbeam::audit {
namespace {

using Json = nlohmann::json;

constexpr double kAddsUp = 1e-3;  // of the token: what rounding may leave

std::uint64_t Count(const Json& object, const char* key) {
  const double value = base::NumberAt(object, key).value_or(0);
  return value >= 0 && value < 1e18 ? static_cast<std::uint64_t>(value) : 0;
}

Result<Part> ReadPart(std::string_view where, const Json& json) {
  Part part;
  part.role = base::TextOf(json, "role");
  part.format = base::TextOf(json, "format");
  part.cause = base::TextOf(json, "cause");
  part.calls = Count(json, "calls");
  part.bytes = Count(json, "bytes");
  part.stored_bytes = Count(json, "stored_bytes");
  const auto floor = base::NumberAt(json, "floor_ns"), now = base::NumberAt(json, "now_ns");
  if (part.role.empty() || !floor || !now || !(*now >= 0) || !(*floor >= 0)) {
    return Fail(Code::kStoredAccount, std::string(where), "a part without role, floor_ns or now_ns",
                "what boltbeam audit -o json writes");
  }
  part.floor_ns = *floor;
  part.now_ns = *now;
  part.excess_ns = *now - *floor;
  return part;
}

Result<Account> ReadAccount(std::string_view where, const Json& json) {
  Account account;
  account.depth = Count(json, "depth");
  account.read_bandwidth_gb_s = base::NumberAt(json, "read_bandwidth_gb_s").value_or(0);
  const auto token = json.is_object() ? json.find("token") : json.end();
  const auto parts = json.is_object() ? json.find("parts") : json.end();
  if (!json.is_object() || token == json.end() || parts == json.end() || !parts->is_array()) {
    return Fail(Code::kStoredAccount, std::string(where), "a depth without token or parts",
                "what boltbeam audit -o json writes");
  }
  const struct {
    const char* key;
    double& value;
  } lines[] = {{"now_ns", account.token.now_ns},
               {"floor_ns", account.token.floor_ns},
               {"lost_ns", account.token.lost_ns},
               {"gaps_ns", account.token.gaps_ns},
               {"unaccounted_ns", account.token.unaccounted_ns}};
  for (const auto& [key, value] : lines) {
    const auto number = base::NumberAt(*token, key);
    if (!number) return Fail(Code::kStoredAccount, std::string(where), fmt::format("no token.{}", key), "a number");
    value = *number;
  }
  account.token.wait_ns = base::NumberAt(*token, "wait_ns").value_or(account.token.gaps_ns);
  account.token.host_ns = base::NumberAt(*token, "host_ns").value_or(0);
  const double sum =
      account.token.floor_ns + account.token.lost_ns + account.token.gaps_ns + account.token.unaccounted_ns;
  if (!(account.token.now_ns > 0) || std::fabs(sum - account.token.now_ns) > kAddsUp * account.token.now_ns) {
    return Fail(Code::kStoredAccount, std::string(where),
                fmt::format("lines that sum to {:.0f} ns beside a token of {:.0f} ns", sum, account.token.now_ns),
                "floor + lost + gaps + unaccounted = token");
  }
  for (const Json& part : *parts) {
    BOLTBEAM_ASSIGN(Part read, ReadPart(where, part));
    account.parts.push_back(std::move(read));
  }
  return account;
}

std::string RegionName(const Part& part) { return fmt::format("{} {}", part.role, part.format); }

// What a part would take less if it came as near to its own floor as the other's does to its.
double Gain(const Part& own, const Part& other) {
  if (!(own.floor_ns > 0) || !(other.floor_ns > 0) || !(other.now_ns > 0)) return 0;
  return std::max(0.0, own.now_ns - own.floor_ns * other.now_ns / other.floor_ns);
}

std::vector<Region> Regions(const Account& ours, const Account& theirs) {
  std::vector<Region> regions;
  std::vector<bool> used(theirs.parts.size(), false);
  for (const Part& part : ours.parts) {
    Region region;
    region.region = RegionName(part);
    region.ours_ns = part.now_ns;
    region.ours_bytes = static_cast<double>(part.bytes);
    const auto other = std::ranges::find_if(
        theirs.parts, [&](const Part& p) { return p.role == part.role && p.format == part.format; });
    region.in_theirs = other != theirs.parts.end();
    if (region.in_theirs) {
      used[static_cast<std::size_t>(other - theirs.parts.begin())] = true;
      region.theirs_ns = other->now_ns;
      region.theirs_bytes = static_cast<double>(other->bytes);
      region.ours_gain_ns = Gain(part, *other);
      region.theirs_gain_ns = Gain(*other, part);
    }
    regions.push_back(std::move(region));
  }
  for (std::size_t i = 0; i < theirs.parts.size(); ++i) {
    if (used[i]) continue;
    Region region;
    region.region = RegionName(theirs.parts[i]);
    region.in_ours = false;
    region.theirs_ns = theirs.parts[i].now_ns;
    region.theirs_bytes = static_cast<double>(theirs.parts[i].bytes);
    regions.push_back(std::move(region));
  }
  return regions;
}

std::string Describe(const StoredAudit& audit) {
  return fmt::format("{} ({}, {} threads)", std::filesystem::path(audit.name).filename().string(), audit.machine,
                     audit.threads);
}

}  // namespace

bool IsStoredAudit(const Json& document) { return base::TextOf(document, "schema").starts_with("boltbeam.audit."); }

Result<StoredAudit> ReadStoredAudit(std::string_view name, const Json& document) {
  const auto depths = document.is_object() ? document.find("depths") : document.end();
  if (!IsStoredAudit(document) || depths == document.end() || !depths->is_array() || depths->empty()) {
    return Fail(Code::kStoredAccount, std::string(name),
                fmt::format("no stored account (schema \"{}\")", base::Printable(base::TextOf(document, "schema"), 60)),
                "what boltbeam audit MODEL -o json writes");
  }
  StoredAudit audit;
  audit.name = std::string(name);
  audit.machine = base::Printable(base::TextOf(document, "machine"), 60);
  audit.threads = Count(document, "threads");
  if (const auto model = document.find("model"); model != document.end()) audit.model = base::TextOf(*model, "type");
  if (const auto environment = document.find("environment"); environment != document.end()) {
    audit.date = base::TextOf(*environment, "date");
  }
  for (const Json& depth : *depths) {
    BOLTBEAM_ASSIGN(Account account, ReadAccount(fmt::format("{}: depth {}", name, Count(depth, "depth")), depth));
    audit.accounts.push_back(std::move(account));
  }
  return audit;
}

Result<std::vector<Comparison>> CompareStored(const StoredAudit& ours, const StoredAudit& theirs) {
  std::vector<Comparison> comparisons;
  for (const Account& account : ours.accounts) {
    const auto other = std::ranges::find(theirs.accounts, account.depth, &Account::depth);
    if (other == theirs.accounts.end()) continue;
    Comparison comparison;
    comparison.ours = Describe(ours);
    comparison.theirs = Describe(theirs);
    comparison.basis = fmt::format("stored accounts of {}, depth {}", ours.model, account.depth);
    comparison.depth = account.depth;
    comparison.ours_token_ns = account.token.now_ns;
    comparison.theirs_token_ns = other->token.now_ns;
    comparison.regions = Regions(account, *other);
    comparison.terms = {{"waiting", account.token.wait_ns, other->token.wait_ns, "at barriers"},
                        {"host", account.token.host_ns, other->token.host_ns, "between kernels"},
                        {"unaccounted", account.token.unaccounted_ns, other->token.unaccounted_ns, "of each account"}};
    if (ours.model != theirs.model) {
      comparison.notes.push_back(
          fmt::format("Two models, {} and {}: regions of one name hold other bytes.", ours.model, theirs.model));
    }
    comparison.notes.push_back(fmt::format("The memory read {:.1f} GB/s for A and {:.1f} for B.",
                                           account.read_bandwidth_gb_s, other->read_bandwidth_gb_s));
    if (ours.date != theirs.date) {
      comparison.notes.push_back(
          fmt::format("Measured apart, {} and {}: what the machine did meanwhile is in the "
                      "difference.",
                      ours.date, theirs.date));
    }
    comparisons.push_back(std::move(comparison));
  }
  if (comparisons.empty()) {
    return Fail(Code::kStoredAccount, fmt::format("{}, {}", ours.name, theirs.name), "no depth that both have",
                "two accounts at one depth at least");
  }
  return comparisons;
}

}  // namespace boltbeam::audit
