#include "base/json_members.h"

namespace boltbeam::base {
namespace {

const nlohmann::json* MemberAt(const nlohmann::json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found != object.end() ? &*found : nullptr;
}

}  // namespace

std::optional<double> NumberAt(const nlohmann::json& object, std::string_view key) {
  const nlohmann::json* member = MemberAt(object, key);
  return member != nullptr && member->is_number() ? std::optional(member->get<double>()) : std::nullopt;
}

std::optional<std::string> TextAt(const nlohmann::json& object, std::string_view key) {
  const nlohmann::json* member = MemberAt(object, key);
  return member != nullptr && member->is_string() ? std::optional(member->get<std::string>()) : std::nullopt;
}

std::string TextOf(const nlohmann::json& object, std::string_view key) { return TextAt(object, key).value_or(""); }

const nlohmann::json* ObjectAt(const nlohmann::json& object, std::string_view key) {
  const nlohmann::json* member = MemberAt(object, key);
  return member != nullptr && member->is_structured() ? member : nullptr;
}

}  // namespace boltbeam::base
