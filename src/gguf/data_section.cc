// The data section: where it begins, and that every tensor lies inside the file and shares no byte with another.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/printable.h"
#include "gguf/contents.h"

namespace boltbeam::gguf {
namespace {

class DataSection {
 public:
  DataSection(Parse& parse, const std::string& path)
      : parse_(parse), path_(path), tensors_(parse.contents.tensors), file_bytes_(parse.cursor.file_bytes()) {}

  Result<void> Check() {
    BOLTBEAM_TRY(CheckStart());
    BOLTBEAM_TRY(CheckSum());
    SortByOffset();
    BOLTBEAM_TRY(CheckOverlap());
    if (parse_.options.header_only) {
      BOLTBEAM_TRY(CheckEnds());
    } else {
      BOLTBEAM_TRY(CheckBounds());
      BOLTBEAM_TRY(CheckGaps());
    }
    for (TensorInfo& tensor : tensors_) tensor.file_offset += start_;
    return {};
  }

 private:
  [[nodiscard]] std::string Where(std::uint32_t index) const {
    return fmt::format("{}: tensor {} '{}' @ data offset {}", path_, index, base::Printable(tensors_[index].name),
                       tensors_[index].file_offset);
  }

  Result<void> CheckStart() {
    // The cursor is inside the file and the alignment at most 1 MiB, so this sum can't wrap.
    infos_end_ = parse_.cursor.position();
    start_ = AlignUp(infos_end_, parse_.contents.alignment);
    if (tensors_.empty()) start_ = std::min(start_, file_bytes_);
    const bool is_cut = start_ > file_bytes_ || (start_ == file_bytes_ && !tensors_.empty());
    if (is_cut && !parse_.options.header_only) {
      return Fail(Code::kGgufDataStart, fmt::format("{}: data section @ byte {}", path_, start_),
                  fmt::format("the file ends after {} bytes", file_bytes_),
                  "tensor data there: the file was cut, as by a download that stopped");
    }
    parse_.contents.data_offset = start_;
    data_bytes_ = file_bytes_ - std::min(start_, file_bytes_);
    return {};
  }

  /// Of data that need not be there: that a place in them is a number.
  Result<void> CheckEnds() const {
    for (const std::uint32_t index : order_) {
      const auto end = PaddedEnd(tensors_[index]);
      if (end && CheckedAdd(*end, start_)) continue;
      return Fail(Code::kGgufSizeOverflow, Where(index), fmt::format("{} bytes there", tensors_[index].bytes),
                  "an end that fits 64 bits");
    }
    return {};
  }

  Result<void> CheckSum() {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
      const auto next = CheckedAdd(sum, AlignUp(tensors_[i].bytes, parse_.contents.alignment));
      if (!next) {
        return Fail(Code::kGgufSizeOverflow, Where(i),
                    fmt::format("{} bytes after {} of other tensors", tensors_[i].bytes, sum),
                    "a sum that fits 64 bits");
      }
      sum = *next;
    }
    return {};
  }

  void SortByOffset() {
    order_.resize(tensors_.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::ranges::sort(order_, {}, [&](std::uint32_t i) { return std::pair(tensors_[i].file_offset, i); });
  }

  Result<void> CheckOverlap() const {
    for (std::size_t i = 1; i < order_.size(); ++i) {
      const TensorInfo& before = tensors_[order_[i - 1]];
      const TensorInfo& after = tensors_[order_[i]];
      if (after.file_offset - before.file_offset < before.bytes) {
        return Fail(Code::kGgufOverlap, Where(order_[i]),
                    fmt::format("it begins inside tensor {} '{}'", order_[i - 1], base::Printable(before.name)),
                    fmt::format("an offset {} bytes or more after that one's", before.bytes));
      }
    }
    return {};
  }

  /// The offset after a tensor when nothing but padding follows it; none when that does not fit 64 bits.
  [[nodiscard]] std::optional<std::uint64_t> PaddedEnd(const TensorInfo& tensor) const {
    const auto end = CheckedAdd(tensor.file_offset, tensor.bytes);
    return end ? CheckedAlignUp(*end, parse_.contents.alignment) : std::nullopt;
  }

  /// A file whose tensors follow each other without gaps and reach beyond its end was cut; elsewhere one offset is
  /// wrong.
  [[nodiscard]] bool IsContiguous() const {
    std::uint64_t expected = 0;
    for (const std::uint32_t index : order_) {
      const auto end = PaddedEnd(tensors_[index]);
      if (tensors_[index].file_offset != expected || !end) return false;
      expected = *end;
    }
    return true;
  }

  Result<void> CheckBounds() const {
    for (const std::uint32_t index : order_) {
      const TensorInfo& tensor = tensors_[index];
      if (tensor.file_offset <= data_bytes_ && tensor.bytes <= data_bytes_ - tensor.file_offset) continue;
      if (IsContiguous()) {
        const TensorInfo& last = tensors_[order_.back()];
        const std::uint64_t missing = last.file_offset + last.bytes - data_bytes_;
        return Fail(Code::kGgufTruncated, Where(index),
                    fmt::format("the file ends after {} bytes, {} bytes before its tensors do", file_bytes_, missing),
                    "the whole file: it was cut, as by a download that stopped");
      }
      return Fail(Code::kGgufTensorBounds, Where(index), fmt::format("{} bytes", tensor.bytes),
                  fmt::format("an end within the data section's {} bytes", data_bytes_));
    }
    return {};
  }

  Result<void> CheckGaps() const {
    BOLTBEAM_TRY(CheckPadding(infos_end_, start_));
    std::uint64_t end = 0;  // of the data so far, without padding
    for (const std::uint32_t index : order_) {
      const TensorInfo& tensor = tensors_[index];
      const std::uint64_t padded = AlignUp(end, parse_.contents.alignment);  // both within the file
      if (tensor.file_offset > padded) {
        BOLTBEAM_TRY(parse_.Warn(Code::kGgufGap, Where(index),
                                 fmt::format("{} unused bytes before it", tensor.file_offset - padded),
                                 fmt::format("offset {}", padded)));
      }
      BOLTBEAM_TRY(CheckPadding(start_ + end, start_ + padded));
      end = tensor.file_offset + tensor.bytes;
    }
    const std::uint64_t padded = std::min(AlignUp(end, parse_.contents.alignment), data_bytes_);
    BOLTBEAM_TRY(CheckPadding(start_ + end, start_ + padded));
    if (padded == data_bytes_) return {};
    BOLTBEAM_TRY(CheckNotJoined(start_ + end));
    BOLTBEAM_TRY(CheckNotJoined(start_ + padded));
    return parse_.Warn(Code::kGgufTrailingBytes, fmt::format("{}: byte {}", path_, start_ + padded),
                       fmt::format("{} bytes after the last tensor", data_bytes_ - padded), "the end of the file");
  }

  /// Another file's magic after the last tensor: somebody put parts together as if they were pieces of a cut file.
  Result<void> CheckNotJoined(std::uint64_t at) const {
    constexpr std::string_view kMagic = "GGUF";
    if (file_bytes_ - at < kMagic.size()) return {};
    std::array<std::byte, kMagic.size()> bytes{};
    BOLTBEAM_TRY(ReadExactly(parse_.fd, path_, at, bytes));
    if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) return {};
    return Fail(Code::kGgufSplitJoined, fmt::format("{}: byte {}", path_, at), "another GGUF file begins there",
                "the parts of a split model as files of their own, or joined with 'llama-gguf-split --merge'");
  }

  /// Reads padding only when strict: it would cost one read for each tensor.
  Result<void> CheckPadding(std::uint64_t from, std::uint64_t to) const {
    if (!parse_.options.strict) return {};
    Cursor padding(parse_.fd, path_, file_bytes_, from, to);
    while (padding.remaining() > 0) {
      const std::uint64_t at = padding.position();
      BOLTBEAM_ASSIGN(const std::span<const std::byte> bytes, padding.TakeSome(padding.remaining()));
      const auto bad = std::ranges::find_if(bytes, [](std::byte byte) { return byte != std::byte{0}; });
      if (bad == bytes.end()) continue;
      return Fail(Code::kGgufPaddingBytes,
                  fmt::format("{}: byte {}", path_, at + static_cast<std::uint64_t>(bad - bytes.begin())),
                  fmt::format("padding of {}", std::to_integer<int>(*bad)), "0");
    }
    return {};
  }

  Parse& parse_;
  const std::string& path_;
  std::vector<TensorInfo>& tensors_;
  std::uint64_t file_bytes_;
  std::uint64_t infos_end_ = 0;
  std::uint64_t start_ = 0;
  std::uint64_t data_bytes_ = 0;
  std::vector<std::uint32_t> order_;
};

}  // namespace

Result<void> CheckDataSection(Parse& parse, const std::string& path) { return DataSection(parse, path).Check(); }

}  // namespace boltbeam::gguf
