#include "report/ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/html.h"
#include "report/ledger_rows.h"
#include "report/table.h"

namespace boltbeam::report {
namespace {

using nlohmann::ordered_json;

std::string Render(const Table& table, Form form) {
  if (form == Form::kCsv) return table.Csv();
  return form == Form::kMarkdown ? table.Markdown() : table.WrappedText();
}

ordered_json RowJson(const ledger::Row& row, const std::string& own_writer) {
  return {{"id", RecordId(row.writer, row.seq, own_writer)},
          {"hash", row.hash},
          {"writer", row.writer},
          {"seq", row.seq},
          {"time", row.time},
          {"kind", ledger::KindName(row.kind)},
          {"payload", row.payload}};
}

/// One field to a line; inner fields indented below it.
void AddFields(std::string& text, const nlohmann::json& value, std::size_t indent) {
  for (const auto& [key, inner] : value.items()) {
    const std::string name = value.is_array() ? "-" : Inert(key) + ":";
    if (inner.is_structured() && !inner.empty()) {
      text += std::string(indent, ' ') + name + "\n";
      AddFields(text, inner, indent + 2);
      continue;
    }
    const std::string shown = inner.is_string() ? inner.get<std::string>() : inner.dump();
    const std::size_t column = indent + DisplayWidth(name) + 1;
    text += std::string(indent, ' ') + name + " " + WrapNames(Inert(shown, 2000), indent + 2, 80, column) + "\n";
  }
}

void AddNames(std::string& text, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::string lead = fmt::format("{}: ", what);
  text += lead + Wrap(Inert(fmt::format("{}", fmt::join(names, ", ")), 2000), 2, 80, lead.size()) + "\n";
}

void AddRederivation(std::string& text, const ledger::Rederivation& again) {
  text += fmt::format("\n{} figures computed again from the stored samples", again.compared);
  if (again.differences.empty()) {
    text += ": all of them as recorded\n";
  } else {
    text += fmt::format(", {} of them differ\n", again.differences.size());
  }
  for (const ledger::Difference& one : again.differences) {
    const std::string line = fmt::format("  {}: {} is recorded, {} follows", Inert(one.field), Inert(one.stored, 2000),
                                         Inert(one.derived, 2000));
    text += "  " + WrapNames(std::string_view(line).substr(2), 4, 80, 2) + "\n";
  }
  AddNames(text, "from the samples", again.from_samples);
  AddNames(text, "from the record, because no samples show it", again.from_record);
}

ordered_json RederivationJson(const ledger::Rederivation& again) {
  ordered_json value = {{"derived", again.derived},
                        {"compared", again.compared},
                        {"from_samples", again.from_samples},
                        {"from_record", again.from_record},
                        {"differences", ordered_json::array()}};
  for (const ledger::Difference& one : again.differences) {
    value["differences"].push_back({{"field", one.field}, {"stored", one.stored}, {"derived", one.derived}});
  }
  return value;
}

ordered_json RecordJson(const ShownRecord& shown) {
  const ledger::Record& record = shown.record;
  ordered_json value = {{"schema", "boltbeam.ledger_show.v1"},
                        {"writer", record.writer},
                        {"seq", record.seq},
                        {"hash", record.hash},
                        {"prev", record.prev},
                        {"time", record.time},
                        {"kind", ledger::KindName(record.kind)},
                        {"payload", record.payload}};
  if (shown.sightings) {
    value["seen"] = {{"repetitions", shown.sightings->repetitions},
                     {"sessions", shown.sightings->sessions},
                     {"machines", shown.sightings->machines}};
  }
  if (!shown.reopen_when.empty()) value["reopen_due"] = shown.is_due;
  if (shown.rederivation) value["rederivation"] = RederivationJson(*shown.rederivation);
  return value;
}

std::string StateText(const ledger::Chain& chain) {
  if (chain.state == ledger::ChainState::kDamaged) return "DAMAGED";
  if (chain.state == ledger::ChainState::kTorn) return "torn end";
  return chain.anchor ? "whole" : "no anchor";
}

ordered_json VerificationJson(const ledger::Verification& verification) {
  ordered_json value = {{"schema", "boltbeam.ledger_verify.v1"}, {"records", verification.records},
                        {"blobs", verification.blobs},           {"chains", ordered_json::array()},
                        {"faults", ordered_json::array()},       {"notes", verification.notes}};
  for (const ledger::Chain& chain : verification.chains) {
    value["chains"].push_back({{"path", chain.path},
                               {"writer", chain.writer},
                               {"records", chain.entries.size()},
                               {"head", chain.LastHash()},
                               {"state", StateText(chain)}});
  }
  for (const Error& fault : verification.faults) {
    value["faults"].push_back(
        {{"code", CodeName(fault.code)}, {"where", fault.where}, {"found", fault.found}, {"expected", fault.expected}});
  }
  return value;
}

/// Two lines or more for each record, and nothing of it cut.
std::string ListText(const std::vector<ledger::Row>& rows, const std::string& own_writer) {
  constexpr std::size_t kIndent = 4, kWidth = 80;
  std::string text;
  for (const ledger::Row& row : rows) {
    const std::string head = fmt::format("{}  {}  {}  {}", RecordId(row.writer, row.seq, own_writer),
                                         ShortTime(row.time), ledger::KindName(row.kind), AboutText(row));
    text += WrapNames(head, kIndent, kWidth) + "\n";
    text += std::string(kIndent, ' ') + WrapNames(SaysText(row), kIndent, kWidth, kIndent) + "\n";
  }
  return text.empty() ? "no records\n" : text;
}

}  // namespace

std::string LedgerListReport(const std::vector<ledger::Row>& rows, const std::string& own_writer, Form form) {
  if (form == Form::kJson) {
    ordered_json value = {{"schema", "boltbeam.ledger_list.v1"}, {"records", ordered_json::array()}};
    for (const ledger::Row& row : rows) value["records"].push_back(RowJson(row, own_writer));
    return value.dump(2) + "\n";
  }
  if (form == Form::kText) return ListText(rows, own_writer);
  Table table({{"id", "id", Align::kLeft},
               {"time (UTC)", "time", Align::kLeft},
               {"kind", "kind", Align::kLeft},
               {"about", "about", Align::kLeft},
               {"says", "says", Align::kLeft}});
  for (const ledger::Row& row : rows) {
    table.Add({RecordId(row.writer, row.seq, own_writer), Cell(ShortTime(row.time), row.time),
               std::string(ledger::KindName(row.kind)), AboutText(row), SaysText(row)});
  }
  return Render(table, form);
}

std::string LedgerRecordReport(const ShownRecord& shown, Form form) {
  if (form == Form::kJson) return RecordJson(shown).dump(2) + "\n";
  const ledger::Record& record = shown.record;
  std::string text = fmt::format("{} {} of {}, {}\nhash {}\nafter {}\n\n", ledger::KindName(record.kind), record.seq,
                                 record.writer, Inert(record.time), record.hash, record.prev);
  AddFields(text, record.payload, 0);
  if (shown.sightings) text += "\nseen: " + ledger::Describe(*shown.sightings) + "\n";
  for (const std::string& when : shown.reopen_when) {
    text += "reopen when " + Wrap(Inert(when), 2, 80, 12) + "\n";
  }
  if (shown.is_due) text += "One of these has come true: `boltbeam ledger reopen` lets it be judged again.\n";
  if (shown.rederivation) AddRederivation(text, *shown.rederivation);
  return text;
}

std::string VerificationReport(const ledger::Verification& verification, Form form) {
  if (form == Form::kJson) return VerificationJson(verification).dump(2) + "\n";
  Table table({{"chain", "writer", Align::kLeft},
               {"records", "records"},
               {"head", "head", Align::kLeft},
               {"state", "state", Align::kLeft}});
  for (const ledger::Chain& chain : verification.chains) {
    table.Add({chain.writer, fmt::format("{}", chain.entries.size()),
               Cell(chain.LastHash().substr(0, 16), chain.LastHash()), StateText(chain)});
  }
  if (form != Form::kText) return Render(table, form);
  std::string text = verification.chains.empty() ? "no chains\n" : table.WrappedText();
  for (const std::string& note : verification.notes) text += "\nnote: " + Wrap(Inert(note, 2000), 2, 80, 6) + "\n";
  for (const Error& fault : verification.faults) text += "\n" + Wrap(fault.Message(), 2, 80) + "\n";
  text += fmt::format("\n{} records, {} blobs; {}\n", verification.records, verification.blobs,
                      verification.faults.empty() ? "nothing is wrong" : "see above for what is wrong");
  return text;
}

}  // namespace boltbeam::report
