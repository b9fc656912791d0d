#include "gguf/testing/split_refusals.h"

#include <fmt/format.h>

#include <cstdint>

#include "gguf/testing/builder.h"

namespace boltbeam::gguf::testing {
namespace {

std::string Name(std::uint32_t number, std::uint32_t count = 3) {
  return fmt::format("m-{:05}-of-{:05}.gguf", number, count);
}

Bytes Word(std::uint32_t value) { return Bytes().Number(static_cast<std::uint16_t>(value)); }

/// Tensors whose bytes tell them apart.
Builder& AddTensors(Builder& builder, std::string_view names) {
  std::string data;
  for (const char name : names) {
    builder.Tensor(std::string(1, name) + ".weight", {8}, 0);
    data += std::string(32, name);
  }
  builder.data = data;
  return builder;
}

Builder& AddModelKeys(Builder& builder) {
  return builder.String("general.architecture", "test")
      .Array("test.tokens", ValueType::kString, 3, Bytes().Text("a").Text("").Text("ccc"));
}

/// One part: only the first has the model's own keys.
struct PartSpec {
  std::uint32_t number = 1, count = 3;
  std::int32_t tensors = 6;
  std::string names = {};
  std::string architecture = {};  // of a later part; empty: not said
  std::uint32_t alignment = 0;

  [[nodiscard]] std::string Build() const {
    Builder builder;
    if (number == 1) AddModelKeys(builder);
    if (!architecture.empty()) builder.String("general.architecture", architecture);
    if (alignment != 0) builder.U32("general.alignment", alignment);
    builder.Key("split.no", ValueType::kU16, Word(number - 1))
        .Key("split.count", ValueType::kU16, Word(count))
        .Key("split.tensors.count", ValueType::kI32, Bytes().Number(tensors));
    return AddTensors(builder, names).Build().bytes();
  }
};

Files With(std::uint32_t number, const PartSpec& part) {
  Files files = SplitModel();
  files[Name(number)] = part.Build();
  return files;
}

}  // namespace

Files SplitModel() {
  return {{Name(1), PartSpec{.number = 1, .names = "ab"}.Build()},
          {Name(2), PartSpec{.number = 2, .names = "cd"}.Build()},
          {Name(3), PartSpec{.number = 3, .names = "ef"}.Build()}};
}

std::string WholeModel() {
  Builder builder;
  AddModelKeys(builder);
  return AddTensors(builder, "abcdef").Build().bytes();
}

std::vector<SplitRefusal> SplitRefusals() {
  std::vector<SplitRefusal> list;
  const Files good = SplitModel();
  const auto add = [&](Code code, std::string variant, Files files, std::uint32_t opened, std::uint32_t blamed) {
    list.push_back({code, std::move(variant), std::move(files), Name(opened), Name(blamed)});
  };
  const auto without = [&](std::uint32_t number) {
    Files files = good;
    files.erase(Name(number));
    return files;
  };
  add(Code::kGgufSplitMissing, "the first", without(1), 3, 1);
  add(Code::kGgufSplitMissing, "the last", without(3), 1, 3);
  add(Code::kGgufSplitMissing, "all but the first", {{Name(1), good.at(Name(1))}}, 1, 2);
  add(Code::kGgufSplitNumber, "of the one given", With(2, {.number = 3, .names = "cd"}), 2, 2);
  add(Code::kGgufSplitNumber, "of another", With(2, {.number = 3, .names = "cd"}), 1, 2);
  add(Code::kGgufSplitNumber, "beyond the count", With(2, {.number = 7, .names = "cd"}), 2, 2);
  add(Code::kGgufSplitCount, "of the one given", With(1, {.count = 4, .names = "ab"}), 1, 1);
  add(Code::kGgufSplitCount, "of another", With(2, {.number = 2, .count = 4, .names = "cd"}), 1, 2);
  add(Code::kGgufSplitCount, "of a joined file that is named as a part", With(1, {.count = 0, .names = "ab"}), 1, 1);
  Files whole = good;
  whole[Name(3)] = WholeModel();
  add(Code::kGgufSplitCount, "of a whole model among parts", whole, 1, 3);
  add(Code::kGgufSplitTensors, "said differently", With(2, {.number = 2, .tensors = 7, .names = "cd"}), 1, 2);
  add(Code::kGgufSplitTensors, "too few", With(3, {.number = 3, .names = "e"}), 2, 1);
  add(Code::kGgufSplitTensors, "too many", With(3, {.number = 3, .names = "efg"}), 2, 1);
  add(Code::kGgufSplitDuplicate, "", With(3, {.number = 3, .names = "eb"}), 1, 3);
  add(Code::kGgufSplitModel, "architecture", With(2, {.number = 2, .names = "cd", .architecture = "other"}), 3, 2);
  Files aligned = With(1, {.names = "ab", .alignment = 32});
  aligned[Name(2)] = PartSpec{.number = 2, .names = "cd", .alignment = 16}.Build();
  add(Code::kGgufSplitModel, "alignment", aligned, 1, 2);
  const std::string many = Name(1, 600);
  list.push_back({Code::kGgufSplitLimit, "", {{many, PartSpec{.count = 600, .names = "ab"}.Build()}}, many, many});
  Files cut = good;
  cut[Name(2)].resize(cut[Name(2)].size() - 40);
  add(Code::kGgufTruncated, "a part", cut, 1, 2);
  Files joined = good;
  joined[Name(1)] += good.at(Name(2)) + good.at(Name(3));
  add(Code::kGgufSplitJoined, "under a part's name", joined, 1, 1);
  return list;
}

}  // namespace boltbeam::gguf::testing
