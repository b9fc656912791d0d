// How everything in this library fails: a value, never a print, an abort or an exit.
//
// An Error says where, what was found and what was expected, so that a person can mend the input without reading the
// source. The code is stable: tests and scripts refer to it by name. The group of a code decides the exit status.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace boltbeam {

enum class Group : std::uint8_t {
  kInput,        // the file or the text is wrong
  kEnvironment,  // the machine, the file system or a missing program
  kUnsupported,  // valid, but this build can't do it
  kResource,     // not enough memory, disk or time
  kUsage,        // a flag or an argument is wrong
  kMeasurement,  // a measurement was refused or unstable
  kInternal,     // our own bug
};

enum class Code : std::uint16_t {
#define BOLTBEAM_CODE(name, group, meaning) name,
#include "base/error_codes.inc"
#undef BOLTBEAM_CODE
  kCount,  // must be last
};

/// The name of a code without its k, such as "GgufBadMagic".
std::string_view CodeName(Code code);
/// One line that says what the code means.
std::string_view CodeMeaning(Code code);
Group CodeGroup(Code code);

struct Error {
  Code code = Code::kInternal;
  std::string where;     // path, byte offset, key, tensor, flag
  std::string found;     // what is there
  std::string expected;  // the rule, or what to do

  /// "<where>: <found>; expected <expected>", one line.
  [[nodiscard]] std::string Message() const;
};

template <typename T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> Fail(Code code, std::string where, std::string found,
                                                 std::string expected = {}) {
  return std::unexpected(Error{code, std::move(where), std::move(found), std::move(expected)});
}

}  // namespace boltbeam

// Returns the error of a Result<void> expression from the enclosing function.
#define BOLTBEAM_TRY(expression)                                  \
  do {                                                            \
    if (auto boltbeam_result = (expression); !boltbeam_result) {  \
      return std::unexpected(std::move(boltbeam_result).error()); \
    }                                                             \
  } while (false)

#define BOLTBEAM_CONCAT_IMPL(a, b) a##b
#define BOLTBEAM_CONCAT(a, b) BOLTBEAM_CONCAT_IMPL(a, b)

// BOLTBEAM_ASSIGN(auto x, F()): x is F's value, or the enclosing function returns F's error.
#define BOLTBEAM_ASSIGN(declaration, expression) \
  BOLTBEAM_ASSIGN_IMPL(BOLTBEAM_CONCAT(boltbeam_value_, __LINE__), declaration, expression)
#define BOLTBEAM_ASSIGN_IMPL(name, declaration, expression)   \
  auto name = (expression);                                   \
  if (!name) return std::unexpected(std::move(name).error()); \
  declaration = std::move(*name)
