// GGUF files that are right but for a few choices: they reach the checks that random bytes seldom do.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "byte_source.h"
#include "gguf/file.h"
#include "gguf/testing/builder.h"

namespace {

using namespace boltbeam::gguf;
using boltbeam::fuzz::ByteSource;

void AddKey(ByteSource& source, testing::Builder& builder) {
  constexpr std::string_view kKeys[] = {"general.alignment", "split.count", "split.no", "a.b", "general.architecture"};
  const std::string_view key = source.OneIn(3) ? source.Text(20) : kKeys[source.Below(std::size(kKeys))];
  const auto type = static_cast<ValueType>(source.Below(15));
  if (type == ValueType::kString) {
    builder.String(key, source.Text(40));
  } else if (type == ValueType::kArray) {
    const auto element = static_cast<ValueType>(source.Below(14));
    testing::Bytes elements;
    const std::uint32_t count = source.Below(6);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (element == ValueType::kString) {
        elements.Text(source.Text(8));
      } else {
        elements.Raw(source.Text(8));
      }
    }
    builder.Array(key, element, source.OneIn(4) ? source.Count() : count, elements);
  } else {
    builder.Key(key, type, testing::Bytes().Raw(source.Text(8)));
  }
}

void AddTensor(ByteSource& source, testing::Builder& builder) {
  constexpr std::string_view kNames[] = {"a", "b", "c", "d.weight", "e.weight", ""};
  const std::string_view name = source.OneIn(4) ? source.Text(70) : kNames[source.Below(std::size(kNames))];
  std::vector<std::uint64_t> shape(1 + source.Below(source.OneIn(8) ? 6 : 3));
  for (auto& dimension : shape) dimension = source.OneIn(3) ? source.Count() : 32 * (1 + source.Below(4));
  const std::uint32_t type = source.OneIn(8) ? source.Number<std::uint32_t>() : source.Below(44);
  std::optional<std::uint64_t> offset;
  if (source.OneIn(4)) offset = source.Count();
  std::optional<std::uint32_t> dimensions;
  if (source.OneIn(16)) dimensions = source.Number<std::uint32_t>();
  builder.Tensor(name, shape, type, offset, dimensions);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteSource source(data, size);
  testing::Builder builder;
  builder.version = source.OneIn(16) ? source.Number<std::uint32_t>() : 2 + source.Below(2);
  if (source.OneIn(4)) builder.alignment = 8 * source.Below(9);
  if (source.OneIn(8)) builder.key_count = source.Count();
  if (source.OneIn(8)) builder.tensor_count = source.Count();
  if (source.OneIn(2)) builder.U32("general.alignment", static_cast<std::uint32_t>(builder.alignment));
  for (std::uint32_t i = source.Below(6); i > 0; --i) AddKey(source, builder);
  for (std::uint32_t i = source.Below(6); i > 0; --i) AddTensor(source, builder);
  if (source.OneIn(4)) builder.data = source.Text(200);
  OpenOptions options;
  options.strict = source.OneIn(4);
  const testing::MemoryFile memory(builder.Build().bytes());
  const auto file = File::Open(memory.path(), options);
  if (file && !testing::Examine(*file).empty()) __builtin_trap();
  if (!file && file.error().code == boltbeam::Code::kOutOfMemory) __builtin_trap();
  return 0;
}
