#include "gguf/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/printable.h"
#include "gguf/contents.h"
#include "gguf/file_state.h"
#include "gguf/split_name.h"

namespace boltbeam::gguf {
namespace {

/// Only regular files have a size that can be trusted; opening a pipe would wait for its writer.
Result<int> OpenRegular(const std::string& path, struct stat& status) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Fail(Code::kFileNotFound, path, std::strerror(errno), "a file that can be read");
  if (::fstat(fd, &status) != 0) {
    const int error = errno;
    ::close(fd);
    return Fail(Code::kFileRead, path, std::strerror(error), "a file that can be read");
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd);
    return Fail(Code::kGgufNotAFile, path, S_ISDIR(status.st_mode) ? "this is a folder" : "this is a pipe or a device",
                "a GGUF file");
  }
  if (status.st_size == 0) {
    ::close(fd);
    return Fail(Code::kGgufEmpty, path, "the file is empty", "a GGUF file");
  }
  return fd;
}

/// Fewer than half of the bytes are stored, and there is a hole in the data: compression or a delayed write alone do
/// not make a file sparse.
bool IsSparse(int fd, const struct stat& status, std::uint64_t data_offset) {
  if (status.st_blocks * 512 >= status.st_size / 2) return false;
  const off_t hole = ::lseek(fd, static_cast<off_t>(data_offset), SEEK_HOLE);
  return hole >= 0 && hole < status.st_size;
}

Result<void> ReadAlignment(Parse& parse, const File& file) {
  const KeyValue* pair = file.Find("general.alignment");
  if (pair == nullptr) return {};
  const auto position = static_cast<std::uint64_t>(pair - file.metadata().data());
  parse.cursor.BeginPlace("kv", position);
  parse.cursor.NamePlace(pair->key);
  const std::string where = parse.cursor.Where(pair->file_offset);
  if (pair->type != ValueType::kU32) {
    return Fail(Code::kGgufWrongType, where, fmt::format("a value of type {}", TypeName(pair->type)), "u32");
  }
  const std::uint64_t alignment = std::get<std::uint64_t>(pair->value);
  if (alignment == 0 || alignment % 8 != 0 || alignment > kMaxAlignment) {
    return Fail(Code::kGgufAlignment, where, fmt::format("an alignment of {}", alignment),
                fmt::format("a multiple of 8, at most {}", kMaxAlignment));
  }
  parse.contents.alignment = alignment;
  return {};
}

/// Whether the file says that it is one of several. One that was joined again keeps split.count 0 and is whole.
Result<bool> IsPart(const File& file) {
  if (file.Find("split.count") == nullptr) return false;
  BOLTBEAM_ASSIGN(const std::uint64_t count, file.GetUnsigned("split.count"));
  return count > 1 || ParsePartName(file.path());
}

}  // namespace

Part::Part(Part&& other) noexcept
    : path(std::move(other.path)), fd(std::exchange(other.fd, -1)), opened(other.opened), base(other.base) {}

Part::~Part() {
  if (fd >= 0) ::close(fd);
}

Result<void> Part::CheckUnchanged() const {
  struct stat now{};
  if (::fstat(fd, &now) != 0) return Fail(Code::kFileRead, path, std::strerror(errno), "a file that can be read");
  const bool same = now.st_size == opened.st_size && now.st_mtim.tv_sec == opened.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == opened.st_mtim.tv_nsec;
  if (same) return {};
  return Fail(Code::kFileRead, path,
              now.st_size == opened.st_size
                  ? std::string("the file was changed while it was open")
                  : fmt::format("the file has {} bytes and had {} when it was opened", now.st_size, opened.st_size),
              "a file that does not change while it is read");
}

File::File(std::unique_ptr<State> state) : state_(std::move(state)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

Result<File> File::OpenPart(const std::string& path, const OpenOptions& options) {
  auto state = std::make_unique<State>();
  Part& part = state->parts.emplace_back();
  part.path = path;
  BOLTBEAM_ASSIGN(part.fd, OpenRegular(path, part.opened));
  File file(std::move(state));
  State& opened = *file.state_;
  Cursor cursor(part.fd, path, part.bytes());
  Parse parse{cursor, options, opened.contents, part.fd};
  BOLTBEAM_ASSIGN(const Header header, ParseHeader(parse));
  BOLTBEAM_TRY(ParseMetadata(parse, header.keys));
  BOLTBEAM_TRY(ReadAlignment(parse, file));
  BOLTBEAM_TRY(ParseTensorInfos(parse, header.tensors));
  BOLTBEAM_TRY(CheckDataSection(parse, path));
  BOLTBEAM_TRY(part.CheckUnchanged());
  opened.sparse = IsSparse(part.fd, part.opened, file.data_offset());
  if (opened.sparse && !options.allow_sparse) {
    return Fail(Code::kGgufSparse, path, "the file has holes instead of weights: it is for reading shapes only",
                "a file with its weights, as synth writes without --sparse");
  }
  return file;
}

Result<File> File::OpenOrThrow(const std::string& path, const OpenOptions& options) {
  BOLTBEAM_ASSIGN(File file, OpenPart(path, options));
  BOLTBEAM_ASSIGN(const bool is_part, IsPart(file));
  if (!is_part || options.one_part) return file;
  return OpenParts(std::move(file), options);
}

Result<File> File::Open(const std::string& path, const OpenOptions& options) {
  try {
    return OpenOrThrow(path, options);
  } catch (const std::bad_alloc&) {
    return Fail(Code::kOutOfMemory, path, "not enough memory to read the metadata", "more free memory");
  } catch (const std::length_error&) {
    return Fail(Code::kOutOfMemory, path, "metadata larger than this machine can address", "a smaller file");
  }
}

const std::string& File::path() const { return state_->first().path; }
std::uint32_t File::version() const { return state_->contents.version; }
std::uint64_t File::file_bytes() const { return state_->parts.back().base + state_->parts.back().bytes(); }
std::size_t File::parts() const { return state_->parts.size(); }
std::uint64_t File::data_offset() const { return state_->contents.data_offset; }
bool File::sparse() const { return state_->sparse; }
std::span<const KeyValue> File::metadata() const { return state_->contents.metadata; }
std::span<const TensorInfo> File::tensors() const { return state_->contents.tensors; }
std::span<const std::string> File::warnings() const { return state_->contents.warnings; }

const KeyValue* File::Find(std::string_view key) const {
  const Contents& contents = state_->contents;
  const auto name = [&](std::uint32_t i) -> std::string_view { return contents.metadata[i].key; };
  const auto found = std::ranges::lower_bound(contents.metadata_by_name, key, {}, name);
  if (found == contents.metadata_by_name.end() || name(*found) != key) return nullptr;
  return &contents.metadata[*found];
}

const TensorInfo* File::FindTensor(std::string_view tensor) const {
  const Contents& contents = state_->contents;
  const auto name = [&](std::uint32_t i) -> std::string_view { return contents.tensors[i].name; };
  const auto found = std::ranges::lower_bound(contents.tensors_by_name, tensor, {}, name);
  if (found == contents.tensors_by_name.end() || name(*found) != tensor) return nullptr;
  return &contents.tensors[*found];
}

Result<void> File::Read(std::uint64_t offset, std::span<std::byte> out) const {
  const auto after = std::ranges::upper_bound(state_->parts, offset, {}, &Part::base);
  const Part& part = *std::prev(after);  // the first part's base is 0
  const std::uint64_t at = offset - part.base;
  if (at > part.bytes() || out.size() > part.bytes() - at) {
    return Fail(Code::kFileRead, fmt::format("{}: byte {}", part.path, at), fmt::format("{} bytes to read", out.size()),
                fmt::format("an end within the file's {} bytes", part.bytes()));
  }
  BOLTBEAM_TRY(ReadExactly(part.fd, part.path, at, out));
  return part.CheckUnchanged();  // afterwards: what was read while the file changed is not handed out
}

}  // namespace boltbeam::gguf
