#include "report/ledger_rows.h"

#include <fmt/format.h>

#include "report/html.h"

namespace boltbeam::report {
namespace {

template <typename T>
std::string Quantity(const T& record) {
  std::string text =
      fmt::format("{} {:.6g} ({:.6g} to {:.6g})", record.quantity, record.value, record.low, record.high);
  if (record.depth) text += fmt::format(" at depth {}", *record.depth);
  return text;
}

std::string VerdictText(const ledger::Verdict& verdict) {
  std::string text(ledger::RulingName(verdict.ruling));
  if (verdict.ratio) text += " " + RatioText(verdict);
  return text + ": " + verdict.reason;
}

std::string RecoveryText(const nlohmann::json& payload) {
  const auto shown = [&](const char* key) {
    const auto found = payload.find(key);
    return found != payload.end() ? found->dump() : std::string("?");
  };
  std::string text = shown("cut_bytes") + " bytes were cut at byte " + shown("cut_at_byte");
  if (payload.contains("chain")) text += " of " + shown("chain") + ": " + shown("reason");
  return text;
}

}  // namespace

std::string RecordId(const std::string& writer, std::uint64_t seq, const std::string& own_writer) {
  return writer == own_writer ? fmt::format("{}", seq) : fmt::format("{}:{}", writer, seq);
}

std::string ShortTime(const std::string& time) {
  constexpr std::size_t kMinutes = 16;
  std::string text = Inert(time.substr(0, kMinutes));
  if (text.size() > 10 && text[10] == 'T') text[10] = ' ';
  return text;
}

std::string RatioText(const ledger::Verdict& verdict) {
  if (!verdict.ratio) return {};
  return fmt::format("{:.4f} ({:.4f} to {:.4f})", *verdict.ratio, *verdict.ratio_low, *verdict.ratio_high);
}

std::string AboutText(const ledger::Row& row) {
  const auto subject = row.payload.find("subject");
  const nlohmann::json& about = subject != row.payload.end() && subject->is_object() ? *subject : row.payload;
  for (const char* key : {"candidate_words", "candidate", "chip"}) {
    const auto found = about.find(key);
    if (found != about.end() && found->is_string()) return Inert(found->get<std::string>());
  }
  return {};
}

std::string SaysText(const ledger::Row& row) {
  using ledger::Kind;
  std::string text;
  if (row.kind == Kind::kVerdict) {
    if (const auto verdict = ledger::VerdictFrom(row.payload)) text = VerdictText(*verdict);
  } else if (row.kind == Kind::kPrediction) {
    if (const auto prediction = ledger::PredictionFrom(row.payload)) text = Quantity(*prediction);
  } else if (row.kind == Kind::kMeasurement) {
    if (const auto measured = ledger::MeasurementFrom(row.payload)) text = Quantity(*measured);
  } else if (row.kind == Kind::kReopening) {
    if (const auto reopening = ledger::ReopeningFrom(row.payload)) text = "may be judged again: " + reopening->reason;
  } else if (row.kind == Kind::kChipFacts) {
    if (const auto facts = ledger::ChipFactsFrom(row.payload)) text = fmt::format("{} facts", facts->facts.size());
  } else {
    text = RecoveryText(row.payload);
  }
  return Inert(text.empty() ? "not what its kind says: see ledger verify" : text, 2000);
}

}  // namespace boltbeam::report
