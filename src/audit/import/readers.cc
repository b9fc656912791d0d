#include "audit/import/readers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/printable.h"

namespace boltbeam::imports {
namespace {

// A reader that asks for more of the text comes before one that asks for less.
constexpr std::array kReaders{&kNsysDatabase,  &kBackendOps,  &kLlamaBench,  &kBatchedBench, &kNcu,
                              &kRocprofTables, &kRocprofJson, &kChromeTrace, &kMetalTrace,   &kLmStudio,
                              &kOllama,        &kVllm,        &kMlx,         &kLlamaTimings, &kNsysReports};

std::string LooksLike(const Source& source) {
  const std::string_view text = Trim(source.text());
  if (text.empty()) return "no text at all";
  if (text.starts_with("version https://git-lfs")) {
    return "a Git LFS pointer: the file itself was never fetched (git lfs pull)";
  }
  if (text.starts_with("GGUF")) return "a model, not what a program measured";
  if (!source.json_fault().empty()) return source.json_fault();
  if (!source.json().empty()) return "JSON without the keys of any tool";
  return fmt::format("text that begins with \"{}\"", base::Printable(text.substr(0, text.find('\n')), 60));
}

}  // namespace

std::vector<std::string_view> Kinds() {
  std::vector<std::string_view> kinds;
  for (const Reader* reader : kReaders) kinds.push_back(reader->kinds);
  return kinds;
}

std::string TestName(double prompt, double generated, double depth) {
  std::string name;
  if (prompt > 0) name = fmt::format("pp{}", prompt);
  if (generated > 0) name += fmt::format("{}tg{}", name.empty() ? "" : "+", generated);
  if (depth > 0) name += fmt::format(" @ d{}", depth);
  return name;
}

Result<Imported> ImportText(std::string_view name, std::string_view bytes) {
  const Source source(name, bytes);
  BOLTBEAM_ASSIGN(auto tables, ReadTables(source));
  const Content content{source, std::move(tables)};
  for (const Reader* reader : kReaders) {
    if (reader->knows(content)) return reader->read(content);
  }
  const bool damaged = source.json_cut();
  return Fail(damaged ? Code::kImportDamaged : Code::kImportUnknown, std::string(name), LooksLike(source),
              fmt::format("the output of one of: {}", fmt::join(Kinds(), "; ")));
}

}  // namespace boltbeam::imports
