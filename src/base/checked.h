// Arithmetic that says when it overflows: every quantity derived from a file goes through here.
#pragma once

#include <concepts>
#include <optional>

namespace boltbeam {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> CheckedAdd(T a, T b) {
  T result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> CheckedMul(T a, T b) {
  T result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// The smallest multiple of alignment (> 0) that is >= n.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> CheckedAlignUp(T n, T alignment) {
  const T over = n % alignment;
  return over == 0 ? std::optional<T>(n) : CheckedAdd<T>(n, alignment - over);
}

/// n rounded up to a multiple of alignment, for values that are known to fit.
template <std::integral T>
[[nodiscard]] constexpr T AlignUp(T n, T alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

template <std::integral T>
[[nodiscard]] constexpr T CeilDiv(T n, T divisor) {
  return (n + divisor - 1) / divisor;
}

}  // namespace boltbeam
