// Typed reads of single keys. Arrays are read from the file here, when somebody asks.
#include <fmt/format.h>

#include <limits>
#include <new>

#include "base/printable.h"
#include "gguf/contents.h"
#include "gguf/file_state.h"

namespace boltbeam::gguf {
namespace {

constexpr std::string_view kTypeNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                           "bool", "string", "array", "u64", "i64", "f64"};

std::string WhereOf(const File& file, const KeyValue& pair) {
  return fmt::format("{}: kv {} '{}' @ byte {}", file.path(), &pair - file.metadata().data(), base::Printable(pair.key),
                     pair.file_offset);
}

std::string FoundType(const KeyValue& pair) {
  if (const auto* array = std::get_if<ArrayRef>(&pair.value)) {
    return fmt::format("an array of {} {}", array->count, TypeName(array->element));
  }
  return fmt::format("a value of type {}", TypeName(pair.type));
}

std::unexpected<Error> WrongType(const File& file, const KeyValue& pair, std::string_view expected) {
  return Fail(Code::kGgufWrongType, WhereOf(file, pair), FoundType(pair), std::string(expected));
}

Result<const KeyValue*> Need(const File& file, std::string_view key, std::string_view expected) {
  const KeyValue* pair = file.Find(key);
  if (pair != nullptr) return pair;
  return Fail(Code::kGgufMissingKey, fmt::format("{}: metadata", file.path()),
              fmt::format("no key '{}'", base::Printable(key)), std::string(expected));
}

template <typename T>
Result<T> Get(const File& file, std::string_view key, std::string_view expected) {
  BOLTBEAM_ASSIGN(const KeyValue* pair, Need(file, key, expected));
  if (const T* value = std::get_if<T>(&pair->value)) return *value;
  return WrongType(file, *pair, expected);
}

struct NamedArray {
  const KeyValue* pair;
  ArrayRef array;
};

Result<NamedArray> NeedArray(const File& file, std::string_view key, std::string_view expected) {
  BOLTBEAM_ASSIGN(const KeyValue* pair, Need(file, key, expected));
  const auto* array = std::get_if<ArrayRef>(&pair->value);
  if (array == nullptr) return WrongType(file, *pair, expected);
  return NamedArray{pair, *array};
}

template <typename Stored, typename Kept>
Result<std::vector<Kept>> TakeNumbers(Cursor& cursor, std::uint64_t count) {
  std::vector<Kept> numbers;
  numbers.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    BOLTBEAM_ASSIGN(const Stored number, cursor.Take<Stored>());
    if constexpr (std::is_same_v<Stored, std::uint64_t>) {
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return Fail(Code::kGgufValueRange, cursor.Where(), fmt::format("element {} is {}", i, number), "below 2^63");
      }
    }
    numbers.push_back(static_cast<Kept>(number));
  }
  return numbers;
}

Result<std::vector<std::int64_t>> TakeIntegers(Cursor& cursor, const ArrayRef& array, bool& fits) {
  switch (array.element) {
    case ValueType::kU8:
    case ValueType::kBool:
      return TakeNumbers<std::uint8_t, std::int64_t>(cursor, array.count);
    case ValueType::kI8:
      return TakeNumbers<std::int8_t, std::int64_t>(cursor, array.count);
    case ValueType::kU16:
      return TakeNumbers<std::uint16_t, std::int64_t>(cursor, array.count);
    case ValueType::kI16:
      return TakeNumbers<std::int16_t, std::int64_t>(cursor, array.count);
    case ValueType::kU32:
      return TakeNumbers<std::uint32_t, std::int64_t>(cursor, array.count);
    case ValueType::kI32:
      return TakeNumbers<std::int32_t, std::int64_t>(cursor, array.count);
    case ValueType::kU64:
      return TakeNumbers<std::uint64_t, std::int64_t>(cursor, array.count);
    case ValueType::kI64:
      return TakeNumbers<std::int64_t, std::int64_t>(cursor, array.count);
    default:
      fits = false;
      return std::vector<std::int64_t>{};
  }
}

Result<std::vector<std::string>> TakeStrings(Cursor& cursor, std::uint64_t count) {
  std::vector<std::string> strings;
  strings.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    BOLTBEAM_ASSIGN(const std::uint64_t length, cursor.Take<std::uint64_t>());
    if (length > cursor.remaining()) {
      return Fail(Code::kFileRead, cursor.Where(), fmt::format("string {} has another length than before", i),
                  "a file that does not change while it is read");
    }
    std::string text(length, '\0');
    BOLTBEAM_TRY(cursor.TakeBytes(std::as_writable_bytes(std::span(text))));
    strings.push_back(std::move(text));
  }
  return strings;
}

}  // namespace

std::string_view TypeName(ValueType type) { return kTypeNames[static_cast<std::uint32_t>(type)]; }

/// Runs reader over the bytes of an array and then makes sure that the file is still the one that was opened.
template <typename T, typename Reader>
Result<std::vector<T>> File::ReadArray(const KeyValue& pair, const ArrayRef& array, Reader reader) const {
  try {
    const Part& part = state_->first();
    Cursor cursor(part.fd, part.path, part.bytes(), array.file_offset, array.file_offset + array.file_bytes);
    cursor.BeginPlace("kv", static_cast<std::uint64_t>(&pair - metadata().data()));
    cursor.NamePlace(pair.key);
    Result<std::vector<T>> values = reader(cursor);
    BOLTBEAM_TRY(part.CheckUnchanged());
    return values;
  } catch (const std::bad_alloc&) {
    return Fail(Code::kOutOfMemory, WhereOf(*this, pair), fmt::format("{} elements to read", array.count),
                "more free memory");
  }
}

Result<std::uint64_t> File::GetUnsigned(std::string_view key) const {
  constexpr std::string_view kExpected = "a whole number, 0 or more";
  BOLTBEAM_ASSIGN(const KeyValue* pair, Need(*this, key, kExpected));
  if (const auto* value = std::get_if<std::uint64_t>(&pair->value)) return *value;
  const auto* number = std::get_if<std::int64_t>(&pair->value);
  if (number == nullptr) return WrongType(*this, *pair, kExpected);
  if (*number >= 0) return static_cast<std::uint64_t>(*number);
  return Fail(Code::kGgufValueRange, WhereOf(*this, *pair), fmt::format("{}", *number), std::string(kExpected));
}

Result<double> File::GetFloat(std::string_view key) const { return Get<double>(*this, key, "f32 or f64"); }

Result<bool> File::GetBool(std::string_view key) const { return Get<bool>(*this, key, "bool"); }

Result<std::string> File::GetString(std::string_view key) const { return Get<std::string>(*this, key, "string"); }

Result<std::vector<std::string>> File::GetStrings(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of strings";
  BOLTBEAM_ASSIGN(const NamedArray named, NeedArray(*this, key, kExpected));
  if (named.array.element != ValueType::kString) return WrongType(*this, *named.pair, kExpected);
  return ReadArray<std::string>(*named.pair, named.array,
                                [&](Cursor& cursor) { return TakeStrings(cursor, named.array.count); });
}

Result<std::vector<std::int64_t>> File::GetIntegers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of whole numbers";
  BOLTBEAM_ASSIGN(const NamedArray named, NeedArray(*this, key, kExpected));
  bool fits = true;
  auto numbers = ReadArray<std::int64_t>(*named.pair, named.array,
                                         [&](Cursor& cursor) { return TakeIntegers(cursor, named.array, fits); });
  if (!fits) return WrongType(*this, *named.pair, kExpected);
  return numbers;
}

Result<std::vector<float>> File::GetFloats(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of f32 or f64";
  BOLTBEAM_ASSIGN(const NamedArray named, NeedArray(*this, key, kExpected));
  const ValueType element = named.array.element;
  if (element != ValueType::kF32 && element != ValueType::kF64) return WrongType(*this, *named.pair, kExpected);
  return ReadArray<float>(*named.pair, named.array, [&](Cursor& cursor) {
    return element == ValueType::kF32 ? TakeNumbers<float, float>(cursor, named.array.count)
                                      : TakeNumbers<double, float>(cursor, named.array.count);
  });
}

}  // namespace boltbeam::gguf
