#include "report/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
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

Cell Binds(const roofline::Ceiling& ceiling, bool streams) {
  if (ceiling.BindsInstructions()) return {"instr.", "instructions"};
  if (!ceiling.bytes_floor_ns) return "unknown";
  return streams ? "memory" : "cache";
}

struct CeilingRows {
  std::string role, format;
  double instructions = 0;
  bool is_from_listing = true, streams = true;
};

void AddCeilings(Table& table, const CeilingRows& rows, const std::vector<roofline::Ceiling>& ceilings) {
  for (const roofline::Ceiling& ceiling : ceilings) {
    table.Add(
        {rows.role,
         rows.format,
         std::to_string(ceiling.threads),
         {Scaled(rows.instructions) + (rows.is_from_listing ? "" : "*"), fmt::format("{:.0f}", rows.instructions)},
         ceiling.bytes_floor_ns ? Cell(Duration(*ceiling.bytes_floor_ns), Number(*ceiling.bytes_floor_ns)) : Cell(""),
         {Duration(ceiling.unpack_floor_ns), Number(ceiling.unpack_floor_ns)},
         Binds(ceiling, rows.streams)});
  }
}

void AddCeilings(Table& table, const Part& part) {
  if (part.instructions.value_or(0) == 0) return;
  AddCeilings(table, {part.role, part.format, *part.instructions, part.is_from_listing, part.streams}, part.ceilings);
}

/// The two ceilings of every part at every thread count that was measured: the time in which its bytes can come, and
/// the time in which its vector instructions can be issued.
Table CeilingsTable(const Bound& bound) {
  Table table({{"part", "role", Align::kLeft},
               {"format", "format", Align::kLeft},
               {"threads", "threads"},
               {"instr.", "vector_instructions"},
               {"bytes take", "bytes_floor_ns"},
               {"they take", "unpack_floor_ns"},
               {"binds", "binds", Align::kLeft}});
  for (const bool streams : {true, false}) {
    for (const Part& part : bound.parts) {
      if (part.streams == streams) AddCeilings(table, part);
    }
  }
  for (const Part& part : bound.code_parts) AddCeilings(table, part);
  table.AddRule();
  for (const Pass& pass : bound.depths) {
    const std::string depth = "at " + Thousands(pass.depth);
    AddCeilings(table, {"attention", depth, pass.attention_instructions.value_or(0)}, pass.attention_ceilings);
    AddCeilings(table, {"token", depth, pass.instructions.value_or(0)}, pass.ceilings);
  }
  return table;
}

bool HasCeilings(const Bound& bound) { return !bound.pass.ceilings.empty(); }

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

/// Peaks that differ from format to format, and where instructions were counted.
void AddCodeNotes(const Bound& bound, std::vector<std::string>& notes) {
  const roofline::Roof& roof = bound.roof;
  for (const auto& [format, peak] : roof.peaks) {
    notes.push_back(
        fmt::format("{}: {} by {}", format, peak.flop_s ? Scaled(*peak.flop_s) + "OP/s" : "no peak", peak.from));
  }
  if (!HasCeilings(bound)) {
    notes.push_back("No floor in instructions: " + roof.instructions_missing + ".");
    return;
  }
  notes.emplace_back(
      "instr.: instructions of the vector units that one token's machine code for this chip spends, all threads "
      "together, counted in its listing; loads and stores have units of their own. They take at least their number "
      "over the measured rate of the simplest ones of their width; the bytes of tables are those that the code reads, "
      "rearranged.");
  if (std::ranges::any_of(bound.depths,
                          [](const Pass& pass) { return pass.limit == roofline::Limit::kInstructions; })) {
    notes.emplace_back(
        "limit instructions: on all threads this program's code takes longer than the floor, which is of bytes and "
        "sums alone.");
  }
  for (const std::string& kernel : roof.uncompiled) {
    notes.push_back("* counted in the loop program: " + base::Printable(kernel, 200));
  }
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
  if (const std::string text = roofline::InFlightText(bound.in_flight); !text.empty()) {
    notes.push_back(fmt::format("Bytes in flight by Little's law, bandwidth times latency: {}.", text));
  }
  AddCodeNotes(bound, notes);
  return notes;
}

std::string NotesText(const Bound& bound) {
  std::string text;
  for (const std::string& note : Notes(bound)) text += "- " + Wrap(note, 2, 78) + "\n";
  return text;
}

ordered_json OptionalJson(std::optional<double> value) { return value ? ordered_json(*value) : ordered_json(nullptr); }

ordered_json CeilingsJson(const std::vector<roofline::Ceiling>& ceilings, bool streams) {
  ordered_json list = ordered_json::array();
  for (const roofline::Ceiling& ceiling : ceilings) {
    ordered_json json;
    json["threads"] = ceiling.threads;
    json["bytes_floor_ns"] = OptionalJson(ceiling.bytes_floor_ns);
    json["unpack_floor_ns"] = ceiling.unpack_floor_ns;
    json["binds"] = Binds(ceiling, streams).raw;
    list.push_back(std::move(json));
  }
  return list;
}

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
  json["peak_flop_s"] = OptionalJson(part.peak.flop_s);
  json["peak_from"] = part.peak.from;
  json["vector_instructions"] = OptionalJson(part.instructions);
  json["instructions_from"] = !part.instructions ? "" : part.is_from_listing ? "machine_code" : "loop_program";
  json["ceilings"] = CeilingsJson(part.ceilings, part.streams);
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
  json["vector_instructions"] = OptionalJson(pass.instructions);
  json["attention_vector_instructions"] = OptionalJson(pass.attention_instructions);
  json["ceilings"] = CeilingsJson(pass.ceilings, true);
  json["attention_ceilings"] = CeilingsJson(pass.attention_ceilings, true);
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
  json["memory_latency_ns"] = OptionalJson(bound.in_flight.latency_ns);
  json["memory_latency_loaded_ns"] = OptionalJson(bound.in_flight.latency_loaded_ns);
  ordered_json threads = ordered_json::array();
  for (const auto& [count, rates] : bound.roof.threads) {
    ordered_json one;
    one["threads"] = count;
    one["bandwidth_gb_s"] = rates.memory_gb_s;
    one["cache_bandwidth_gb_s"] = OptionalJson(rates.cache_gb_s);
    for (const auto& [bits, rate] : rates.vector_instructions_s)
      one["vector_instructions_s"][std::to_string(bits)] = rate;
    threads.push_back(std::move(one));
  }
  json["threads"] = std::move(threads);
  return json;
}

std::string BoundJson(const model::Model& model, const chip::Chip& chip, const Bound& bound) {
  ordered_json json;
  json["schema"] = "boltbeam.bound.v2";
  json["model"] = model.file().path();
  json["chip"] = ChipJson(chip, bound);
  json["token"] = PassJson(bound.pass);
  json["token"]["parts_floor_ns"] = bound.pass.parts_floor_ns;
  json["limit_tok_s"] = bound.pass.limit_tok_s();
  json["ridge_ops_per_byte"] = OptionalJson(bound.ridge_ops_per_byte);
  json["bits_per_weight"] = bound.bits_per_weight;
  json["crossover_batch"] = OptionalJson(bound.crossover_batch);
  json["bytes_in_flight"] = OptionalJson(bound.in_flight.bytes);
  json["bytes_in_flight_loaded"] = OptionalJson(bound.in_flight.bytes_loaded);
  json["instructions_missing"] = bound.roof.instructions_missing;
  json["uncompiled_kernels"] = bound.roof.uncompiled;
  json["depths"] = ordered_json::array();
  for (const Pass& pass : bound.depths) json["depths"].push_back(PassJson(pass));
  json["parts"] = ordered_json::array();
  for (const Part& part : bound.parts) json["parts"].push_back(PartJson(part));
  json["code_parts"] = ordered_json::array();
  for (const Part& part : bound.code_parts) json["code_parts"].push_back(PartJson(part));
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
             DepthTable(bound).Markdown() + "\n" + (HasCeilings(bound) ? CeilingsTable(bound).Markdown() + "\n" : "") +
             NotesText(bound);
    case Form::kText:
      break;
  }
  return head + "\n" + PassInWords(bound.pass) + "\n\n" + PartsTable(bound, true).Text() + "\n" +
         DepthTable(bound).Text() + "\n" + (HasCeilings(bound) ? CeilingsTable(bound).Text() + "\n" : "") +
         NotesText(bound);
}

}  // namespace boltbeam::report
