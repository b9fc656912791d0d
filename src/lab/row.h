// One row of a ladder: one visit to one model on one machine, as a line of JSON.
//
// The first eight fields are those of the lab's own script, which reads our files and whose files are read here as they
// are. A row of ours is one visit of one pass: several rows of a model are taken together by fit.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace boltbeam::lab {

struct Row {
  // The lab's.
  std::string model = {};
  std::string alias = {};   // of the machine
  std::string device = {};  // its chip
  double weight_bytes_per_token = 0;
  double generation_tps = 0;
  std::uint64_t experts = 0;             // above 0: a mixture, left out of the line
  std::optional<double> spec_gb_s = {};  // published; "spec_gbps" in the file
  // Ours: empty or 0 in the lab's files.
  std::string engine = {};  // "boltbeam", "llama.cpp", a name of the user's
  std::string engine_version = {};
  std::string architecture = {};
  std::string quantization = {};
  std::string header_sha256 = {};  // of the model file's header
  std::string date = {};           // UTC
  double kv_bytes_per_token = 0;   // read at that depth
  std::uint64_t depth = 0, threads = 0, pass = 0;
  // How it ran. Empty in rows that were written before these were kept.
  std::string isa = {};   // "native": all that the machine has
  std::string plan = {};  // what chose the kernels: "default", or names and a hash
  std::string cache_k = {}, cache_v = {};
  std::uint64_t tokens = 0;                // of each repetition of another program
  std::string command = {};                // of a program that is run by one
  std::string setup = {};                  // of an import: what computed, and its flags that change the speed
  std::vector<double> token_s = {};        // seconds per token, a window each
  std::vector<double> streamed_gb_s = {};  // read bandwidth beside each window; one value stands for all
  std::uint64_t left_out = 0;              // windows during which the memory changed its speed

  /// What a token reads from memory.
  [[nodiscard]] double Bytes() const { return weight_bytes_per_token + kv_bytes_per_token; }
  [[nodiscard]] double Seconds() const { return 1 / generation_tps; }
  /// The model's file name without folders.
  [[nodiscard]] std::string ShortModel() const;
  /// "native" and "f16" where the row says nothing.
  [[nodiscard]] std::string ShownIsa() const { return isa.empty() ? "native" : isa; }
  [[nodiscard]] std::string ShownCache() const;
};

/// In `experts`: a mixture of nobody says how many.
inline constexpr std::uint64_t kUnknownExperts = 1;
/// "a mixture of 128 experts".
std::string MixtureName(std::uint64_t experts);

/// nullopt for a row of another experiment. where names file and line; kLabRow when a field is missing, of the wrong
/// type or out of range: a rate of zero or below is named so.
Result<std::optional<Row>> ParseRow(std::string_view line, const std::string& where);

nlohmann::ordered_json ToJson(const Row& row);

/// Every row of a file, in its order. A last line that was cut while it was written is left out and told in `cut`.
Result<std::vector<Row>> ReadRows(const std::string& path, bool* cut = nullptr);

/// Adds a line and waits until it is on the disk; the folders above are made.
Result<void> AppendRow(const std::string& path, const Row& row);

}  // namespace boltbeam::lab
