// Reading the rows of the format registries: every mistake is an error that names the row.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/format.h"

namespace boltbeam::formats {

using Json = nlohmann::json;

/// A row with a field that nothing reads is a typing mistake that would pass in silence.
Result<void> CheckKeys(const Json& object, const std::string& where, std::initializer_list<std::string_view> allowed);
Result<std::int64_t> GetNumber(const Json& object, const std::string& where, const char* key, std::int64_t lowest,
                               std::int64_t highest);
Result<std::uint32_t> GetU32(const Json& object, const std::string& where, const char* key, std::uint32_t lowest,
                             std::uint32_t highest);
Result<std::string> GetText(const Json& object, const std::string& where, const char* key);
Result<const Json*> GetArray(const Json& object, const std::string& where, const char* key);
Result<Encoding> ParseEncoding(const Json& object, const std::string& where);
Result<Field> ParseField(const Json& json, const std::string& where);
/// A power of two of usual size; 1 when absent.
Result<float> GetFactor(const Json& object, const std::string& where);

}  // namespace boltbeam::formats
