#include "engine/small_kernel_check.h"

#include <cstring>
#include <random>
#include <vector>

#include "kernel/families/state.h"
#include "kernel/interpreter.h"

namespace boltbeam::engine {
namespace {

constexpr std::size_t kBufferBytes = 4 << 20;  // more than the first work item of any kernel touches
constexpr std::int32_t kPosition = 3;

using Bytes = std::vector<std::byte>;

/// Words that are finite and of usual size as f32, as pairs of f16 and as bytes.
Bytes RandomBuffer(std::mt19937& random) {
  Bytes bytes(kBufferBytes);
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint32_t)) {
    const std::uint32_t word = (static_cast<std::uint32_t>(random()) & 0x87FF87FFU) | 0x38003800U;
    std::memcpy(&bytes[at], &word, sizeof(word));
  }
  return bytes;
}

Bytes StateBuffer() {
  Bytes bytes(kernel::kStateBytes);
  const auto set = [&](std::int64_t offset, std::int32_t value) { std::memcpy(&bytes[offset], &value, sizeof(value)); };
  set(kernel::kStateColumns, 1);
  set(kernel::kStateTiles, 1);
  set(kernel::kStatePosition, kPosition);
  set(kernel::kStateChunks, 1);
  set(kernel::kStateWindowChunks, 1);
  return bytes;
}

}  // namespace

Result<double> DifferingShare(const kernel::Program& program, runtime::KernelFunction function) {
  std::mt19937 random(31);
  std::vector<Bytes> interpreted;
  for (const kernel::Buffer& buffer : program.buffers) {
    interpreted.push_back(buffer.name == "state" ? StateBuffer() : RandomBuffer(random));
  }
  const std::vector<Bytes> before = interpreted;
  std::vector<Bytes> run = interpreted;
  std::vector<kernel::BufferView> views;
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < run.size(); ++i) {
    views.push_back({interpreted[i].data(), interpreted[i].size()});
    pointers.push_back(run[i].data());
  }
  BOLTBEAM_TRY(kernel::Interpret(program, views, 0, 1));
  function(pointers.data(), 0, 1);
  std::uint64_t written = 0, differing = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    for (std::size_t at = 0; at < run[i].size(); at += sizeof(std::uint32_t)) {
      const auto same = [&](const Bytes& a, const Bytes& b) { return std::memcmp(&a[at], &b[at], 4) == 0; };
      const bool is_same = same(run[i], interpreted[i]);
      written += same(interpreted[i], before[i]) && is_same ? 0 : 1;
      differing += is_same ? 0 : 1;
    }
  }
  return written == 0 ? 0 : static_cast<double>(differing) / static_cast<double>(written);
}

}  // namespace boltbeam::engine
