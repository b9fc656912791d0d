// The forms in which a command can write its result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace boltbeam::report {

enum class Form { kText, kJson, kCsv, kMarkdown };

/// "text", "json", "csv", "md": what -o takes. Anything else is text; the command line checks it before.
constexpr Form FormOf(std::string_view name) {
  if (name == "json") return Form::kJson;
  if (name == "csv") return Form::kCsv;
  return name == "md" ? Form::kMarkdown : Form::kText;
}

inline std::vector<std::string> FormNames() { return {"text", "json", "csv", "md"}; }

}  // namespace boltbeam::report
