// One reader for each kind of source. A reader looks at the content, never at the file's name.
#pragma once

#include <string_view>
#include <vector>

#include "audit/import/imported.h"
#include "audit/import/source.h"
#include "audit/import/table.h"

namespace boltbeam::imports {

/// What readers look at: the text and the tables that were found in it.
struct Content {
  const Source& source;
  std::vector<TextTable> tables;
};

struct Reader {
  std::string_view kinds;  // in words
  bool (*knows)(const Content& content);
  Result<Imported> (*read)(const Content& content);
};

extern const Reader kLlamaBench;     // llama-bench: Markdown, CSV, JSON, JSON lines, SQL
extern const Reader kBatchedBench;   // llama-batched-bench: Markdown, JSON lines
extern const Reader kLlamaTimings;   // llama-cli and llama-server: timing lines and JSON
extern const Reader kBackendOps;     // test-backend-ops: console, SQL, CSV
extern const Reader kNsysDatabase;   // nsys: SQLite export
extern const Reader kNsysReports;    // nsys stats: CSV and columns
extern const Reader kNcu;            // Nsight Compute: CSV
extern const Reader kRocprofTables;  // rocprof v1, v2, v3: CSV, and v2's text
extern const Reader kRocprofJson;    // rocprofv3: JSON
extern const Reader kMetalTrace;     // xctrace export: XML
extern const Reader kChromeTrace;    // Chrome and Perfetto: JSON
extern const Reader kOllama;         // API objects and --verbose
extern const Reader kVllm;           // bench serve, bench latency
extern const Reader kMlx;            // mlx_lm, mlx_vlm
extern const Reader kLmStudio;       // REST

/// "pp512", "tg128", "pp512+tg128", "tg128 @ d4096" as llama-bench names tests.
std::string TestName(double prompt, double generated, double depth);

}  // namespace boltbeam::imports
