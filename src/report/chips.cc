#include "report/chips.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using chip::Chip;
using chip::Fact;
using chip::Provenance;

std::string ValueText(const Fact& fact) {
  if (fact.provenance == Provenance::kUnknown) return "unknown";
  if (fact.value >= 1e9 && fact.unit != "bytes") return Scaled(fact.value) + fact.unit;
  const bool whole = fact.value == std::floor(fact.value) && fact.value < 9e15;
  const std::string number =
      whole ? Thousands(static_cast<std::uint64_t>(fact.value)) : fmt::format("{:.6g}", fact.value);
  // "l2_bytes 1,048,576" says it already.
  return fact.unit.empty() || fact.name.ends_with("_" + fact.unit) ? number : number + " " + fact.unit;
}

Cell FactCell(const Fact* fact) {
  return fact == nullptr ? Cell("unknown", "") : Cell(ValueText(*fact), fmt::format("{}", fact->value));
}

/// What a fact's figure rests on, each text once; facts refer to it by number.
class Footnotes {
 public:
  std::string Number(const std::string& text) {
    if (text.empty()) return {};
    auto found = std::ranges::find(texts_, text);
    if (found == texts_.end()) found = texts_.insert(texts_.end(), text);
    return std::to_string(found - texts_.begin() + 1);
  }

  [[nodiscard]] std::string Text() const {
    std::string text;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      text += fmt::format("{:>2}  ", i + 1) + Wrap(base::Printable(texts_[i], 600), 4, 76) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::string> texts_;
};

Table FactsTable(const Chip& chip, Footnotes& notes) {
  Table table({{"fact", "name", Align::kLeft},
               {"value", "value"},
               {"", "unit", Align::kLeft},
               {"from", "provenance", Align::kLeft},
               {"date", "date", Align::kLeft},
               {"note", "method"}});
  for (const Fact& fact : chip.facts) {
    const bool used = &fact == chip.Bandwidth() || &fact == chip.Peak();
    const bool known = fact.provenance != Provenance::kUnknown;
    table.Add({{base::Printable(fact.name), fact.name},
               {ValueText(fact), known ? fmt::format("{}", fact.value) : ""},
               {used ? "*" : "", fact.unit},
               std::string(ProvenanceName(fact.provenance)),
               base::Printable(fact.date),
               {notes.Number(fact.method), fact.method}});
  }
  return table;
}

std::string ShortText(const Chip& chip, Form form) {
  Footnotes notes;
  const Table table = FactsTable(chip, notes);
  if (form == Form::kCsv) return table.Csv();
  std::string text = base::Printable(chip.name, 200) + " (" + base::Printable(chip.id, 200) + ", " +
                     base::Printable(chip.backend) + ")\n\n";
  text += form == Form::kMarkdown ? table.Markdown() : table.Text();
  if (chip.Bandwidth() != nullptr || chip.Peak() != nullptr) text += "\n* what limits divide by\n";
  if (const std::string numbered = notes.Text(); !numbered.empty()) text += "\n" + numbered;
  if (!chip.note.empty()) text += "\n" + Wrap(base::Printable(chip.note, 1000)) + "\n";
  if (!chip.features.empty())
    text += "\n" + Wrap("instruction sets: " + fmt::format("{}", fmt::join(chip.features, " "))) + "\n";
  return text;
}

}  // namespace

std::string ChipListReport(const std::vector<Chip>& chips, const std::string& this_machine, Form form) {
  if (form == Form::kJson) {
    nlohmann::ordered_json json;
    json["schema"] = "boltbeam.chip_list.v1";
    json["chips"] = nlohmann::ordered_json::array();
    for (const Chip& chip : chips) json["chips"].push_back(nlohmann::ordered_json::parse(ChipToJson(chip)));
    return json.dump(1) + "\n";
  }
  Table table({{"chip", "id", Align::kLeft},
               {"name", "name", Align::kLeft},
               {"bandwidth", "bandwidth_gb_s"},
               {"published", "published_bandwidth_gb_s"},
               {"peak", "peak_flop_s"}});
  for (const Chip& chip : chips) {
    table.Add({{chip.id == this_machine ? "this machine" : base::Printable(chip.id), chip.id},
               {base::Printable(chip.name), chip.name},
               FactCell(chip.Bandwidth()),
               FactCell(chip.Find("published_bandwidth_gb_s")),
               FactCell(chip.Peak())});
  }
  if (form == Form::kCsv) return table.Csv();
  return (form == Form::kMarkdown ? table.Markdown() : table.Text()) + "\n" +
         Wrap(
             "bandwidth and peak: what limits divide by. The published figure is only shown. `boltbeam chip show NAME` "
             "lists every fact, `boltbeam chip measure` measures this machine.") +
         "\n";
}

std::string ChipReport(const Chip& chip, Form form) {
  return form == Form::kJson ? ChipToJson(chip) : ShortText(chip, form);
}

}  // namespace boltbeam::report
