// What the judge says of two sides on the whole token, for commands that decide by it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "command.h"
#include "ledger/ledger.h"

namespace boltbeam::app {

struct Whole {
  std::string verdict, outcome, reason;
  std::string record;                   // hash of the verdict
  double ratio = 0, low = 0, high = 0;  // token time of B over that of A

  [[nodiscard]] bool IsPromoted() const;
};

/// A side in the judge's words: {"without=ROUTE", "plan=FILE"}; in the order in which the judge writes them down.
using Side = std::vector<std::string>;

class WholeTokens {
 public:
  /// isa: empty, or the instruction set that both sides are held to. reference: empty, or the judge's --reference. The
  /// ledger must live as long.
  WholeTokens(const Globals& globals, std::string model, std::string isa, std::string reference, std::string chip,
              std::uint32_t threads, ledger::Ledger& ledger)
      : globals_(globals),
        model_(std::move(model)),
        isa_(std::move(isa)),
        reference_(std::move(reference)),
        chip_(std::move(chip)),
        threads_(threads),
        ledger_(ledger) {}

  /// In a process of its own, and in as many more as `confirm` says when it is to be promoted. What was decided before
  /// about the same sides, and still stands, is repeated and not timed again. depths: "0" or "0,512".
  Result<Whole> Judge(const Side& a, const Side& b, double budget_s, int confirm, const std::string& depths = "0");

 private:
  Result<std::optional<Whole>> JudgedBefore(const Side& a, const Side& b, const std::string& depths);
  Result<nlohmann::json> Run(const Side& a, const Side& b, double budget_s, int confirm, const std::string& depths);

  const Globals& globals_;
  std::string model_, isa_, reference_, chip_;
  std::uint32_t threads_;
  ledger::Ledger& ledger_;
};

}  // namespace boltbeam::app
