// Any bytes as a GGUF file: an error, or a file of which everything can be read.
#include <cstddef>
#include <cstdint>

#include "gguf/file.h"
#include "gguf/testing/builder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace boltbeam::gguf;
  const testing::MemoryFile memory({reinterpret_cast<const char*>(data), size});
  for (const bool strict : {false, true}) {
    OpenOptions options;
    options.strict = strict;
    const auto file = File::Open(memory.path(), options);
    if (file && !testing::Examine(*file).empty()) __builtin_trap();
    // The fuzzer's own memory is limited: what a file makes the reader ask for must follow from its size.
    if (!file && (file.error().code == boltbeam::Code::kOutOfMemory || file.error().expected.empty())) __builtin_trap();
  }
  return 0;
}
