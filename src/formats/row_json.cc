#include "formats/row_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace boltbeam::formats {

Result<void> CheckKeys(const Json& object, const std::string& where, std::initializer_list<std::string_view> allowed) {
  if (!object.is_object()) return Fail(Code::kFormatRow, where, "not an object", "an object");
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(allowed, key) == allowed.end()) {
      return Fail(Code::kFormatRow, where, fmt::format("unknown field '{}'", key), "only the documented fields");
    }
  }
  return {};
}

Result<std::int64_t> GetNumber(const Json& object, const std::string& where, const char* key, std::int64_t lowest,
                               std::int64_t highest) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) {
    return Fail(Code::kFormatRow, where, fmt::format("'{}' is absent or not a whole number", key), "a whole number");
  }
  const auto value = found->get<std::int64_t>();
  if (value < lowest || value > highest) {
    return Fail(Code::kFormatRow, where, fmt::format("'{}' is {}", key, value),
                fmt::format("{} to {}", lowest, highest));
  }
  return value;
}

Result<std::uint32_t> GetU32(const Json& object, const std::string& where, const char* key, std::uint32_t lowest,
                             std::uint32_t highest) {
  BOLTBEAM_ASSIGN(const std::int64_t value, GetNumber(object, where, key, lowest, highest));
  return static_cast<std::uint32_t>(value);
}

Result<std::string> GetText(const Json& object, const std::string& where, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string() || found->get_ref<const std::string&>().empty()) {
    return Fail(Code::kFormatRow, where, fmt::format("'{}' is absent or not text", key), "text");
  }
  return found->get<std::string>();
}

Result<const Json*> GetArray(const Json& object, const std::string& where, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) {
    return Fail(Code::kFormatRow, where, fmt::format("'{}' is absent or not a list", key), "a list");
  }
  return &*found;
}

Result<Encoding> ParseEncoding(const Json& object, const std::string& where) {
  BOLTBEAM_ASSIGN(const std::string name, GetText(object, where, "encoding"));
  if (name == "f32") return Encoding::kF32;
  if (name == "f16") return Encoding::kF16;
  if (name == "bf16") return Encoding::kBf16;
  if (name == "e8m0_half") return Encoding::kE8m0Half;
  if (name == "ue4m3_half") return Encoding::kUe4m3Half;
  if (name == "one") return Encoding::kOne;
  return Fail(Code::kFormatRow, where, fmt::format("encoding '{}'", name),
              "f32, f16, bf16, e8m0_half, ue4m3_half or one");
}

namespace {

Result<Piece> ParsePiece(const Json& json, const std::string& where) {
  BOLTBEAM_TRY(CheckKeys(json, where, {"width", "shift", "base_bit", "digits"}));
  Piece piece;
  BOLTBEAM_ASSIGN(piece.width, GetU32(json, where, "width", 1, 8));
  BOLTBEAM_ASSIGN(piece.shift, GetU32(json, where, "shift", 0, 15));
  BOLTBEAM_ASSIGN(piece.base_bit, GetU32(json, where, "base_bit", 0, 1U << 20));
  BOLTBEAM_ASSIGN(const Json* digits, GetArray(json, where, "digits"));
  for (const Json& digit : *digits) {
    if (!digit.is_array() || digit.size() != 2 || !digit[0].is_number_unsigned() || !digit[1].is_number_unsigned() ||
        digit[0] < 1 || digit[0] > 65536 || digit[1] > 65536) {
      return Fail(Code::kFormatRow, where, "a digit that is not [radix, stride]", "two numbers, each up to 65536");
    }
    piece.digits.emplace_back(digit[0].get<std::uint32_t>(), digit[1].get<std::uint32_t>());
  }
  return piece;
}

}  // namespace

Result<Field> ParseField(const Json& json, const std::string& where) {
  BOLTBEAM_TRY(CheckKeys(json, where, {"bits", "signed", "bias", "pieces", "encoding"}));
  Field field;
  BOLTBEAM_ASSIGN(field.bits, GetU32(json, where, "bits", 1, 16));
  const auto is_signed = json.find("signed");
  if (is_signed == json.end() || !is_signed->is_boolean()) {
    return Fail(Code::kFormatRow, where, "'signed' is absent or not a truth value", "true or false");
  }
  field.is_signed = is_signed->get<bool>();
  BOLTBEAM_ASSIGN(const std::int64_t bias, GetNumber(json, where, "bias", -65536, 65536));
  field.bias = static_cast<std::int32_t>(bias);
  if (json.contains("encoding")) {
    BOLTBEAM_ASSIGN(field.encoding, ParseEncoding(json, where));
  }
  BOLTBEAM_ASSIGN(const Json* pieces, GetArray(json, where, "pieces"));
  for (const Json& piece : *pieces) {
    BOLTBEAM_ASSIGN(Piece parsed, ParsePiece(piece, where));
    field.pieces.push_back(std::move(parsed));
  }
  return field;
}

Result<float> GetFactor(const Json& object, const std::string& where) {
  if (!object.contains("factor")) return 1.0F;
  const Json& factor = object["factor"];
  int exponent = 0;
  if (!factor.is_number() || std::frexp(factor.get<double>(), &exponent) != 0.5 || std::abs(exponent) > 16) {
    return Fail(Code::kFormatRow, where, "a 'factor' that is no power of two", "2^-16 to 2^15");
  }
  return factor.get<float>();
}

}  // namespace boltbeam::formats
