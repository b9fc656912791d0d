// A GGUF file, versions 2 and 3, opened and validated: the container only, nothing of language models. The parts of a
// model that is split over several files read as one file, given any one of them.
//
// Metadata is read with pread, never through a mapping, so that a file that is cut or changed while it is open ends in
// an error and not in SIGBUS. Large arrays are walked and checked when the file is opened but kept as a place in the
// file; they are read when somebody asks. Source: ggml/docs/gguf.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"

namespace boltbeam::gguf {

enum class ValueType : std::uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// An array that stays in the file.
struct ArrayRef {
  ValueType element = ValueType::kU8;
  std::uint64_t count = 0;
  std::uint64_t file_offset = 0;  // of the first element
  std::uint64_t file_bytes = 0;
};

using Value = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, ArrayRef>;

struct KeyValue {
  std::string key;
  ValueType type = ValueType::kU8;
  Value value;
  std::uint64_t file_offset = 0;
};

struct TensorInfo {
  std::string name;
  std::uint32_t type = 0;                          // ggml's type number; formats::FindType gives its row
  std::uint32_t dimensions = 0;                    // 1 to 4
  std::array<std::uint64_t, 4> shape{1, 1, 1, 1};  // ne: shape[0] is the contracted dimension
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;
  std::uint64_t file_offset = 0;  // for File::Read: absolute in the file, or behind the bytes of the parts before
};

/// "u32", "array" ...
std::string_view TypeName(ValueType type);

struct OpenOptions {
  bool strict = false;       // warnings become errors, and padding is read and must be zero
  bool allow_sparse = true;  // a file with holes holds shapes, not weights: false refuses it
  bool header_only = false;  // for shapes alone: the file may end before its data do
  bool one_part = false;     // of a split model this file alone, whatever else is there
  std::uint64_t metadata_limit_bytes = std::uint64_t{512} << 20;  // of names and texts kept in memory
};

class File {
 public:
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  static Result<File> Open(const std::string& path, const OpenOptions& options = {});

  const std::string& path() const;  // of the first part
  std::uint32_t version() const;
  std::uint64_t file_bytes() const;  // of all parts
  std::size_t parts() const;
  std::uint64_t data_offset() const;
  bool sparse() const;  // data holes cover most of the file (st_blocks)
  std::span<const KeyValue> metadata() const;
  std::span<const TensorInfo> tensors() const;
  std::span<const std::string> warnings() const;

  const KeyValue* Find(std::string_view key) const;  // nullptr when absent
  const TensorInfo* FindTensor(std::string_view tensor) const;

  /// Typed reads of one key; the error names the key, what it holds and what was expected.
  Result<std::uint64_t> GetUnsigned(std::string_view key) const;
  Result<double> GetFloat(std::string_view key) const;
  Result<bool> GetBool(std::string_view key) const;
  Result<std::string> GetString(std::string_view key) const;
  Result<std::vector<std::string>> GetStrings(std::string_view key) const;
  Result<std::vector<std::int64_t>> GetIntegers(std::string_view key) const;  // any integer or bool array
  Result<std::vector<float>> GetFloats(std::string_view key) const;

  /// Reads out.size() bytes of the file at an absolute offset; kFileRead when the file is shorter or has changed
  /// (size, mtime) since it was opened. Safe to call from several threads.
  Result<void> Read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  struct State;
  explicit File(std::unique_ptr<State> state);
  static Result<File> OpenOrThrow(const std::string& path, const OpenOptions& options);
  /// One file, as if it were whole.
  static Result<File> OpenPart(const std::string& path, const OpenOptions& options);
  /// The whole model, given one of its parts.
  static Result<File> OpenParts(File given, const OpenOptions& options);
  struct PartKeys;
  Result<PartKeys> ReadPartKeys() const;
  static Result<void> CheckPart(const File& first, const PartKeys& expected, const File& part, std::uint32_t number);
  void Append(File part);
  Result<void> IndexTensors();
  template <typename T, typename Reader>
  Result<std::vector<T>> ReadArray(const KeyValue& pair, const ArrayRef& array, Reader reader) const;
  std::unique_ptr<State> state_;
};

}  // namespace boltbeam::gguf
