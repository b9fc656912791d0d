#include "judge/side.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/printable.h"

namespace boltbeam::judge {
namespace {

Result<void> AddRoutes(std::string_view flag, std::string_view text, const std::vector<std::string>& routes,
                       std::vector<std::string>& names) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('+'), text.size());
    const std::string name(text.substr(0, end));
    if (std::ranges::find(routes, name) == routes.end()) {
      return Fail(Code::kUsage, std::string(flag), fmt::format("no route \"{}\"", base::Printable(name)),
                  fmt::format("{}", fmt::join(routes, ", ")));
    }
    names.push_back(name);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

}  // namespace

std::string SideSpec::Describe() const {
  std::vector<std::string> words;
  if (!with.empty()) words.push_back(fmt::format("with={}", fmt::join(with, "+")));
  if (!without.empty()) words.push_back(fmt::format("without={}", fmt::join(without, "+")));
  if (!plan.empty()) words.push_back("plan=" + plan);
  if (!file.empty()) words.push_back("file=" + file);
  if (!binary.empty()) words.push_back("binary=" + binary);
  if (!command.empty()) words.push_back("command=" + command);
  return words.empty() ? "default" : fmt::format("{}", fmt::join(words, " "));
}

Result<SideSpec> ParseSide(std::string_view flag, const std::vector<std::string>& words,
                           const std::vector<std::string>& routes) {
  SideSpec side;
  for (const std::string& word : words) {
    if (word == "default") continue;
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    constexpr std::array kKeys = {"with", "without", "plan", "file", "binary", "command"};
    const bool known = std::ranges::find(kKeys, key) != kKeys.end();
    if (!known || value.empty()) {
      return Fail(Code::kUsage, std::string(flag), fmt::format("\"{}\"", base::Printable(word)),
                  "with=ROUTE, without=ROUTE+ROUTE, plan=FILE, file=PATH, binary=PATH, command=TEXT or default");
    }
    if (key == "with") BOLTBEAM_TRY(AddRoutes(flag, value, routes, side.with));
    if (key == "without") BOLTBEAM_TRY(AddRoutes(flag, value, routes, side.without));
    if (key == "plan") side.plan = value;
    if (key == "file") side.file = value;
    if (key == "binary") side.binary = value;
    if (key == "command") side.command = value;
  }
  const bool has_plan = !side.with.empty() || !side.without.empty() || !side.plan.empty();
  if (!side.command.empty() && (has_plan || !side.file.empty() || !side.binary.empty())) {
    return Fail(Code::kUsage, std::string(flag), "a command with other settings", "command=TEXT alone");
  }
  return side;
}

}  // namespace boltbeam::judge
