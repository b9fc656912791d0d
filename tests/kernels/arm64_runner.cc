// Runs kernels for a test of another machine: requests on stdin, answers on stdout, until stdin ends. Compiled for
// arm64 with the loader of the library and nothing that needs LLVM; the guards' size is its argument.
#include <cstdlib>

#include "arm64_protocol.h"
#include "runtime/code.h"

namespace boltbeam::kernel_tests {
namespace {

using Bytes = std::vector<std::byte>;

bool Serve(std::size_t guard) {
  std::string object;
  std::uint64_t count = 0, begin = 0, end = 0;
  if (!ReadBytes(STDIN_FILENO, object) || !ReadNumber(STDIN_FILENO, count)) return false;
  std::vector<Bytes> buffers(count);
  for (Bytes& buffer : buffers) {
    if (!ReadBytes(STDIN_FILENO, buffer)) return false;
  }
  if (!ReadNumber(STDIN_FILENO, begin) || !ReadNumber(STDIN_FILENO, end)) return false;
  const Result<runtime::Code> code = runtime::Code::Load(object);
  if (!code) return WriteNumber(STDOUT_FILENO, 1) && WriteBytes(STDOUT_FILENO, code.error().Message());
  std::vector<void*> pointers;
  for (Bytes& buffer : buffers) pointers.push_back(buffer.data() + guard);
  code->function()(pointers.data(), static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
  if (!WriteNumber(STDOUT_FILENO, 0)) return false;
  for (const Bytes& buffer : buffers) {
    if (!WriteBytes(STDOUT_FILENO, buffer)) return false;
  }
  return true;
}

}  // namespace
}  // namespace boltbeam::kernel_tests

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::size_t guard = std::strtoull(arguments[1], nullptr, 10);
  while (boltbeam::kernel_tests::Serve(guard)) {
  }
  return 0;
}
