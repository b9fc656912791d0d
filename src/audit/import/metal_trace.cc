// xctrace export of Metal System Trace. An element is written out once, with an id, and referred to from then on; a
// cell without a value is a <sentinel/>, so that cells stand in the order of the schema's columns.
#include <fmt/format.h>

#include <map>
#include <pugixml.hpp>

#include "audit/import/readers.h"
#include "base/printable.h"

namespace boltbeam::imports {
namespace {

constexpr std::size_t kDeepest = 64;  // elements within one another

using Elements = std::map<std::string, pugi::xml_node, std::less<>>;

Result<void> CollectIds(const Source& source, const pugi::xml_node& node, Elements& elements, std::size_t depth) {
  if (depth > kDeepest)
    return Fail(Code::kImportDamaged, source.name(), "elements nested too deep", "an xctrace export");
  for (const pugi::xml_node& child : node.children()) {
    if (const auto id = child.attribute("id")) elements.emplace(id.value(), child);
    BOLTBEAM_TRY(CollectIds(source, child, elements, depth + 1));
  }
  return {};
}

struct Schema {
  std::string name;
  std::vector<std::string> columns;

  [[nodiscard]] std::optional<std::size_t> Find(std::string_view column) const {
    const auto found = std::ranges::find(columns, column);
    return found == columns.end() ? std::nullopt : std::optional<std::size_t>(found - columns.begin());
  }
};

Schema SchemaOf(const pugi::xml_node& node) {
  Schema schema{node.child("schema").attribute("name").value(), {}};
  for (const pugi::xml_node& column : node.child("schema").children("col")) {
    schema.columns.emplace_back(column.child("mnemonic").text().get());
  }
  return schema;
}

std::size_t LineOf(const Source& source, const pugi::xml_node& node) {
  const auto offset = std::max<std::ptrdiff_t>(0, node.offset_debug());
  const auto begin = source.text().begin();
  const auto end = begin + std::min<std::ptrdiff_t>(offset, static_cast<std::ptrdiff_t>(source.text().size()));
  return static_cast<std::size_t>(std::count(begin, end, '\n')) + 1;
}

// The cells of a row with references followed. A reference to nothing is refused: it is no zero.
Result<std::vector<pugi::xml_node>> CellsOf(const Source& source, const pugi::xml_node& row, const Elements& elements) {
  std::vector<pugi::xml_node> cells;
  for (const pugi::xml_node& cell : row.children()) {
    if (cell.type() != pugi::node_element) continue;
    const auto reference = cell.attribute("ref");
    if (!reference) {
      cells.push_back(cell);
      continue;
    }
    const auto found = elements.find(std::string_view(reference.value()));
    if (found == elements.end()) {
      return Fail(Code::kImportDamaged, source.At(LineOf(source, row)),
                  fmt::format("<{}> refers to id {}, which is not in the file", cell.name(),
                              base::Printable(reference.value(), 20)),
                  "a whole export: rows were cut out, and what they defined is gone");
    }
    cells.push_back(found->second);
  }
  return cells;
}

Result<void> ReadRow(Imported& imported, const Source& source, const pugi::xml_node& node, const Schema& schema,
                     const Elements& elements) {
  BOLTBEAM_ASSIGN(const auto cells, CellsOf(source, node, elements));
  const std::size_t line = LineOf(source, node);
  if (cells.size() != schema.columns.size()) {
    imported.refused.push_back({line, fmt::format("{} cells under {} columns", cells.size(), schema.columns.size())});
    return {};
  }
  // Two columns have the type "duration": the mnemonic says which.
  const auto cell = [&](std::string_view column) {
    const auto at = schema.Find(column);
    return at ? cells[*at] : pugi::xml_node();
  };
  const auto start = ParseNumber(cell("start").text().get()), duration = ParseNumber(cell("duration").text().get());
  if (!start || !duration) {
    imported.refused.push_back({line, "no start or no duration"});
    return {};
  }
  Row row;
  row.name = cell("channel-name").text().get();
  row.kind = row.name == "Blit" ? RowKind::kCopy : RowKind::kKernel;
  row.group = cell("process").attribute("fmt").value();
  row.start_ns = start;
  row.total_ns = duration;
  row.line = line;
  if (imported.facts.empty() && cell("gpu"))
    imported.facts.push_back({"device", cell("gpu").attribute("fmt").value(), {}});
  imported.rows.push_back(std::move(row));
  return {};
}

std::unexpected<Error> Contents(const Source& source, const pugi::xml_node& toc) {
  const pugi::xml_node info = toc.child("run").child("info");
  return Fail(Code::kImportEmpty, source.name(),
              fmt::format("a table of contents (device {}, duration {} s)",
                          base::Printable(info.child("target").child("device").attribute("model").value(), 40),
                          base::Printable(info.child("summary").child("duration").text().get(), 20)),
              "a table: xctrace export --xpath '.../table[@schema=\"metal-gpu-intervals\"]'");
}

bool Knows(const Content& content) {
  return content.source.Contains("<trace-query-result") || content.source.Contains("<trace-toc");
}

Result<Imported> Read(const Content& content) {
  const Source& source = content.source;
  pugi::xml_document document;
  const std::string& text = source.text();
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed) {
    const auto begin = text.begin();
    const auto offset = std::min<std::ptrdiff_t>(parsed.offset, static_cast<std::ptrdiff_t>(text.size()));
    const auto line =
        static_cast<std::size_t>(std::count(begin, begin + std::max<std::ptrdiff_t>(0, offset), '\n')) + 1;
    return Fail(Code::kImportDamaged, source.At(line), parsed.description(), "whole XML");
  }
  if (const pugi::xml_node toc = document.child("trace-toc")) return Contents(source, toc);
  Elements elements;
  BOLTBEAM_TRY(CollectIds(source, document, elements, 0));
  Imported imported;
  Schema schema;
  for (const pugi::xml_node& node : document.child("trace-query-result").children("node")) {
    if (node.child("schema")) schema = SchemaOf(node);
    for (const pugi::xml_node& row : node.children("row")) {
      BOLTBEAM_TRY(ReadRow(imported, source, row, schema, elements));
    }
  }
  if (schema.name.empty()) {
    return Fail(Code::kImportEmpty, source.name(), "no table in the export", "an --xpath that matches a table");
  }
  if (imported.rows.empty()) {
    const bool shaders = schema.name == "metal-shader-profiler-intervals";
    return Fail(Code::kImportEmpty, source.name(),
                fmt::format("the table {} is empty{}", base::Printable(schema.name, 60),
                            shaders ? ": Shader Timeline was disabled, so there are no kernel names" : ""),
                "rows");
  }
  imported.kind = fmt::format("Metal System Trace ({})", schema.name);
  imported.notes.emplace_back("Intervals are of channels (Compute, Vertex, ...) and processes: kernels have no names.");
  return imported;
}

}  // namespace

const Reader kMetalTrace{"Metal System Trace (xctrace export, XML)", Knows, Read};

}  // namespace boltbeam::imports
