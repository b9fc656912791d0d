#include "audit/import/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "audit/import/numbers.h"

namespace boltbeam::imports {
namespace {

using Json = nlohmann::json;

std::string Clean(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\r' && i + 1 < bytes.size() && bytes[i + 1] == '\n') continue;
    if (bytes[i] == '\x1b' && i + 1 < bytes.size() && bytes[i + 1] == '[') {  // ESC [ parameters letter
      const std::size_t end = bytes.find_first_not_of("0123456789;?", i + 2);
      if (end == std::string_view::npos) break;
      i = end;
      continue;
    }
    text += bytes[i];
  }
  return text;
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

struct Parsed {
  Json value;
  bool good = false, cut = false;
  std::string fault;
};

Parsed Parse(std::string_view text) {
  Parsed parsed;
  try {
    parsed.value = Json::parse(text);
    parsed.good = true;
  } catch (const Json::parse_error& error) {
    parsed.cut = error.byte > text.size();
    parsed.fault = parsed.cut ? fmt::format("the JSON ends early, at byte {}", text.size())
                              : fmt::format("no JSON at byte {}", error.byte);
  } catch (const Json::exception&) {  // a number that no double holds
    parsed.fault = "a number that is out of range";
  }
  return parsed;
}

}  // namespace

Source::Source(std::string_view name, std::string_view bytes) : name_(name), text_(Clean(bytes)), bytes_(bytes) {
  lines_ = Lines(text_);
  const std::string_view start = Trim(text_);
  if (start.starts_with('{') || start.starts_with('[')) ReadJson();
}

void Source::ReadJson() {
  Parsed whole = Parse(text_);
  if (whole.good) {
    json_.push_back(std::move(whole.value));
    json_lines_.push_back(1);
    return;
  }
  json_fault_ = whole.fault;
  json_cut_ = whole.cut;
  ReadJsonLines();
}

void Source::ReadJsonLines() {
  std::vector<Json> objects;
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (Trim(lines_[i]).empty()) continue;
    Parsed line = Parse(lines_[i]);
    if (!line.good || !line.value.is_object()) {
      if (!objects.empty()) json_fault_ = fmt::format("line {}: {}", i + 1, line.good ? "no object" : line.fault);
      return;
    }
    objects.push_back(std::move(line.value));
    at.push_back(i + 1);
  }
  json_ = std::move(objects);
  json_lines_ = std::move(at);
  json_fault_.clear();
  json_cut_ = false;
}

std::string Source::At(std::size_t line) const { return fmt::format("{}:{}", name_, line); }

bool HasAll(const Json& object, std::initializer_list<std::string_view> keys) {
  return object.is_object() && std::ranges::all_of(keys, [&](std::string_view key) { return object.contains(key); });
}

}  // namespace boltbeam::imports
