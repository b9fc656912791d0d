// The file in which llama-perplexity keeps a model's log-probabilities (--kl-divergence-base): read and written.
//
// 8 bytes "_logits_"; int32 context, vocabulary, chunks; context x chunks token ids (int32); then for each scored
// position a row of uint16: float scale, float minimum, and one code per token, padded to an even number. A
// log-probability is scale * code + minimum, at most 16 below the row's largest: one step is 2.4e-4.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/pending_file.h"

namespace boltbeam::measure {

struct LogitsHeader {
  std::int32_t context = 0, vocabulary = 0, chunks = 0;

  /// The first position of a chunk whose prediction is scored; the last is context - 2, which predicts the last token.
  [[nodiscard]] std::uint64_t FirstScored() const { return static_cast<std::uint64_t>(context) / 2; }
  [[nodiscard]] std::uint64_t ScoredPerChunk() const { return static_cast<std::uint64_t>(context) - 1 - FirstScored(); }
  [[nodiscard]] std::uint64_t Rows() const { return static_cast<std::uint64_t>(chunks) * ScoredPerChunk(); }
  [[nodiscard]] std::uint64_t RowCodes() const { return 2 * ((static_cast<std::uint64_t>(vocabulary) + 1) / 2) + 4; }
};

/// The log-probabilities of one position.
struct LogitsRow {
  float scale = 0, minimum = 0;
  std::span<const std::uint16_t> codes;  // one per token

  [[nodiscard]] double At(std::size_t token) const { return static_cast<double>(scale) * codes[token] + minimum; }
};

/// Logits as a row of codes; `row` has RowCodes() elements.
void EncodeLogits(std::span<const float> logits, std::span<std::uint16_t> row);
/// The view of a row of codes.
LogitsRow DecodeLogits(std::span<const std::uint16_t> row, std::size_t vocabulary);

class LogitsReader {
 public:
  /// kLogitsFile when it is not such a file, is cut, or holds ids outside its own vocabulary.
  static Result<LogitsReader> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const LogitsHeader& header() const { return header_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }
  /// Valid until the next call.
  Result<LogitsRow> Row(std::uint64_t index);

 private:
  std::string path_;
  std::ifstream file_;
  LogitsHeader header_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint16_t> row_;
};

class LogitsWriter {
 public:
  /// `tokens` are the whole chunks. The file appears under its name only when Finish succeeds.
  static Result<LogitsWriter> Create(const std::string& path, const LogitsHeader& header,
                                     std::span<const std::int32_t> tokens);
  Result<void> Append(std::span<const float> logits);
  Result<void> Finish();

 private:
  LogitsWriter(base::PendingFile file, const LogitsHeader& header)
      : file_(std::move(file)), header_(header), row_(header.RowCodes()) {}

  base::PendingFile file_;
  LogitsHeader header_;
  std::uint64_t rows_ = 0;
  std::vector<std::uint16_t> row_;
};

}  // namespace boltbeam::measure
