// Members of JSON that somebody else wrote: of the type asked for, or not there.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace boltbeam::base {

/// A member of an object that has the type asked for; nullopt otherwise, also for a value that is no object.
std::optional<double> NumberAt(const nlohmann::json& object, std::string_view key);
std::optional<std::string> TextAt(const nlohmann::json& object, std::string_view key);
std::string TextOf(const nlohmann::json& object, std::string_view key);              // empty when it is none
const nlohmann::json* ObjectAt(const nlohmann::json& object, std::string_view key);  // object or array, else null

}  // namespace boltbeam::base
