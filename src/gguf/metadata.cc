// Key-values: every value is read and checked; arrays are walked but stay in the file.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/printable.h"
#include "gguf/contents.h"

namespace boltbeam::gguf {
namespace {

constexpr std::size_t kMaxWarnings = 20;
constexpr auto kLastType = static_cast<std::uint32_t>(ValueType::kF64);

bool HasControlBytes(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

/// [a-z0-9_]+(\.[a-z0-9_-]+)*, the specification's form of a key.
bool HasKeyForm(std::string_view key) {
  bool first_part = true;
  std::size_t length = 0;
  for (const char c : key) {
    if (c == '.') {
      if (length == 0) return false;
      first_part = false;
      length = 0;
      continue;
    }
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (c == '-' && !first_part);
    if (!plain) return false;
    ++length;
  }
  return length > 0;
}

Result<std::string> TakeKey(Parse& parse) {
  const std::uint64_t at = parse.cursor.position();
  BOLTBEAM_ASSIGN(std::string key, parse.TakeText(kMaxKeyBytes, "key"));
  parse.cursor.NamePlace(key);
  if (key.empty()) return Fail(Code::kGgufEmptyKey, parse.cursor.Where(at), "an empty key", "a name");
  if (HasControlBytes(key)) {
    return Fail(Code::kGgufKeyText, parse.cursor.Where(at), "control characters in a key", "printable text");
  }
  if (!HasKeyForm(key)) {
    BOLTBEAM_TRY(parse.Warn(Code::kGgufKeyText, parse.cursor.Where(at), "a key of another form",
                            "lower_snake_case parts with dots between"));
  }
  return key;
}

Result<bool> CheckBool(Parse& parse, std::uint64_t at, std::uint8_t byte) {
  if (byte > 1) {
    return Fail(Code::kGgufBool, parse.cursor.Where(at), fmt::format("a bool of {}", byte), "0 or 1");
  }
  return byte == 1;
}

Result<void> WalkStrings(Parse& parse, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    BOLTBEAM_ASSIGN(const std::uint64_t length, parse.TakeTextLength(kMaxTextBytes, "array string"));
    BOLTBEAM_TRY(parse.cursor.Skip(length));
  }
  return {};
}

Result<void> WalkBools(Parse& parse, std::uint64_t count) {
  while (count > 0) {
    const std::uint64_t at = parse.cursor.position();
    BOLTBEAM_ASSIGN(const std::span<const std::byte> bytes, parse.cursor.TakeSome(count));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      BOLTBEAM_TRY(CheckBool(parse, at + i, std::to_integer<std::uint8_t>(bytes[i])));
    }
    count -= bytes.size();
  }
  return {};
}

Result<ArrayRef> TakeArray(Parse& parse) {
  const std::uint64_t at = parse.cursor.position();
  BOLTBEAM_ASSIGN(const std::uint32_t type, parse.cursor.Take<std::uint32_t>());
  if (type > kLastType) {
    return Fail(Code::kGgufArrayType, parse.cursor.Where(at), fmt::format("array elements of type {}", type),
                fmt::format("a type from 0 to {}", kLastType));
  }
  ArrayRef array{static_cast<ValueType>(type), 0, 0, 0};
  if (array.element == ValueType::kArray) {
    return Fail(Code::kGgufNestedArray, parse.cursor.Where(at), "an array of arrays", "an array of numbers or strings");
  }
  const std::uint64_t count_at = parse.cursor.position();
  BOLTBEAM_ASSIGN(array.count, parse.cursor.Take<std::uint64_t>());
  // A string takes at least its length of 8 bytes.
  const std::uint64_t size = array.element == ValueType::kString ? 8 : ElementBytes(array.element);
  const auto bytes = CheckedMul<std::uint64_t>(array.count, size);
  if (!bytes) {
    return Fail(Code::kGgufArrayOverflow, parse.cursor.Where(count_at), fmt::format("{} elements", array.count),
                fmt::format("a count that fits 64 bits when taken {} times", size));
  }
  if (*bytes > parse.cursor.remaining()) {
    return Fail(Code::kGgufArrayLength, parse.cursor.Where(count_at),
                fmt::format("{} elements of at least {} bytes", array.count, size),
                fmt::format("no more than the {} bytes that remain in the file", parse.cursor.remaining()));
  }
  array.file_offset = parse.cursor.position();
  if (array.element == ValueType::kString) {
    BOLTBEAM_TRY(WalkStrings(parse, array.count));
  } else if (array.element == ValueType::kBool) {
    BOLTBEAM_TRY(WalkBools(parse, array.count));
  } else {
    BOLTBEAM_TRY(parse.cursor.Skip(*bytes));
  }
  array.file_bytes = parse.cursor.position() - array.file_offset;
  return array;
}

template <typename Stored, typename Kept>
Result<Value> TakeNumber(Parse& parse) {
  BOLTBEAM_ASSIGN(const Stored number, parse.cursor.Take<Stored>());
  return Value(static_cast<Kept>(number));
}

Result<Value> TakeString(Parse& parse) {
  const std::uint64_t at = parse.cursor.position();
  BOLTBEAM_ASSIGN(std::string text, parse.TakeText(kMaxTextBytes, "string"));
  if (!base::IsUtf8(text)) {
    BOLTBEAM_TRY(parse.Warn(Code::kGgufUtf8, parse.cursor.Where(at), "text that is not UTF-8", "UTF-8"));
  }
  return Value(std::move(text));
}

Result<Value> TakeValue(Parse& parse, ValueType type) {
  switch (type) {
    case ValueType::kU8:
      return TakeNumber<std::uint8_t, std::uint64_t>(parse);
    case ValueType::kI8:
      return TakeNumber<std::int8_t, std::int64_t>(parse);
    case ValueType::kU16:
      return TakeNumber<std::uint16_t, std::uint64_t>(parse);
    case ValueType::kI16:
      return TakeNumber<std::int16_t, std::int64_t>(parse);
    case ValueType::kU32:
      return TakeNumber<std::uint32_t, std::uint64_t>(parse);
    case ValueType::kI32:
      return TakeNumber<std::int32_t, std::int64_t>(parse);
    case ValueType::kU64:
      return TakeNumber<std::uint64_t, std::uint64_t>(parse);
    case ValueType::kI64:
      return TakeNumber<std::int64_t, std::int64_t>(parse);
    case ValueType::kF32:
      return TakeNumber<float, double>(parse);
    case ValueType::kF64:
      return TakeNumber<double, double>(parse);
    case ValueType::kString:
      return TakeString(parse);
    case ValueType::kArray:
      return TakeArray(parse);
    case ValueType::kBool:
      break;
  }
  const std::uint64_t at = parse.cursor.position();
  BOLTBEAM_ASSIGN(const std::uint8_t byte, parse.cursor.Take<std::uint8_t>());
  return CheckBool(parse, at, byte);
}

Result<KeyValue> TakeKeyValue(Parse& parse, std::uint64_t index) {
  parse.cursor.BeginPlace("kv", index);
  KeyValue pair;
  pair.file_offset = parse.cursor.position();
  BOLTBEAM_ASSIGN(pair.key, TakeKey(parse));
  const std::uint64_t at = parse.cursor.position();
  BOLTBEAM_ASSIGN(const std::uint32_t type, parse.cursor.Take<std::uint32_t>());
  if (type > kLastType) {
    return Fail(Code::kGgufValueType, parse.cursor.Where(at), fmt::format("a value of type {}", type),
                fmt::format("a type from 0 to {}", kLastType));
  }
  pair.type = static_cast<ValueType>(type);
  BOLTBEAM_ASSIGN(pair.value, TakeValue(parse, pair.type));
  return pair;
}

Result<void> IndexKeys(Parse& parse) {
  const auto& metadata = parse.contents.metadata;
  auto& order = parse.contents.metadata_by_name;
  order.resize(metadata.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return metadata[a].key != metadata[b].key ? metadata[a].key < metadata[b].key : a < b;
  });
  const auto same = std::ranges::adjacent_find(
      order, [&](std::uint32_t a, std::uint32_t b) { return metadata[a].key == metadata[b].key; });
  if (same == order.end()) return {};
  const std::uint32_t second = *std::next(same);
  parse.cursor.BeginPlace("kv", second);
  parse.cursor.NamePlace(metadata[second].key);
  return Fail(Code::kGgufDuplicateKey, parse.cursor.Where(metadata[second].file_offset),
              fmt::format("the key of kv {} again", *same), "each key once");
}

}  // namespace

Result<void> Parse::Warn(Code code, std::string where, std::string found, std::string expected) {
  if (options.strict) return Fail(code, std::move(where), std::move(found), std::move(expected));
  if (contents.warnings.size() < kMaxWarnings) {
    contents.warnings.push_back(Error{code, std::move(where), std::move(found), std::move(expected)}.Message());
  } else if (contents.warnings.size() == kMaxWarnings) {
    contents.warnings.emplace_back("more warnings are not listed");
  }
  return {};
}

Result<std::uint64_t> Parse::TakeTextLength(std::uint64_t limit, std::string_view what) {
  const std::uint64_t at = cursor.position();
  BOLTBEAM_ASSIGN(const std::uint64_t length, cursor.Take<std::uint64_t>());
  if (length > cursor.remaining()) {
    return Fail(Code::kGgufStringLength, cursor.Where(at), fmt::format("a {} of {} bytes", what, length),
                fmt::format("no more than the {} bytes that remain in the file", cursor.remaining()));
  }
  if (length > limit) {
    return Fail(Code::kGgufStringLimit, cursor.Where(at), fmt::format("a {} of {} bytes", what, length),
                fmt::format("at most {}", limit));
  }
  return length;
}

Result<std::string> Parse::TakeText(std::uint64_t limit, std::string_view what) {
  const std::uint64_t at = cursor.position();
  BOLTBEAM_ASSIGN(const std::uint64_t length, TakeTextLength(limit, what));
  if (length > options.metadata_limit_bytes - contents.kept_bytes) {
    return Fail(Code::kGgufMetadataLimit, cursor.Where(at),
                fmt::format("{} bytes of text after {} kept already", length, contents.kept_bytes),
                fmt::format("at most {} together", options.metadata_limit_bytes));
  }
  contents.kept_bytes += length;
  std::string text(length, '\0');
  BOLTBEAM_TRY(cursor.TakeBytes(std::as_writable_bytes(std::span(text))));
  return text;
}

std::uint64_t ElementBytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  return 0;
}

Result<void> ParseMetadata(Parse& parse, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    BOLTBEAM_ASSIGN(KeyValue pair, TakeKeyValue(parse, i));
    parse.contents.metadata.push_back(std::move(pair));
  }
  return IndexKeys(parse);
}

}  // namespace boltbeam::gguf
