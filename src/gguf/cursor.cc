#include "gguf/cursor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/printable.h"

namespace boltbeam::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers of a file are copied as they are");

constexpr std::uint64_t kBufferBytes = 256 * 1024;

}  // namespace

Result<void> ReadExactly(int fd, const std::string& path, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t count = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(Code::kFileRead, fmt::format("{}: byte {}", path, offset), std::strerror(errno));
    if (count == 0) {
      return Fail(Code::kFileRead, fmt::format("{}: byte {}", path, offset), "the file ended: it was cut while open",
                  "a file that does not change while it is read");
    }
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Cursor::Cursor(int fd, std::string path, std::uint64_t file_bytes, std::uint64_t position, std::uint64_t end)
    : fd_(fd),
      path_(std::move(path)),
      file_bytes_(file_bytes),
      position_(position),
      end_(end),
      buffer_(std::min(kBufferBytes, end - position)) {}

void Cursor::BeginPlace(std::string_view kind, std::uint64_t index) {
  place_kind_ = kind;
  place_index_ = index;
  place_numbered_ = true;
  place_name_.clear();
}

void Cursor::NamePlace(std::string_view name) { place_name_ = name; }

std::string Cursor::Where(std::uint64_t offset) const {
  std::string place(place_kind_);
  if (place_numbered_) place += fmt::format(" {}", place_index_);
  if (!place_name_.empty()) place += fmt::format(" '{}'", base::Printable(place_name_));
  return fmt::format("{}: {} @ byte {}", path_, place, offset);
}

std::unexpected<Error> Cursor::EndOfFile(std::uint64_t needed) const {
  return Fail(Code::kGgufTruncated, Where(), fmt::format("the file ends after {} bytes", file_bytes_),
              fmt::format("{} more bytes here: the file was cut, as by a download that stopped", needed - remaining()));
}

Result<void> Cursor::Fill() {
  const std::uint64_t count = std::min<std::uint64_t>(buffer_.size(), remaining());
  BOLTBEAM_TRY(ReadExactly(fd_, path_, position_, std::span(buffer_).first(count)));
  buffer_offset_ = position_;
  buffer_bytes_ = count;
  return {};
}

Result<std::span<const std::byte>> Cursor::TakeSome(std::uint64_t limit) {
  if (remaining() == 0) return EndOfFile(1);
  const bool inside = position_ >= buffer_offset_ && position_ - buffer_offset_ < buffer_bytes_;
  if (!inside) BOLTBEAM_TRY(Fill());
  const std::uint64_t at = position_ - buffer_offset_;
  const std::uint64_t count = std::min(limit, buffer_bytes_ - at);
  position_ += count;
  return std::span<const std::byte>(buffer_).subspan(at, count);
}

Result<void> Cursor::TakeBytes(std::span<std::byte> out) {
  if (out.size() > remaining()) return EndOfFile(out.size());
  const std::uint64_t at = position_ - buffer_offset_;
  if (position_ >= buffer_offset_ && at < buffer_bytes_ && out.size() <= buffer_bytes_ - at) {
    std::memcpy(out.data(), buffer_.data() + at, out.size());
    position_ += out.size();
    return {};
  }
  while (!out.empty()) {
    BOLTBEAM_ASSIGN(const std::span<const std::byte> some, TakeSome(out.size()));
    std::ranges::copy(some, out.begin());
    out = out.subspan(some.size());
  }
  return {};
}

Result<void> Cursor::Skip(std::uint64_t bytes) {
  if (bytes > remaining()) return EndOfFile(bytes);
  position_ += bytes;
  return {};
}

}  // namespace boltbeam::gguf
