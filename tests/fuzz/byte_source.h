// Turns the bytes that a fuzzer makes into choices. When they run out, every choice is the first one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace boltbeam::fuzz {

class ByteSource {
 public:
  ByteSource(const std::uint8_t* data, std::size_t size) : bytes_(reinterpret_cast<const char*>(data), size) {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }

  template <typename T>
  T Number() {
    T value{};
    const std::size_t count = bytes_.size() < sizeof value ? bytes_.size() : sizeof value;
    if (count > 0) std::memcpy(&value, bytes_.data(), count);
    bytes_.remove_prefix(count);
    return value;
  }

  /// From 0 to limit - 1; limit at most 256.
  std::uint32_t Below(std::uint32_t limit) { return Number<std::uint8_t>() % limit; }
  bool OneIn(std::uint32_t count) { return !empty() && Below(count) == count - 1; }

  /// A number that is often small and often at an edge of its type.
  std::uint64_t Count() {
    switch (Below(8)) {
      case 0:
        return Number<std::uint64_t>();
      case 1:
        return std::uint64_t{1} << Below(64);
      case 2:
        return (std::uint64_t{1} << Below(64)) - 1;
      case 3:
        return ~std::uint64_t{0} - Below(64);
      case 4:
        return 32 * Below(64);
      default:
        return Below(40);
    }
  }

  std::string_view Text(std::size_t limit) {
    const std::string_view text = bytes_.substr(0, Below(256) % (limit + 1));
    bytes_.remove_prefix(text.size());
    return text;
  }

  [[nodiscard]] std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

}  // namespace boltbeam::fuzz
