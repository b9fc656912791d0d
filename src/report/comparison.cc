#include <nlohmann/json.hpp>

#include "report/audit_format.h"

namespace boltbeam::report {

Result<OtherProgram> ReadComparison(std::string_view text, const std::string& where) {
  const auto bad = [&](const std::string& found) {
    return Fail(Code::kJson, where, found, "what compare -o json writes: regions with region, ours_ns and theirs_ns");
  };
  try {
    const nlohmann::json document = nlohmann::json::parse(text);
    OtherProgram comparison;
    comparison.other = document.value("theirs", std::string("the other program"));
    comparison.residual_ns = document.value("residual_ns", 0.0);
    comparison.sentence = document.value("sentence", std::string());
    for (const nlohmann::json& row : document.at("regions")) {
      comparison.regions.push_back(
          {row.at("region").get<std::string>(), row.at("ours_ns").get<double>(), row.at("theirs_ns").get<double>()});
    }
    const auto optional = [](const nlohmann::json& value) {
      return value.is_null() ? std::nullopt : std::optional(value.get<double>());
    };
    for (const nlohmann::json& row : document.value("terms", nlohmann::json::array())) {
      comparison.terms.push_back(
          {row.at("term").get<std::string>(), optional(row.at("ours_ns")), optional(row.at("theirs_ns"))});
    }
    if (comparison.regions.empty()) return bad("no regions");
    return comparison;
  } catch (const nlohmann::json::exception& error) {
    return bad(error.what());
  }
}

}  // namespace boltbeam::report
