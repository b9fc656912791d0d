// What the readers of recorded ledgers share.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "audit/recorded/recorded.h"

namespace boltbeam::audit {

using Json = nlohmann::json;

/// Tolerances of figures printed with three places, with one, and of whole ones.
inline constexpr double kThreePlaces = 0.0015, kOnePlace = 0.11, kWhole = 0.6;

/// "/endpoint/fork_token_ms"; nullopt when there is no number of that path.
std::optional<double> NumberOf(const Json& document, const std::string& path);
const Json* At(const Json& document, const std::string& path);  // null: nothing is there
std::span<const Json> ListOf(const Json& document, const std::string& path);
double SumOf(std::span<const Json> rows, const std::string& key);
std::string NameOf(const Json& row);

/// Collects lines; a derived value that is not known adds none.
class Deriver {
 public:
  Deriver(const Json& document, RecordedAccount& account) : document_(document), account_(account) {}

  /// section: the path of the object whose `check`, or that of one above it, explains a difference.
  void Line(const std::string& section, std::string line, std::optional<double> recorded, std::optional<double> derived,
            double tolerance);
  void Finding(std::string text) { account_.findings.push_back(std::move(text)); }
  void Fit(TollFit fit) { account_.fits.push_back(std::move(fit)); }
  [[nodiscard]] const Json& document() const { return document_; }

 private:
  const Json& document_;
  RecordedAccount& account_;
};

void DeriveTieOuts(Deriver& deriver);       // tie_outs.cc
void DeriveDecodeLedger(Deriver& deriver);  // ledgers.cc
void DeriveActiveBodies(Deriver& deriver);
void DeriveLifecycle(Deriver& deriver);
void DeriveWallAccount(Deriver& deriver);  // wall.cc
void DeriveCensus(Deriver& deriver);       // census.cc

/// a - b when both are known.
std::optional<double> Minus(std::optional<double> a, std::optional<double> b);
std::optional<double> Plus(std::optional<double> a, std::optional<double> b);

}  // namespace boltbeam::audit
