// What parsing a GGUF file gives, and the steps that give it. Only a file that passed every step becomes a File.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/cursor.h"
#include "gguf/file.h"

namespace boltbeam::gguf {

inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxCount = 1'000'000;  // key-values, and tensors
inline constexpr std::uint64_t kMaxKeyBytes = 65535;
inline constexpr std::uint64_t kMaxTensorNameBytes = 64;
inline constexpr std::uint64_t kMaxTextBytes = std::uint64_t{64} << 20;

struct Contents {
  std::uint32_t version = 0;
  std::uint64_t alignment = kDefaultAlignment;
  std::uint64_t data_offset = 0;
  std::uint64_t kept_bytes = 0;  // of names and texts
  std::vector<KeyValue> metadata;
  std::vector<TensorInfo> tensors;
  std::vector<std::uint32_t> metadata_by_name;  // positions, sorted by key
  std::vector<std::uint32_t> tensors_by_name;
  std::vector<std::string> warnings;
};

/// Everything that a step reads from and writes to.
struct Parse {
  Cursor& cursor;
  const OpenOptions& options;
  Contents& contents;
  int fd;

  /// Something that real files do although they should not: an error when strict, else kept as a warning.
  Result<void> Warn(Code code, std::string where, std::string found, std::string expected);
  /// A length and that many bytes, kept in memory.
  Result<std::string> TakeText(std::uint64_t limit, std::string_view what);
  /// A length that was compared with what remains and with its limit; the text follows.
  Result<std::uint64_t> TakeTextLength(std::uint64_t limit, std::string_view what);
};

struct Header {
  std::uint64_t keys = 0;
  std::uint64_t tensors = 0;
};

Result<Header> ParseHeader(Parse& parse);
Result<void> ParseMetadata(Parse& parse, std::uint64_t count);
Result<void> ParseTensorInfos(Parse& parse, std::uint64_t count);
/// Where the data section begins, and that every tensor lies in it alone.
Result<void> CheckDataSection(Parse& parse, const std::string& path);

/// The name of a format that is often taken for GGUF, from a file's first bytes; empty when none is known.
std::string_view NameOtherFormat(std::span<const std::byte> first_bytes);

/// The size in bytes of one number of this type; 0 for strings and arrays.
std::uint64_t ElementBytes(ValueType type);

}  // namespace boltbeam::gguf
