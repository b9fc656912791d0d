#include "report/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/printable.h"
#include "report/table.h"
#include "report/units.h"

namespace boltbeam::report {
namespace {

using nlohmann::ordered_json;
using roofline::Bound;
using roofline::Part;
using roofline::Pass;

std::string Number(double value) { return fmt::format("{}", value); }

Cell OptionalCell(std::optional<double> value, int places) {
  return value ? Cell(Decimal(*value, places), Number(*value)) : Cell("");
}

std::vector<Column> PartColumns() {
  return {{"part", "role", Align::kLeft},
          {"format", "format", Align::kLeft},
          {"calls", "calls"},
          {"bytes", "bytes"},
          {"floor", "floor_ns"},
          {"share", "share"},
          {"limit", "limit", Align::kLeft},
          {"M*", "crossover_batch"}};
}

void AddPart(Table& table, const Part& part, double token_ns) {
  const double share = part.streams ? part.floor_ns.value_or(0) / token_ns : 0;
  table.Add({part.role,
             part.format,
             part.calls > 0 ? Cell(std::to_string(part.calls)) : Cell(""),
             {Thousands(static_cast<std::uint64_t>(part.bytes)), fmt::format("{:.0f}", part.bytes)},
             part.floor_ns ? Cell(Duration(*part.floor_ns), Number(*part.floor_ns)) : Cell("unknown", ""),
             part.streams ? Cell(Percent(share), Number(share)) : Cell(""),
             std::string(LimitName(part.limit)),
             OptionalCell(part.crossover_batch, 2)});
}

Table PartsTable(const Bound& bound, bool total) {
  Table table(PartColumns());
  for (const bool streams : {true, false}) {
    for (const Part& part : bound.parts) {
      if (part.streams == streams) AddPart(table, part, bound.pass.floor_ns);
    }
    if (!streams || !total) continue;
    table.AddRule();
    const Pass& pass = bound.pass;
    table.Add({pass.tokens * pass.sequences == 1 ? "token" : "pass", "", "",
               Thousands(static_cast<std::uint64_t>(pass.bytes())), Duration(pass.floor_ns), "100.0 %",
               std::string(LimitName(pass.limit)), OptionalCell(bound.crossover_batch, 2)});
    table.AddRule();
  }
  return table;
}

Table DepthTable(const Bound& bound) {
  Table table({{"depth", "depth"},
               {"KV cache bytes", "kv_bytes"},
               {"all bytes", "bytes"},
               {"floor", "floor_ns"},
               {"limit", "limit", Align::kLeft},
               {"tokens/s", "limit_tok_s"}});
  for (const Pass& pass : bound.depths) {
    table.Add({Thousands(pass.depth),
               {Thousands(static_cast<std::uint64_t>(pass.kv_bytes)), fmt::format("{:.0f}", pass.kv_bytes)},
               {Thousands(static_cast<std::uint64_t>(pass.bytes())), fmt::format("{:.0f}", pass.bytes())},
               {Duration(pass.floor_ns), Number(pass.floor_ns)},
               std::string(LimitName(pass.limit)),
               {Decimal(pass.limit_tok_s(), 2), Number(pass.limit_tok_s())}});
  }
  return table;
}

/// The two ceilings of every format at every thread count that was measured: the rate at which memory delivers its
/// bytes, and the rate at which the instructions consume them.
Table CeilingsTable(const chip::Chip& chip, const Bound& bound) {
  Table table({{"format", "format", Align::kLeft},
               {"instructions/weight", "instructions_per_weight"},
               {"threads", "threads"},
               {"memory GB/s", "memory_gb_s"},
               {"unpacking GB/s", "unpack_gb_s"},
               {"binds", "binds", Align::kLeft}});
  const std::string prefix = "read_bandwidth_gb_s.threads_";
  std::uint64_t most = 1;
  std::map<std::uint64_t, double> memory;
  for (const chip::Fact& fact : chip.facts) {
    if (!fact.name.starts_with(prefix)) continue;
    const std::uint64_t threads = std::stoull(fact.name.substr(prefix.size()));
    memory[threads] = fact.value;
    most = std::max(most, threads);
  }
  std::set<std::string> shown;
  for (const Part& part : bound.parts) {
    if (!part.unpack_floor_ns || !shown.insert(part.format).second) continue;
    const double all_threads = part.bytes / *part.unpack_floor_ns;
    for (const auto& [threads, gb_s] : memory) {
      const double unpack = all_threads * static_cast<double>(threads) / static_cast<double>(most);
      table.Add({part.format,
                 fmt::format("{:.3f}", bound.roof.instructions_per_weight.at(part.format)),
                 std::to_string(threads),
                 {Decimal(gb_s, 1), Number(gb_s)},
                 {Decimal(unpack, 1), Number(unpack)},
                 unpack < gb_s ? "instructions" : "memory"});
    }
  }
  return table;
}

bool HasCeilings(const Bound& bound) {
  return std::ranges::any_of(bound.parts, [](const Part& part) { return part.unpack_floor_ns.has_value(); });
}

std::string PassInWords(const Pass& pass) {
  std::string words = pass.tokens > 1      ? fmt::format("A prompt of {} tokens", Thousands(pass.tokens))
                      : pass.sequences > 1 ? fmt::format("One token of each of {} sequences", Thousands(pass.sequences))
                                           : "One token";
  if (pass.tokens > 1 && pass.sequences > 1) words += fmt::format(", {} at a time", Thousands(pass.sequences));
  return words + fmt::format(" at depth {}", Thousands(pass.depth));
}

std::string ChipLines(const chip::Chip& chip, const Bound& bound) {
  const roofline::Roof& roof = bound.roof;
  std::string text = Wrap(
      fmt::format("on {}: {:.6g} GB/s ({})", base::Printable(chip.name, 200), roof.bandwidth_gb_s, roof.bandwidth_from),
      2);
  if (const std::optional<double> published = chip.Get("published_bandwidth_gb_s")) {
    text += fmt::format("\n  published, not used: {:.6g} GB/s", *published);
  }
  const std::string peak = roof.peak_flop_s
                               ? fmt::format("{}FLOP/s ({}), ridge {} operations per byte", Scaled(*roof.peak_flop_s),
                                             roof.peak_from, Decimal(*bound.ridge_ops_per_byte, 2))
                               : "no peak is known: compute limits and M* stay unknown (--peak)";
  text += "\n  " + Wrap(peak, 2, 78);
  return text + "\n";
}

std::vector<std::string> Notes(const Bound& bound) {
  const Pass& pass = bound.pass;
  std::vector<std::string> notes;
  notes.push_back(fmt::format(
      "{} operations in the weights, {} in attention; {:.3f} bits a weight{}",
      Thousands(static_cast<std::uint64_t>(pass.weight_flops)),
      Thousands(static_cast<std::uint64_t>(pass.attention_flops)), bound.bits_per_weight,
      bound.crossover_batch ? fmt::format(", M* of the whole model {:.2f} tokens together", *bound.crossover_batch)
                            : ""));
  if (pass.parts_floor_ns > pass.floor_ns * 1.0005) {
    notes.push_back(
        fmt::format("The parts one after another take {}: the floor of the pass lets bytes of one overlap "
                    "sums of another.",
                    Duration(pass.parts_floor_ns)));
  }
  notes.emplace_back(
      "activations: 16-bit vectors into and out of the tables. Below the line: what a cache holds, not "
      "part of the floor; unknown where no cache bandwidth was measured.");
  notes.push_back(
      fmt::format("Written or gathered besides, not in the floor: {} bytes of KV cache, {} of the embedding.",
                  Thousands(static_cast<std::uint64_t>(pass.kv_append_bytes)),
                  Thousands(static_cast<std::uint64_t>(pass.row_bytes))));
  if (bound.bytes_in_flight) {
    notes.push_back(
        fmt::format("{} have to be under way at any time (bandwidth times latency).", Bytes(*bound.bytes_in_flight)));
  }
  return notes;
}

std::string NotesText(const Bound& bound) {
  std::string text;
  for (const std::string& note : Notes(bound)) text += "- " + Wrap(note, 2, 78) + "\n";
  return text;
}

ordered_json OptionalJson(std::optional<double> value) { return value ? ordered_json(*value) : ordered_json(nullptr); }

ordered_json PartJson(const Part& part) {
  ordered_json json;
  json["role"] = part.role;
  json["format"] = part.format;
  json["calls"] = part.calls;
  json["bytes"] = static_cast<std::uint64_t>(part.bytes);
  json["activation_bytes"] = static_cast<std::uint64_t>(part.activation_bytes);
  json["flop"] = part.flops;
  json["in_token_floor"] = part.streams;
  json["floor_ns"] = OptionalJson(part.floor_ns);
  json["unpack_floor_ns"] = OptionalJson(part.unpack_floor_ns);
  json["limit"] = LimitName(part.limit);
  json["crossover_batch"] = OptionalJson(part.crossover_batch);
  json["bits_per_weight"] = part.bits_per_weight > 0 ? ordered_json(part.bits_per_weight) : ordered_json(nullptr);
  return json;
}

ordered_json PassJson(const Pass& pass) {
  ordered_json json;
  json["depth"] = pass.depth;
  json["tokens"] = pass.tokens;
  json["sequences"] = pass.sequences;
  json["weight_bytes"] = static_cast<std::uint64_t>(pass.weight_bytes);
  json["activation_bytes"] = static_cast<std::uint64_t>(pass.activation_bytes);
  json["kv_bytes"] = static_cast<std::uint64_t>(pass.kv_bytes);
  json["bytes"] = static_cast<std::uint64_t>(pass.bytes());
  json["kv_append_bytes"] = static_cast<std::uint64_t>(pass.kv_append_bytes);
  json["embedding_row_bytes"] = static_cast<std::uint64_t>(pass.row_bytes);
  json["weight_flop"] = static_cast<std::uint64_t>(pass.weight_flops);
  json["attention_flop"] = static_cast<std::uint64_t>(pass.attention_flops);
  json["floor_ns"] = pass.floor_ns;
  json["limit"] = LimitName(pass.limit);
  json["limit_tok_s"] = pass.limit_tok_s();
  return json;
}

ordered_json ChipJson(const chip::Chip& chip, const Bound& bound) {
  ordered_json json;
  json["id"] = chip.id;
  json["name"] = chip.name;
  json["bandwidth_gb_s"] = bound.roof.bandwidth_gb_s;
  json["bandwidth_from"] = bound.roof.bandwidth_from;
  json["published_bandwidth_gb_s"] = OptionalJson(chip.Get("published_bandwidth_gb_s"));
  json["peak_flop_s"] = OptionalJson(bound.roof.peak_flop_s);
  json["peak_from"] = bound.roof.peak_from;
  json["cache_bandwidth_gb_s"] = OptionalJson(bound.roof.cache_bandwidth_gb_s);
  return json;
}

std::string BoundJson(const model::Model& model, const chip::Chip& chip, const Bound& bound) {
  ordered_json json;
  json["schema"] = "boltbeam.bound.v1";
  json["model"] = model.file().path();
  json["chip"] = ChipJson(chip, bound);
  json["token"] = PassJson(bound.pass);
  json["token"]["parts_floor_ns"] = bound.pass.parts_floor_ns;
  json["limit_tok_s"] = bound.pass.limit_tok_s();
  json["ridge_ops_per_byte"] = OptionalJson(bound.ridge_ops_per_byte);
  json["bits_per_weight"] = bound.bits_per_weight;
  json["crossover_batch"] = OptionalJson(bound.crossover_batch);
  json["bytes_in_flight"] = OptionalJson(bound.bytes_in_flight);
  json["depths"] = ordered_json::array();
  for (const Pass& pass : bound.depths) json["depths"].push_back(PassJson(pass));
  json["parts"] = ordered_json::array();
  for (const Part& part : bound.parts) json["parts"].push_back(PartJson(part));
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string BoundReport(const model::Model& model, const chip::Chip& chip, const Bound& bound, Form form) {
  const std::string head = base::Printable(model.file().path(), 400) + "\n" + ChipLines(chip, bound);
  switch (form) {
    case Form::kJson:
      return BoundJson(model, chip, bound);
    case Form::kCsv:
      return PartsTable(bound, false).Csv();
    case Form::kMarkdown:
      return head + "\n" + PassInWords(bound.pass) + "\n\n" + PartsTable(bound, true).Markdown() + "\n" +
             DepthTable(bound).Markdown() + "\n" +
             (HasCeilings(bound) ? CeilingsTable(chip, bound).Markdown() + "\n" : "") + NotesText(bound);
    case Form::kText:
      break;
  }
  return head + "\n" + PassInWords(bound.pass) + "\n\n" + PartsTable(bound, true).Text() + "\n" +
         DepthTable(bound).Text() + "\n" + (HasCeilings(bound) ? CeilingsTable(chip, bound).Text() + "\n" : "") +
         NotesText(bound);
}

}  // namespace boltbeam::report
