// A model that is split over several files: the parts are found by their names, checked against each other and read as
// one. Metadata stand in the first part; every part says in its own keys which one it is (class J of the input rules).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/printable.h"
#include "gguf/file_state.h"
#include "gguf/split_name.h"

namespace boltbeam::gguf {
namespace {

constexpr std::uint64_t kMaxParts = 512;  // each is a file that stays open

/// Keys that the parts of one model have in common, where a part has them at all.
constexpr std::string_view kSharedKeys[] = {"general.architecture", "general.alignment", "general.name", "general.uuid",
                                            "general.file_type"};

std::string ValueText(const KeyValue& pair) {
  if (const auto* text = std::get_if<std::string>(&pair.value)) return fmt::format("'{}'", base::Printable(*text, 80));
  if (const auto* number = std::get_if<std::uint64_t>(&pair.value)) return fmt::format("{}", *number);
  return fmt::format("a value of type {}", TypeName(pair.type));
}

Result<void> CheckSameModel(const File& first, const File& part) {
  for (const std::string_view key : kSharedKeys) {
    const KeyValue* ours = part.Find(key);
    const KeyValue* theirs = first.Find(key);
    if (ours == nullptr || theirs == nullptr || ValueText(*ours) == ValueText(*theirs)) continue;
    return Fail(Code::kGgufSplitModel, part.path(), fmt::format("{} {}", key, ValueText(*ours)),
                fmt::format("{}, as in {}: a part of the same model", ValueText(*theirs), first.path()));
  }
  return {};
}

/// The name of the part that was given, against what it says of itself.
Result<PartName> CheckName(const std::string& path, std::uint64_t number, std::uint64_t count) {
  std::optional<PartName> name = ParsePartName(path);
  if (!name) {
    return Fail(Code::kGgufSplitName, path, fmt::format("part {} of a model in {} files", number + 1, count),
                "the name that llama-gguf-split gave it, NAME-00001-of-0000N.gguf, beside the other parts");
  }
  if (count != name->count) {
    return Fail(Code::kGgufSplitCount, path, fmt::format("one part of {}", count),
                fmt::format("one of {}, as its name says", name->count));
  }
  if (count > kMaxParts) {
    return Fail(Code::kGgufSplitLimit, path, fmt::format("a model in {} files", count),
                fmt::format("at most {}: join them with 'llama-gguf-split --merge'", kMaxParts));
  }
  if (number >= count || number + 1 != name->number) {
    return Fail(Code::kGgufSplitNumber, path, fmt::format("part {}", number + 1),
                fmt::format("part {}, as its name says", name->number));
  }
  return *std::move(name);
}

}  // namespace

/// What a part says of itself.
struct File::PartKeys {
  std::uint64_t number = 0;  // from 0
  std::uint64_t count = 0, tensors = 0;
};

Result<File::PartKeys> File::ReadPartKeys() const {
  PartKeys keys;
  BOLTBEAM_ASSIGN(keys.number, GetUnsigned("split.no"));
  BOLTBEAM_ASSIGN(keys.count, GetUnsigned("split.count"));
  BOLTBEAM_ASSIGN(keys.tensors, GetUnsigned("split.tensors.count"));
  return keys;
}

/// Part `number`, counted from 0, against what the part that was given says.
Result<void> File::CheckPart(const File& first, const PartKeys& expected, const File& part, std::uint32_t number) {
  if (part.Find("split.count") == nullptr) {
    return Fail(Code::kGgufSplitCount, part.path(), "no split.count: a whole model",
                fmt::format("a part of {}", expected.count));
  }
  BOLTBEAM_ASSIGN(const PartKeys found, part.ReadPartKeys());
  if (found.count != expected.count) {
    return Fail(Code::kGgufSplitCount, part.path(), fmt::format("one part of {}", found.count),
                fmt::format("one of {}, as its name says", expected.count));
  }
  if (found.number != number) {
    return Fail(Code::kGgufSplitNumber, part.path(), fmt::format("part {}", found.number + 1),
                fmt::format("part {}, as its name says", number + 1));
  }
  if (found.tensors != expected.tensors) {
    return Fail(Code::kGgufSplitTensors, part.path(), fmt::format("a model of {} tensors", found.tensors),
                fmt::format("one of {}, as the other parts say", expected.tensors));
  }
  return CheckSameModel(first, part);
}

/// Adds a part's tensors and its file behind those before.
void File::Append(File part) {
  Contents& all = state_->contents;
  Contents& more = part.state_->contents;
  Part& added = part.state_->parts.front();
  added.base = file_bytes();
  for (TensorInfo& tensor : more.tensors) {
    tensor.file_offset += added.base;
    all.tensors.push_back(std::move(tensor));
  }
  std::ranges::move(more.warnings, std::back_inserter(all.warnings));
  all.kept_bytes += more.kept_bytes;
  state_->sparse = state_->sparse || part.sparse();
  state_->parts.push_back(std::move(added));
}

/// Orders the tensors of all parts by name; no two may be equal.
Result<void> File::IndexTensors() {
  Contents& all = state_->contents;
  const auto name = [&](std::uint32_t i) -> std::string_view { return all.tensors[i].name; };
  all.tensors_by_name.resize(all.tensors.size());
  std::iota(all.tensors_by_name.begin(), all.tensors_by_name.end(), 0U);
  std::ranges::sort(all.tensors_by_name, {}, name);
  const auto same = std::ranges::adjacent_find(all.tensors_by_name, {}, name);
  if (same == all.tensors_by_name.end()) return {};
  const auto part = [&](std::uint32_t tensor) -> const std::string& {
    return std::prev(std::ranges::upper_bound(state_->parts, all.tensors[tensor].file_offset, {}, &Part::base))->path;
  };
  const auto [first, second] = std::minmax(same[0], same[1]);
  return Fail(Code::kGgufSplitDuplicate, part(second), fmt::format("tensor '{}'", base::Printable(name(second))),
              "a tensor that no other part has; it is in " + part(first));
}

/// Opens the other parts, each checked as it comes.
Result<File> File::OpenParts(File given, const OpenOptions& options) {
  BOLTBEAM_ASSIGN(const PartKeys keys, given.ReadPartKeys());
  BOLTBEAM_ASSIGN(const PartName name, CheckName(given.path(), keys.number, keys.count));
  const auto open = [&](std::uint32_t number, const OpenOptions& rest) -> Result<File> {
    if (number == keys.number) return std::move(given);  // its turn comes once
    return OpenPart(name.Path(number + 1), rest);
  };
  std::optional<File> whole;
  for (std::uint32_t number = 0; number < name.count; ++number) {
    OpenOptions rest = options;
    if (whole) rest.metadata_limit_bytes -= std::min(rest.metadata_limit_bytes, whole->state_->contents.kept_bytes);
    Result<File> part = open(number, rest);
    if (!part && part.error().code == Code::kFileNotFound) {
      return Fail(Code::kGgufSplitMissing, part.error().where, part.error().found,
                  fmt::format("part {} of {}, beside the others", number + 1, name.count));
    }
    if (!part) return std::unexpected(std::move(part).error());
    BOLTBEAM_TRY(CheckPart(whole ? *whole : *part, keys, *part, number));
    if (whole) {
      whole->Append(std::move(*part));
    } else {
      whole.emplace(std::move(*part));
    }
  }
  BOLTBEAM_TRY(whole->IndexTensors());
  if (whole->tensors().size() == keys.tensors) return std::move(*whole);
  return Fail(Code::kGgufSplitTensors, whole->path(),
              fmt::format("{} tensors in {} parts", whole->tensors().size(), keys.count),
              fmt::format("{}, by split.tensors.count", keys.tensors));
}

}  // namespace boltbeam::gguf
