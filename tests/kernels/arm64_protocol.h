// What the tests and the program that runs kernels for them say to each other, over pipes: 64-bit numbers, and bytes
// with their number in front.
//
//   request: object, number of buffers, each buffer with its guards, begin, end
//   answer:  0 and every buffer, or 1 and why not
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace boltbeam::kernel_tests {

/// False when the other side is gone.
inline bool WriteAll(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

inline bool ReadAll(int file, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::read(file, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

inline bool WriteNumber(int file, std::uint64_t number) { return WriteAll(file, std::as_bytes(std::span(&number, 1))); }
inline bool ReadNumber(int file, std::uint64_t& number) {
  return ReadAll(file, std::as_writable_bytes(std::span(&number, 1)));
}

/// Of std::string or of a vector of bytes.
template <typename Container>
bool WriteBytes(int file, const Container& bytes) {
  return WriteNumber(file, bytes.size()) && WriteAll(file, std::as_bytes(std::span(bytes)));
}
template <typename Container>
bool ReadBytes(int file, Container& bytes) {
  std::uint64_t size = 0;
  if (!ReadNumber(file, size)) return false;
  bytes.resize(size);
  return ReadAll(file, std::as_writable_bytes(std::span(bytes)));
}

}  // namespace boltbeam::kernel_tests
