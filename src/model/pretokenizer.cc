#include "model/pretokenizer.h"

#include <fmt/format.h>
#include <unicode/regex.h>
#include <unicode/unistr.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/embedded.h"
#include "base/printable.h"

namespace boltbeam::model {
namespace {

constexpr std::string_view kRegistry = "models/pretokenizers.json";
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;  // ICU counts in 32 bits

using Json = nlohmann::json;

struct Range {
  std::int32_t begin = 0, end = 0;  // UTF-16 units
};

Result<Json> ReadRegistry() {
  BOLTBEAM_ASSIGN(const std::string_view text, base::Embedded(kRegistry));
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Fail(Code::kInternal, std::string(kRegistry), "not JSON", "the registry's layout");
  return json;
}

std::string KnownNames(const Json& rows) {
  std::string names;
  for (const Json& row : rows) {
    for (const Json& name : row["names"]) names += (names.empty() ? "" : ", ") + name.get<std::string>();
  }
  return names;
}

const Json* FindRow(const Json& rows, std::string_view wanted) {
  for (const Json& row : rows) {
    for (const Json& name : row["names"]) {
      if (name.get_ref<const std::string&>() == wanted) return &row;
    }
  }
  return nullptr;
}

}  // namespace

struct Pretokenizer::State {
  std::vector<std::unique_ptr<icu::RegexPattern>> patterns;
  bool ignore_merges = false;
  bool adds_bos = false;
};

Pretokenizer::Pretokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

bool Pretokenizer::ignore_merges() const { return state_->ignore_merges; }
bool Pretokenizer::adds_bos() const { return state_->adds_bos; }

Result<Pretokenizer> Pretokenizer::Make(std::string_view name) {
  BOLTBEAM_ASSIGN(const Json registry, ReadRegistry());
  const Json* row = FindRow(registry["rows"], name);
  if (row == nullptr) {
    return Fail(Code::kTokenizerUnsupported, "tokenizer.ggml.pre",
                fmt::format("'{}' is a pre-tokenizer that this build does not know", base::Printable(name)),
                "one of: " + KnownNames(registry["rows"]));
  }
  auto state = std::make_unique<State>();
  state->ignore_merges = (*row)["ignore_merges"].get<bool>();
  state->adds_bos = (*row)["add_bos"].get<bool>();
  for (const Json& regex : (*row)["regexes"]) {
    UErrorCode status = U_ZERO_ERROR;
    UParseError where{};
    const auto text = icu::UnicodeString::fromUTF8(regex.get_ref<const std::string&>());
    state->patterns.emplace_back(icu::RegexPattern::compile(text, where, status));
    if (U_FAILURE(status)) {
      return Fail(Code::kInternal, fmt::format("{} '{}'", kRegistry, name),
                  fmt::format("{} at {}", u_errorName(status), where.offset), "a regular expression that ICU compiles");
    }
  }
  return Pretokenizer(std::move(state));
}

Result<void> Pretokenizer::Split(std::string_view text,
                                 const std::function<Result<void>(std::string_view)>& piece) const {
  if (text.size() > kMaxTextBytes) {
    return Fail(Code::kTokenizerText, "text", fmt::format("{} bytes", text.size()),
                fmt::format("at most {} bytes at once", kMaxTextBytes));
  }
  const auto length = static_cast<std::int32_t>(text.size());
  const auto wide = icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), length));
  std::vector<Range> pieces{{0, wide.length()}}, finer;
  UErrorCode status = U_ZERO_ERROR;
  for (const auto& pattern : state_->patterns) {
    const std::unique_ptr<icu::RegexMatcher> matcher(pattern->matcher(wide, status));
    if (U_FAILURE(status)) break;
    finer.clear();
    for (const Range& range : pieces) {
      // A region's bounds are opaque: a look-ahead sees the end of the piece as the end of the text.
      matcher->region(range.begin, range.end, status);
      std::int32_t at = range.begin;
      while (U_SUCCESS(status) && matcher->find(status)) {
        const std::int32_t begin = matcher->start(status), end = matcher->end(status);
        if (at < begin) finer.push_back({at, begin});
        if (begin < end) finer.push_back({begin, end});
        at = end;
      }
      if (at < range.end) finer.push_back({at, range.end});
    }
    pieces.swap(finer);
  }
  if (U_FAILURE(status)) {
    return Fail(Code::kTokenizerText, "text", fmt::format("the pre-tokenizer stopped: {}", u_errorName(status)),
                "text that its regular expressions can match");
  }
  std::string utf8;
  for (const Range& range : pieces) {
    utf8.clear();
    wide.tempSubStringBetween(range.begin, range.end).toUTF8String(utf8);
    BOLTBEAM_TRY(piece(utf8));
  }
  return {};
}

namespace {

VocabularyKind ParseKind(const Json& row) {
  const auto id = [&](const char* key) -> std::optional<std::int32_t> {
    return row.contains(key) ? std::optional(row[key].get<std::int32_t>()) : std::nullopt;
  };
  return {row["spelling"] == "scores",
          row.value("add_bos", false),
          row.value("add_space_prefix", false),
          id("bos"),
          id("eos"),
          id("unknown")};
}

}  // namespace

Result<VocabularyKind> FindVocabularyKind(std::string_view name) {
  BOLTBEAM_ASSIGN(const Json registry, ReadRegistry());
  std::string readable,
      found = fmt::format("'{}', a kind of vocabulary that this build can't read", base::Printable(name));
  for (const Json& kind : registry["vocabularies"]) {
    const bool matches = kind["name"].get_ref<const std::string&>() == name, is_readable = kind.contains("spelling");
    const std::string described =
        fmt::format("'{}' ({})", kind["name"].get<std::string>(), kind["is"].get<std::string>());
    if (matches && is_readable) return ParseKind(kind);
    if (matches) found = described + ", a kind of vocabulary that this build can't read";
    if (is_readable) readable += (readable.empty() ? "" : ", ") + described;
  }
  return Fail(Code::kTokenizerUnsupported, "tokenizer.ggml.model", std::move(found), std::move(readable));
}

Result<std::vector<std::string>> StopTokenTexts() {
  BOLTBEAM_ASSIGN(const Json registry, ReadRegistry());
  return registry["stop_tokens"].get<std::vector<std::string>>();
}

}  // namespace boltbeam::model
