// The first 24 bytes: magic, version, counts; and the names of what is not GGUF.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/printable.h"
#include "gguf/contents.h"

namespace boltbeam::gguf {
namespace {

constexpr std::uint64_t kHeaderBytes = 24;
constexpr std::uint64_t kSmallestKeyValue = 14;    // 8 length, 1 of key, 4 type, 1 of value
constexpr std::uint64_t kSmallestTensorInfo = 33;  // 8 length, 1 of name, 4 count, 8 dimension, 4 type, 8 offset

struct Signature {
  std::string_view bytes;
  std::string_view name;
};

// The old ggml formats wrote their names as little-endian numbers.
constexpr Signature kSignatures[] = {
    {"lmgg", "a GGML file of 2023"},
    {"GGML", "a GGML file of 2023"},
    {"fmgg", "a GGMF file of 2023"},
    {"tjgg", "a GGJT file of 2023"},
    {"ggjt", "a GGJT file of 2023"},
    {"algg", "a GGLA adapter file of 2023"},
    {"PK\x03\x04", "a ZIP archive, such as a PyTorch checkpoint"},
    {"\x80\x02", "a Python pickle, such as an old PyTorch checkpoint"},
    {"\x1f\x8b", "a gzip file"},
    {"\x28\xb5\x2f\xfd", "a zstd file"},
    {"\x89HDF", "an HDF5 file"},
    {"version https://git-lfs", "a Git LFS pointer: the file itself was not downloaded (git lfs pull)"},
};

bool StartsWithIgnoringCase(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::ranges::equal(text.substr(0, lower.size()), lower, [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         });
}

Result<std::uint64_t> TakeCount(Parse& parse, std::string_view what, std::uint64_t smallest, Code too_many) {
  const std::uint64_t at = parse.cursor.position();
  BOLTBEAM_ASSIGN(const std::uint64_t count, parse.cursor.Take<std::uint64_t>());
  if (count >> 63 != 0) {
    return Fail(Code::kGgufCountRange, parse.cursor.Where(at),
                fmt::format("a {} count of {}", what, static_cast<std::int64_t>(count)), "0 or more");
  }
  const std::uint64_t rest = parse.cursor.file_bytes() - kHeaderBytes;
  if (count > rest / smallest) {
    return Fail(too_many, parse.cursor.Where(at), fmt::format("a {} count of {}", what, count),
                fmt::format("at most {}, since each takes {} bytes and the file has {} after the header",
                            rest / smallest, smallest, rest));
  }
  if (count > kMaxCount) {
    return Fail(Code::kGgufCountLimit, parse.cursor.Where(at), fmt::format("a {} count of {}", what, count),
                fmt::format("at most {}", kMaxCount));
  }
  return count;
}

Result<void> CheckMagic(Parse& parse) {
  std::array<std::byte, 64> first{};
  const std::uint64_t count = std::min<std::uint64_t>(first.size(), parse.cursor.remaining());
  const std::uint64_t size = parse.cursor.file_bytes();
  const std::string where = parse.cursor.Where();
  const auto bytes = std::span(first).first(count);
  Cursor ahead = parse.cursor;
  BOLTBEAM_TRY(ahead.TakeBytes(bytes));
  const std::string_view text(reinterpret_cast<const char*>(first.data()), count);
  if (const std::string_view other = NameOtherFormat(bytes); !other.empty()) {
    return Fail(Code::kGgufOtherFormat, where, std::string(other), "a GGUF file");
  }
  if (text.starts_with("FUGG")) {
    return Fail(Code::kGgufBigEndian, where, "a byte-swapped magic", "a little-endian GGUF file");
  }
  const std::string_view magic = text.substr(0, 4);
  if (!std::string_view("GGUF").starts_with(magic)) {
    return Fail(Code::kGgufMagic, where, fmt::format("the bytes '{}'", base::Printable(magic)), "the bytes 'GGUF'");
  }
  if (size < kHeaderBytes) {
    return Fail(Code::kGgufTooShort, where, fmt::format("a file of {} bytes", size),
                fmt::format("at least {}, a header: the file was cut", kHeaderBytes));
  }
  return parse.cursor.Skip(4);
}

}  // namespace

std::string_view NameOtherFormat(std::span<const std::byte> first_bytes) {
  std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  for (const Signature& signature : kSignatures) {
    if (text.starts_with(signature.bytes)) return signature.name;
  }
  if (text.size() > 9 && text[8] == '{' && text.substr(4, 4) == std::string_view("\0\0\0\0", 4)) {
    return "a safetensors file: convert it to GGUF first";
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  if (StartsWithIgnoringCase(text, "<!doctype html") || StartsWithIgnoringCase(text, "<html")) {
    return "an HTML page, such as a server's error instead of the file";
  }
  if (StartsWithIgnoringCase(text, "<?xml")) return "an XML text, such as a server's error instead of the file";
  return {};
}

Result<Header> ParseHeader(Parse& parse) {
  BOLTBEAM_TRY(CheckMagic(parse));
  const std::string where = parse.cursor.Where();
  BOLTBEAM_ASSIGN(const std::uint32_t version, parse.cursor.Take<std::uint32_t>());
  if (version != 0 && (version & 0xFFFFU) == 0) {
    return Fail(Code::kGgufBigEndian, where, fmt::format("version {:#010x}", version), "a little-endian GGUF file");
  }
  if (version != 2 && version != 3) {
    return Fail(Code::kGgufVersion, where, fmt::format("version {}", version), "version 2 or 3");
  }
  parse.contents.version = version;
  Header header;
  BOLTBEAM_ASSIGN(header.tensors, TakeCount(parse, "tensor", kSmallestTensorInfo, Code::kGgufTensorCount));
  BOLTBEAM_ASSIGN(header.keys, TakeCount(parse, "key-value", kSmallestKeyValue, Code::kGgufKeyCount));
  return header;
}

}  // namespace boltbeam::gguf
