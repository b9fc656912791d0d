#include "base/error.h"

#include <array>

#include "base/printable.h"

namespace boltbeam {
namespace {

struct CodeRow {
  std::string_view name;
  Group group;
  std::string_view meaning;
};

constexpr std::array kCodes = {
#define BOLTBEAM_CODE(name, group, meaning) CodeRow{std::string_view(#name).substr(1), Group::group, meaning},
#include "base/error_codes.inc"
#undef BOLTBEAM_CODE
};
static_assert(kCodes.size() == static_cast<std::size_t>(Code::kCount));

const CodeRow& Row(Code code) { return kCodes[static_cast<std::size_t>(code)]; }

}  // namespace

std::string_view CodeName(Code code) { return Row(code).name; }
std::string_view CodeMeaning(Code code) { return Row(code).meaning; }
Group CodeGroup(Code code) { return Row(code).group; }

std::string Error::Message() const {
  // Parts of it may come from a stranger's file: one line, no terminal escapes, no flood.
  constexpr std::size_t kMost = 1000;
  const auto shown = [](const std::string& part) { return base::Printable(part, kMost); };
  std::string text = where.empty() ? shown(found) : shown(where) + ": " + shown(found);
  if (!expected.empty()) text += "; expected " + shown(expected);
  return text;
}

}  // namespace boltbeam
