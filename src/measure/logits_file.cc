#include "measure/logits_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace boltbeam::measure {
namespace {

constexpr std::string_view kMagic = "_logits_";
constexpr std::uint64_t kHeaderBytes = 20;
constexpr float kRange = 16;  // log-probabilities further below the largest are all the same
constexpr std::int32_t kMaxContext = 1 << 24, kMaxVocabulary = 1 << 24, kMaxChunks = 1 << 24;
constexpr std::size_t kCodesBefore = 4;  // scale and minimum

template <typename T>
char* Bytes(T* data) {
  return reinterpret_cast<char*>(data);
}
template <typename T>
const char* Bytes(const T* data) {
  return reinterpret_cast<const char*>(data);
}

std::uint64_t TokenBytes(const LogitsHeader& header) {
  return 4 * static_cast<std::uint64_t>(header.context) * static_cast<std::uint64_t>(header.chunks);
}

std::uint64_t FileBytes(const LogitsHeader& header) {
  return kHeaderBytes + TokenBytes(header) + 2 * header.Rows() * header.RowCodes();
}

Result<LogitsHeader> ReadHeader(std::ifstream& file, const std::string& path) {
  std::array<char, kHeaderBytes> bytes{};
  file.read(bytes.data(), bytes.size());
  if (!file || std::string_view(bytes.data(), kMagic.size()) != kMagic) {
    return Fail(Code::kLogitsFile, path, "no file of logits",
                "a file that llama-perplexity --kl-divergence-base or boltbeam perplexity --save-base wrote");
  }
  LogitsHeader header;
  std::memcpy(&header.context, bytes.data() + 8, 4);
  std::memcpy(&header.vocabulary, bytes.data() + 12, 4);
  std::memcpy(&header.chunks, bytes.data() + 16, 4);
  const bool sane = header.context >= 4 && header.context <= kMaxContext && header.vocabulary >= 1 &&
                    header.vocabulary <= kMaxVocabulary && header.chunks >= 1 && header.chunks <= kMaxChunks;
  if (!sane) {
    return Fail(
        Code::kLogitsFile, path,
        fmt::format("{} chunks of {} tokens of a vocabulary of {}", header.chunks, header.context, header.vocabulary),
        "at least one chunk of four tokens, and none of the three above 2^24");
  }
  return header;
}

Result<void> CheckSize(const std::string& path, const LogitsHeader& header) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  const std::uint64_t wanted = FileBytes(header);
  if (error || bytes == wanted) return {};
  return Fail(Code::kLogitsFile, path, fmt::format("{} bytes", bytes),
              fmt::format("{} for {} chunks of {} tokens: it was {}", wanted, header.chunks, header.context,
                          bytes < wanted ? "cut, or its writer did not finish" : "made for something else"));
}

}  // namespace

void EncodeLogits(std::span<const float> logits, std::span<std::uint16_t> row) {
  const auto [low, high] = std::ranges::minmax(logits);
  const float smallest = std::max(low, high - kRange);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - high);
  const auto minimum = static_cast<float>(smallest - high - std::log(sum));
  constexpr float kCodes = 65535;
  const float scale = (high - smallest) / kCodes;
  std::ranges::fill(row, std::uint16_t{0});
  std::memcpy(row.data(), &scale, sizeof scale);
  std::memcpy(row.data() + 2, &minimum, sizeof minimum);
  if (scale == 0) return;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const float steps = std::max(0.0F, (logits[token] - smallest) / scale);
    row[kCodesBefore + token] = static_cast<std::uint16_t>(std::min(kCodes, std::nearbyint(steps)));
  }
}

LogitsRow DecodeLogits(std::span<const std::uint16_t> row, std::size_t vocabulary) {
  LogitsRow view;
  std::memcpy(&view.scale, row.data(), sizeof view.scale);
  std::memcpy(&view.minimum, row.data() + 2, sizeof view.minimum);
  view.codes = row.subspan(kCodesBefore, vocabulary);
  return view;
}

Result<LogitsReader> LogitsReader::Open(const std::string& path) {
  LogitsReader reader;
  reader.path_ = path;
  reader.file_.open(path, std::ios::binary);
  if (!reader.file_) return Fail(Code::kFileNotFound, path, std::strerror(errno), "a file of logits that can be read");
  BOLTBEAM_ASSIGN(reader.header_, ReadHeader(reader.file_, path));
  BOLTBEAM_TRY(CheckSize(path, reader.header_));
  reader.tokens_.resize(TokenBytes(reader.header_) / 4);
  reader.file_.read(Bytes(reader.tokens_.data()), static_cast<std::streamsize>(TokenBytes(reader.header_)));
  if (!reader.file_) return Fail(Code::kFileRead, path, "reading the token ids failed", "a file that stays as it is");
  for (std::size_t at = 0; at < reader.tokens_.size(); ++at) {
    if (reader.tokens_[at] < 0 || reader.tokens_[at] >= reader.header_.vocabulary) {
      return Fail(Code::kLogitsFile, fmt::format("{}: token {}", path, at), fmt::format("id {}", reader.tokens_[at]),
                  fmt::format("an id below its vocabulary of {}", reader.header_.vocabulary));
    }
  }
  reader.row_.resize(reader.header_.RowCodes());
  return reader;
}

Result<LogitsRow> LogitsReader::Row(std::uint64_t index) {
  const std::uint64_t bytes = 2 * header_.RowCodes();
  file_.seekg(static_cast<std::streamoff>(kHeaderBytes + TokenBytes(header_) + index * bytes));
  file_.read(Bytes(row_.data()), static_cast<std::streamsize>(bytes));
  if (index >= header_.Rows() || !file_) {
    return Fail(Code::kFileRead, fmt::format("{}: row {}", path_, index), "reading failed",
                "a file that stays as it is while it is read");
  }
  const LogitsRow row = DecodeLogits(row_, static_cast<std::size_t>(header_.vocabulary));
  if (!std::isfinite(row.scale) || !std::isfinite(row.minimum)) {
    return Fail(Code::kLogitsFile, fmt::format("{}: row {}", path_, index), "log-probabilities that are not numbers",
                "finite ones");
  }
  return row;
}

Result<LogitsWriter> LogitsWriter::Create(const std::string& path, const LogitsHeader& header,
                                          std::span<const std::int32_t> tokens) {
  BOLTBEAM_ASSIGN(base::PendingFile file, base::PendingFile::Create(path));
  std::string head(kMagic);
  for (const std::int32_t value : {header.context, header.vocabulary, header.chunks}) {
    head.append(Bytes(&value), sizeof value);
  }
  head.append(Bytes(tokens.data()), TokenBytes(header));
  BOLTBEAM_TRY(file.Write(head));
  return LogitsWriter(std::move(file), header);
}

Result<void> LogitsWriter::Append(std::span<const float> logits) {
  EncodeLogits(logits, row_);
  ++rows_;
  return file_.Write({Bytes(row_.data()), 2 * row_.size()});
}

Result<void> LogitsWriter::Finish() {
  if (rows_ != header_.Rows()) {
    return Fail(Code::kInternal, file_.path(), fmt::format("{} rows", rows_), fmt::format("{}", header_.Rows()));
  }
  return file_.Commit();
}

}  // namespace boltbeam::measure
