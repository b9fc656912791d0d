#include "gguf/testing/refusals.h"

#include <cstdint>

#include "gguf/testing/builder.h"

namespace boltbeam::gguf::testing {
namespace {

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ80 = 8;
constexpr std::uint32_t kI8 = 24;

std::string OfBuilder(const Builder& builder) { return builder.Build().bytes(); }

/// The small model with one more key.
std::string WithKey(std::string_view key, ValueType type, const Bytes& value) {
  return OfBuilder(SmallModel().Key(key, type, value));
}

std::string WithArray(std::uint32_t element, std::uint64_t count, std::string_view elements) {
  return WithKey("test.array", ValueType::kArray, Bytes().Number(element).Number(count).Raw(elements));
}

std::string WithTensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                       std::optional<std::uint64_t> offset = {}, std::optional<std::uint32_t> dimensions = {}) {
  return OfBuilder(SmallModel().Tensor(name, shape, type, offset, dimensions));
}

Builder TwoTensors(std::uint64_t first, std::uint64_t second) {
  Builder builder;
  builder.Tensor("a", {8}, kF32, first).Tensor("b", {8}, kF32, second);
  builder.data = std::string(128, '\0');
  return builder;
}

void AddFiles(std::vector<Refusal>& list) {
  const std::string whole = OfBuilder(SmallModel());
  list.push_back({Code::kGgufTooShort, "magic-only", false, "GGUF"});
  list.push_back({Code::kGgufTooShort, "23-bytes", false, whole.substr(0, 23)});
  list.push_back({Code::kGgufTruncated, "in-a-key", false, whole.substr(0, 151)});
  list.push_back({Code::kGgufTruncated, "in-the-data", false, whole.substr(0, whole.size() - 10)});
  std::string padded = whole;
  padded.resize((whole.size() + 31) / 32 * 32);
  list.push_back({Code::kGgufTrailingBytes, "64", true, padded + std::string(64, 'x')});
  const std::string rest(32, '\0');
  list.push_back({Code::kGgufOtherFormat, "ggml", false, "lmgg" + rest});
  list.push_back({Code::kGgufOtherFormat, "ggjt", false, "tjgg" + rest});
  list.push_back({Code::kGgufOtherFormat, "zip", false, "PK\x03\x04" + rest});
  list.push_back({Code::kGgufOtherFormat, "pickle", false, "\x80\x02" + rest});
  list.push_back(
      {Code::kGgufOtherFormat, "safetensors", false, Bytes().Number<std::uint64_t>(20).Raw("{\"a\":1}").bytes()});
  list.push_back({Code::kGgufOtherFormat, "html", false, "\n<!DOCTYPE html><html><body>404</body></html>"});
  list.push_back(
      {Code::kGgufOtherFormat, "git-lfs", false, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"});
  list.push_back({Code::kGgufOtherFormat, "xml", false, "<?xml version=\"1.0\"?><Error/>"});
}

void AddHeaders(std::vector<Refusal>& list) {
  const auto with = [&](Code code, const char* variant, auto change) {
    Builder builder = SmallModel();
    change(builder);
    list.push_back({code, variant, false, OfBuilder(builder)});
  };
  with(Code::kGgufMagic, "other", [](Builder& b) { b.magic = "GGUX"; });
  with(Code::kGgufBigEndian, "version", [](Builder& b) { b.version = 0x03000000; });
  with(Code::kGgufBigEndian, "magic", [](Builder& b) { b.magic = "FUGG"; });
  for (const std::uint32_t version : {0U, 1U, 4U}) {
    with(Code::kGgufVersion, version == 0 ? "0" : version == 1 ? "1" : "4", [&](Builder& b) { b.version = version; });
  }
  with(Code::kGgufKeyCount, "huge", [](Builder& b) { b.key_count = 1ULL << 62; });
  with(Code::kGgufKeyCount, "one-too-many", [](Builder& b) { b.key_count = b.Build().bytes().size() / 14 + 1; });
  with(Code::kGgufTensorCount, "huge", [](Builder& b) { b.tensor_count = 1ULL << 62; });
  with(Code::kGgufTensorCount, "one-too-many", [](Builder& b) { b.tensor_count = b.Build().bytes().size() / 33 + 1; });
  with(Code::kGgufCountRange, "keys", [](Builder& b) { b.key_count = ~0ULL; });
  with(Code::kGgufCountRange, "tensors", [](Builder& b) { b.tensor_count = 1ULL << 63; });
}

void AddStrings(std::vector<Refusal>& list) {
  const Bytes one = Bytes().Number<std::uint32_t>(1);
  list.push_back(
      {Code::kGgufStringLength, "value", false, WithKey("test.long", ValueType::kString, Bytes().Number(~0ULL))});
  list.push_back({Code::kGgufStringLength, "in-an-array", false,
                  WithArray(static_cast<std::uint32_t>(ValueType::kString), 1, std::string(7, '\0') + "\x7f")});
  list.push_back({Code::kGgufStringLimit, "tensor-name", false, WithTensor(std::string(65, 'n'), {8}, kF32)});
  list.push_back({Code::kGgufEmptyKey, "", false, WithKey("", ValueType::kU32, one)});
  list.push_back({Code::kGgufEmptyTensorName, "", false, WithTensor("", {8}, kF32)});
  list.push_back({Code::kGgufKeyText, "nul", false, WithKey(std::string_view("a\0b", 3), ValueType::kU32, one)});
  list.push_back({Code::kGgufKeyText, "escape", false, WithKey("a\x1b[2J", ValueType::kU32, one)});
  list.push_back({Code::kGgufKeyText, "upper-case", true, WithKey("Test.Key", ValueType::kU32, one)});
  list.push_back({Code::kGgufKeyText, "two-dots", true, WithKey("a..b", ValueType::kU32, one)});
  list.push_back({Code::kGgufTensorNameText, "newline", false, WithTensor("a\nb", {8}, kF32)});
  list.push_back({Code::kGgufUtf8, "value", true, WithKey("test.text", ValueType::kString, Bytes().Text("\xff\xfe"))});
  list.push_back({Code::kGgufUtf8, "tensor-name", true, WithTensor("\xc0\xaf", {8}, kF32)});
}

void AddValues(std::vector<Refusal>& list) {
  const Bytes one = Bytes().Number<std::uint32_t>(1);
  list.push_back({Code::kGgufValueType, "13", false, WithKey("test.x", static_cast<ValueType>(13), one)});
  list.push_back({Code::kGgufValueType, "minus-1", false, WithKey("test.x", static_cast<ValueType>(~0U), one)});
  list.push_back({Code::kGgufDuplicateKey, "", false, WithKey("test.block_count", ValueType::kU32, one)});
  list.push_back(
      {Code::kGgufBool, "value", false, WithKey("test.x", ValueType::kBool, Bytes().Number<std::uint8_t>(2))});
  list.push_back({Code::kGgufBool, "in-an-array", false, WithArray(7, 3, std::string("\0\1\xff", 3))});
  list.push_back({Code::kGgufWrongType, "alignment-u64", false,
                  WithKey("general.alignment", ValueType::kU64, Bytes().Number<std::uint64_t>(32))});
  list.push_back({Code::kGgufWrongType, "alignment-string", false,
                  WithKey("general.alignment", ValueType::kString, Bytes().Text("32"))});
  list.push_back({Code::kGgufWrongType, "split-count-string", false,
                  WithKey("split.count", ValueType::kString, Bytes().Text("2"))});
  for (const std::uint32_t alignment : {0U, 4U, 12U, 1U << 21}) {
    list.push_back({Code::kGgufAlignment, std::to_string(alignment), false,
                    WithKey("general.alignment", ValueType::kU32, Bytes().Number(alignment))});
  }
  list.push_back({Code::kGgufSplitName, "", false,
                  SmallModel()
                      .Key("split.no", ValueType::kU16, Bytes().Number<std::uint16_t>(0))
                      .Key("split.count", ValueType::kU16, Bytes().Number<std::uint16_t>(3))
                      .Key("split.tensors.count", ValueType::kI32, Bytes().Number<std::int32_t>(6))
                      .Build()
                      .bytes()});
  list.push_back({Code::kGgufSplitJoined, "", false, SmallModel().Build().bytes() + SmallModel().Build().bytes()});
  list.push_back({Code::kGgufArrayType, "13", false, WithArray(13, 1, "x")});
  list.push_back({Code::kGgufNestedArray, "", false, WithArray(9, 1, std::string(12, '\0'))});
  list.push_back({Code::kGgufArrayOverflow, "u64", false, WithArray(10, 1ULL << 62, "x")});
  list.push_back({Code::kGgufArrayOverflow, "strings", false, WithArray(8, ~0ULL, "x")});
  list.push_back({Code::kGgufArrayLength, "u8", false, WithArray(0, 1ULL << 40, "x")});
  list.push_back({Code::kGgufArrayLength, "strings", false, WithArray(8, 1ULL << 32, "x")});
}

void AddTensors(std::vector<Refusal>& list) {
  list.push_back({Code::kGgufDimensions, "0", false, WithTensor("x", {}, kF32)});
  list.push_back({Code::kGgufDimensions, "5", false, WithTensor("x", {1, 1, 1, 1, 1}, kF32)});
  list.push_back({Code::kGgufDimensions, "huge", false, WithTensor("x", {1}, kF32, {}, ~0U)});
  list.push_back({Code::kGgufEmptyTensor, "first", false, WithTensor("x", {0}, kF32)});
  list.push_back({Code::kGgufEmptyTensor, "second", false, WithTensor("x", {32, 0}, kQ80)});
  list.push_back({Code::kGgufDimensionRange, "", false, WithTensor("x", {1ULL << 63}, kI8)});
  list.push_back({Code::kGgufElementOverflow, "two", false, WithTensor("x", {1ULL << 40, 1ULL << 40}, kF32)});
  list.push_back({Code::kGgufElementOverflow, "wraps-to-0", false, WithTensor("x", {1ULL << 32, 1ULL << 32}, kI8)});
  list.push_back({Code::kGgufElementOverflow, "int64-max", false, WithTensor("x", {~0ULL >> 1, 4}, kI8)});
  list.push_back({Code::kGgufTensorType, "43", false, WithTensor("x", {32}, 43)});
  list.push_back({Code::kGgufTensorType, "minus-1", false, WithTensor("x", {32}, ~0U)});
  for (const std::uint32_t type : {4U, 5U, 31U, 38U}) {
    list.push_back({Code::kGgufTensorTypeRemoved, std::to_string(type), false, WithTensor("x", {32}, type)});
  }
  list.push_back({Code::kGgufBlockMultiple, "576-of-256", false, WithTensor("x", {576, 2}, 12)});
  list.push_back({Code::kGgufByteOverflow, "f32", false, WithTensor("x", {1ULL << 31, 1ULL << 31}, kF32)});
  list.push_back(
      {Code::kGgufPadOverflow, "2-to-64-less-1", false, WithTensor("x", {4294967295ULL, 4294967297ULL}, kI8)});
  list.push_back({Code::kGgufDuplicateTensor, "", false, WithTensor("a.weight", {8}, kF32)});
  list.push_back({Code::kGgufOffsetAlignment, "16", false, WithTensor("x", {8}, kF32, 128 + 16)});
}

void AddDataSections(std::vector<Refusal>& list) {
  Builder no_data = SmallModel();
  no_data.data = "";
  std::string cut = OfBuilder(no_data);
  list.push_back({Code::kGgufDataStart, "at-the-end", false, cut});
  cut.pop_back();
  list.push_back({Code::kGgufDataStart, "beyond-the-end", false, cut});
  list.push_back({Code::kGgufTensorBounds, "offset", false, OfBuilder(TwoTensors(0, 1ULL << 40))});
  list.push_back({Code::kGgufTensorBounds, "offset-wraps", false, OfBuilder(TwoTensors(0, ~31ULL))});
  Builder wide;
  wide.Tensor("a", {1ULL << 62, 2}, kI8, 0).Tensor("b", {1ULL << 62, 2}, kI8, 1ULL << 63);
  wide.data = std::string(64, '\0');
  list.push_back({Code::kGgufSizeOverflow, "", false, OfBuilder(wide)});
  list.push_back({Code::kGgufOverlap, "same-offset", false, OfBuilder(TwoTensors(32, 32))});
  Builder overlap;
  overlap.Tensor("a", {16}, kF32, 0).Tensor("b", {8}, kF32, 32);
  list.push_back({Code::kGgufOverlap, "by-half", false, OfBuilder(overlap)});
  list.push_back({Code::kGgufGap, "before-the-first", true, OfBuilder(TwoTensors(32, 64))});
  list.push_back({Code::kGgufGap, "between", true, OfBuilder(TwoTensors(0, 96))});
  Builder padded = SmallModel();
  padded.padding = 'p';
  list.push_back({Code::kGgufPaddingBytes, "before-the-data", true, OfBuilder(padded)});
  Builder between;
  between.Tensor("a", {1}, kF32, 0).Tensor("b", {1}, kF32, 32);
  between.data = std::string(36, 'p');
  list.push_back({Code::kGgufPaddingBytes, "between", true, OfBuilder(between)});
}

}  // namespace

std::vector<Refusal> Refusals() {
  std::vector<Refusal> list;
  AddFiles(list);
  AddHeaders(list);
  AddStrings(list);
  AddValues(list);
  AddTensors(list);
  AddDataSections(list);
  return list;
}

std::vector<GoodFile> GoodFiles() {
  std::vector<GoodFile> list;
  list.push_back({"small", OfBuilder(SmallModel())});
  Builder version2 = SmallModel();
  version2.version = 2;
  list.push_back({"version-2", OfBuilder(version2)});
  list.push_back({"nothing-in-it", OfBuilder(Builder())});
  list.push_back({"no-tensors-no-padding", OfBuilder(Builder().U32("a.b", 1)).substr(0, 24 + 8 + 3 + 4 + 4)});
  list.push_back({"out-of-order", OfBuilder(TwoTensors(32, 0)).substr(0, 192)});
  list.push_back({"gap-and-trailing", OfBuilder(TwoTensors(32, 64))});
  Builder small_alignment;
  small_alignment.alignment = 8;
  small_alignment.U32("general.alignment", 8).Tensor("a", {3}, kF32).Tensor("b", {1}, kF32);
  list.push_back({"alignment-8", OfBuilder(small_alignment)});
  list.push_back({"merged-split", WithKey("split.count", ValueType::kU16, Bytes().Number<std::uint16_t>(0))});
  list.push_back({"long-names", WithTensor(std::string(64, 'n'), {1, 1, 1, 8}, kF32)});
  return list;
}

}  // namespace boltbeam::gguf::testing
