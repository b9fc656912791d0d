#include "gguf/writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/checked.h"
#include "base/pending_file.h"
#include "base/printable.h"
#include "formats/format.h"
#include "gguf/contents.h"

namespace boltbeam::gguf {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

template <typename T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void AppendText(std::string& out, std::string_view text) {
  Append<std::uint64_t>(out, text.size());
  out += text;
}

}  // namespace

struct Writer::State {
  explicit State(base::PendingFile pending) : file(std::move(pending)) {}

  [[nodiscard]] std::unexpected<Error> OrderError(std::string found, std::string expected) const {
    return Fail(Code::kGgufWriteOrder, file.path(), std::move(found), std::move(expected));
  }

  void BeginKey(std::string_view key, ValueType type) {
    ++keys;
    AppendText(metadata, key);
    Append(metadata, static_cast<std::uint32_t>(type));
  }

  void BeginArray(std::string_view key, ValueType element, std::size_t count) {
    BeginKey(key, ValueType::kArray);
    Append(metadata, static_cast<std::uint32_t>(element));
    Append<std::uint64_t>(metadata, count);
  }

  /// Puts bytes at the end of the file, through the buffer.
  Result<void> Put(std::span<const std::byte> bytes) {
    if (buffer.size() + bytes.size() > kBufferBytes) BOLTBEAM_TRY(Flush());
    if (bytes.size() >= kBufferBytes) return WriteAll(bytes);
    buffer.insert(buffer.end(), bytes.begin(), bytes.end());
    return {};
  }

  Result<void> Flush() {
    BOLTBEAM_TRY(WriteAll(buffer));
    buffer.clear();
    return {};
  }

  Result<void> WriteAll(std::span<const std::byte> bytes) {
    return file.Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  /// After the last byte of the current tensor: its padding, and the next tensor.
  Result<void> EndTensor() {
    const std::uint64_t padding = AlignUp(sizes[current], alignment) - sizes[current];
    BOLTBEAM_TRY(Put(std::vector<std::byte>(padding)));
    NextTensor();
    return {};
  }

  void NextTensor() {
    ++current;
    written = 0;
  }

  base::PendingFile file;
  bool begun = false;
  std::uint64_t alignment = kDefaultAlignment;
  std::uint64_t keys = 0;
  std::string metadata;
  std::vector<std::uint64_t> sizes;  // of the tensors' data
  std::size_t current = 0;
  std::uint64_t written = 0;  // of the current tensor
  std::vector<std::byte> buffer;
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::Create(const std::string& path, std::uint32_t alignment) {
  if (alignment == 0 || alignment % 8 != 0 || alignment > kMaxAlignment) {
    return Fail(Code::kGgufAlignment, path, fmt::format("an alignment of {}", alignment),
                fmt::format("a multiple of 8, at most {}", kMaxAlignment));
  }
  BOLTBEAM_ASSIGN(base::PendingFile file, base::PendingFile::Create(path));
  auto state = std::make_unique<State>(std::move(file));
  state->alignment = alignment;
  Writer writer(std::move(state));
  if (alignment != kDefaultAlignment) writer.Add("general.alignment", alignment);
  return writer;
}

void Writer::Add(std::string_view key, std::uint32_t value) {
  state_->BeginKey(key, ValueType::kU32);
  Append(state_->metadata, value);
}

void Writer::Add(std::string_view key, std::uint64_t value) {
  state_->BeginKey(key, ValueType::kU64);
  Append(state_->metadata, value);
}

void Writer::Add(std::string_view key, float value) {
  state_->BeginKey(key, ValueType::kF32);
  Append(state_->metadata, value);
}

void Writer::Add(std::string_view key, bool value) {
  state_->BeginKey(key, ValueType::kBool);
  Append<std::uint8_t>(state_->metadata, value ? 1 : 0);
}

void Writer::Add(std::string_view key, std::string_view value) {
  state_->BeginKey(key, ValueType::kString);
  AppendText(state_->metadata, value);
}

void Writer::Add(std::string_view key, const std::vector<std::string>& value) {
  state_->BeginArray(key, ValueType::kString, value.size());
  for (const std::string& text : value) AppendText(state_->metadata, text);
}

void Writer::Add(std::string_view key, const std::vector<std::int32_t>& value) {
  state_->BeginArray(key, ValueType::kI32, value.size());
  for (const std::int32_t number : value) Append(state_->metadata, number);
}

void Writer::Add(std::string_view key, const std::vector<float>& value) {
  state_->BeginArray(key, ValueType::kF32, value.size());
  for (const float number : value) Append(state_->metadata, number);
}

namespace {

/// The bytes of a tensor's data; the same rules as those of reading.
Result<std::uint64_t> SizeOf(const Writer::Tensor& tensor, const std::string& where) {
  const formats::Format* format = formats::FindType(tensor.type);
  if (format == nullptr) {
    return Fail(Code::kGgufTensorType, where, fmt::format("tensor type {}", tensor.type), "a type of the registry");
  }
  if (tensor.name.empty() || tensor.name.size() > kMaxTensorNameBytes) {
    return Fail(Code::kGgufStringLimit, where, fmt::format("a name of {} bytes", tensor.name.size()),
                fmt::format("1 to {}", kMaxTensorNameBytes));
  }
  if (tensor.shape.empty() || tensor.shape.size() > 4) {
    return Fail(Code::kGgufDimensions, where, fmt::format("{} dimensions", tensor.shape.size()), "1 to 4");
  }
  std::uint64_t elements = 1;
  for (const std::uint64_t dimension : tensor.shape) {
    const auto product = CheckedMul(elements, dimension);
    if (dimension == 0) return Fail(Code::kGgufEmptyTensor, where, "a dimension of 0", "1 or more");
    if (!product) return Fail(Code::kGgufElementOverflow, where, "too many elements", "a count that fits 64 bits");
    elements = *product;
  }
  if (tensor.shape[0] % format->elements != 0) {
    return Fail(Code::kGgufBlockMultiple, where, fmt::format("rows of {} elements", tensor.shape[0]),
                fmt::format("a multiple of {}", format->elements));
  }
  const auto bytes = CheckedMul<std::uint64_t>(elements / format->elements, format->bytes);
  if (!bytes || *bytes >> 62 != 0) {
    return Fail(Code::kGgufByteOverflow, where, "too many bytes", "a size that a file can have");
  }
  return *bytes;
}

}  // namespace

Result<std::uint64_t> Writer::Begin(std::span<const Tensor> tensors) {
  State& state = *state_;
  if (state.begun) return state.OrderError("Begin twice", "Begin once");
  std::string infos;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  std::vector<std::uint64_t> sizes;
  for (const Tensor& tensor : tensors) {
    const std::string where = fmt::format("{}: tensor '{}'", state.file.path(), base::Printable(tensor.name));
    BOLTBEAM_ASSIGN(const std::uint64_t bytes, SizeOf(tensor, where));
    AppendText(infos, tensor.name);
    Append(infos, static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::uint64_t dimension : tensor.shape) Append(infos, dimension);
    Append(infos, tensor.type);
    Append(infos, offset);
    const auto end = CheckedAdd(offset, AlignUp(bytes, state.alignment));
    if (!end || *end >> 62 != 0) {
      return Fail(Code::kGgufSizeOverflow, where, "too many bytes together", "a size that a file can have");
    }
    offset = *end;
    total += bytes;
    sizes.push_back(bytes);
  }
  std::string head = "GGUF";
  Append<std::uint32_t>(head, 3);
  Append<std::uint64_t>(head, tensors.size());
  Append(head, state.keys);
  head += state.metadata;
  head += infos;
  head.resize(AlignUp<std::uint64_t>(head.size(), state.alignment), '\0');
  BOLTBEAM_TRY(state.Put(std::as_bytes(std::span(head))));
  state.sizes = std::move(sizes);
  state.begun = true;
  return total;
}

Result<void> Writer::Write(std::span<const std::byte> bytes) {
  State& state = *state_;
  if (!state.begun) return state.OrderError("data before Begin", "Begin first");
  while (!bytes.empty()) {
    if (state.current == state.sizes.size()) {
      return state.OrderError(fmt::format("{} bytes after the last tensor", bytes.size()),
                              "as many as the tensors have");
    }
    const std::uint64_t count = std::min<std::uint64_t>(bytes.size(), state.sizes[state.current] - state.written);
    BOLTBEAM_TRY(state.Put(bytes.first(count)));
    state.written += count;
    bytes = bytes.subspan(count);
    if (state.written == state.sizes[state.current]) BOLTBEAM_TRY(state.EndTensor());
  }
  return {};
}

Result<void> Writer::SkipTensor() {
  State& state = *state_;
  if (!state.begun || state.current == state.sizes.size()) {
    return state.OrderError("no tensor to skip", "a tensor of Begin that is not written");
  }
  BOLTBEAM_TRY(state.Flush());
  const std::uint64_t rest = state.sizes[state.current] - state.written;
  const std::uint64_t padding = AlignUp(state.sizes[state.current], state.alignment) - state.sizes[state.current];
  if (::lseek(state.file.fd(), static_cast<off_t>(rest + padding), SEEK_CUR) < 0) return state.file.WriteError(errno);
  state.NextTensor();
  return {};
}

Result<void> Writer::Finish() {
  State& state = *state_;
  if (!state.begun) return state.OrderError("Finish before Begin", "Begin first");
  if (state.current != state.sizes.size()) {
    return state.OrderError(fmt::format("{} of {} tensors written", state.current, state.sizes.size()), "all of them");
  }
  BOLTBEAM_TRY(state.Flush());
  // A hole at the end is not yet part of the file.
  const off_t end = ::lseek(state.file.fd(), 0, SEEK_CUR);
  if (end < 0 || ::ftruncate(state.file.fd(), end) != 0) return state.file.WriteError(errno);
  return state.file.Commit();
}

}  // namespace boltbeam::gguf
