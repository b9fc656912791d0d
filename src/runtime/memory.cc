#include "runtime/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "base/checked.h"

namespace boltbeam::runtime {
namespace {

constexpr std::uint64_t kHugePage = 2ULL << 20;

}  // namespace

Result<HugeBuffer> HugeBuffer::Allocate(std::uint64_t bytes) {
  const auto rounded = CheckedAlignUp<std::uint64_t>(bytes == 0 ? 1 : bytes, kHugePage);
  const auto mapped = rounded ? CheckedAdd<std::uint64_t>(*rounded, kHugePage) : std::nullopt;
  void* mapping = MAP_FAILED;
  if (mapped) mapping = ::mmap(nullptr, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return Fail(Code::kOutOfMemory, "memory",
                fmt::format("{} bytes can't be allocated: {}", bytes, std::strerror(errno)),
                "a smaller model or context (-c)");
  }
  HugeBuffer buffer;
  buffer.mapping_ = mapping;
  buffer.mapped_ = *mapped;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  buffer.data_ = static_cast<std::byte*>(mapping) + (AlignUp<std::uintptr_t>(address, kHugePage) - address);
  buffer.bytes_ = bytes;
  ::madvise(buffer.data_, *rounded, MADV_HUGEPAGE);  // a wish: without huge pages everything still works
  return buffer;
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept { *this = std::move(other); }

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

HugeBuffer::~HugeBuffer() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
}

std::uint64_t HugeBuffer::HugePageBytes() const {
  if (mapping_ == nullptr) return 0;
  const auto first = reinterpret_cast<std::uintptr_t>(mapping_);
  const std::uintptr_t last = first + mapped_;
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  std::uint64_t total = 0;
  while (std::getline(smaps, line)) {
    unsigned long begin = 0, end = 0, kilobytes = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      inside = begin >= first && end <= last;
    } else if (inside && std::sscanf(line.c_str(), "AnonHugePages: %lu kB", &kilobytes) == 1) {
      total += std::uint64_t{kilobytes} * 1024;
    }
  }
  return total;
}

}  // namespace boltbeam::runtime
