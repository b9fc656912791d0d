// The rows of a group while a program is written: one Value for each vector register that they fill.
//
// An operation on Rows is that operation on every register, in order. Rows of a single register stand for all of them:
// so an activation that every row is multiplied by is loaded once.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernel/builder.h"

namespace boltbeam::kernel {

class Rows {
 public:
  Rows() = default;
  Rows(Value all) : registers_{all} {}  // NOLINT(google-explicit-constructor): a value is the same for all rows
  explicit Rows(std::vector<Value> registers) : registers_(std::move(registers)) {}

  [[nodiscard]] std::size_t size() const { return registers_.size(); }
  [[nodiscard]] const Value& at(std::size_t i) const { return registers_[registers_.size() == 1 ? 0 : i]; }
  [[nodiscard]] const std::vector<Value>& registers() const { return registers_; }
  [[nodiscard]] Scalar scalar() const { return registers_.front().type().scalar; }

 private:
  std::vector<Value> registers_;
};

/// Applies `one` to the operands register by register.
template <typename One, typename... Operands>
Rows EachRegister(const One& one, const Operands&... operands) {
  std::vector<Value> results(std::max({operands.size()...}));
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = one(operands.at(i)...);
  return Rows(std::move(results));
}

inline Rows operator+(const Rows& a, const Rows& b) {
  return EachRegister([](Value x, Value y) { return x + y; }, a, b);
}
inline Rows operator-(const Rows& a, const Rows& b) {
  return EachRegister([](Value x, Value y) { return x - y; }, a, b);
}
inline Rows operator*(const Rows& a, const Rows& b) {
  return EachRegister([](Value x, Value y) { return x * y; }, a, b);
}
inline Rows operator&(const Rows& a, const Rows& b) {
  return EachRegister([](Value x, Value y) { return x & y; }, a, b);
}
inline Rows operator|(const Rows& a, const Rows& b) {
  return EachRegister([](Value x, Value y) { return x | y; }, a, b);
}
inline Rows operator^(const Rows& a, const Rows& b) {
  return EachRegister([](Value x, Value y) { return x ^ y; }, a, b);
}
inline Rows operator-(const Rows& a, std::int64_t b) {
  return EachRegister([b](Value x) { return x - b; }, a);
}
inline Rows Shl(const Rows& a, std::int32_t bits) {
  return EachRegister([bits](Value x) { return Shl(x, bits); }, a);
}
inline Rows Shr(const Rows& a, std::int32_t bits) {
  return EachRegister([bits](Value x) { return Shr(x, bits); }, a);
}
inline Rows ToF32(const Rows& a) {
  return EachRegister([](Value x) { return ToF32(x); }, a);
}
inline Rows Fma(const Rows& a, const Rows& b, const Rows& c) {
  return EachRegister([](Value x, Value y, Value z) { return Fma(x, y, z); }, a, b, c);
}
inline Rows Dot4Signed(const Rows& sum, const Rows& a, const Rows& b) {
  return EachRegister([](Value s, Value x, Value y) { return Dot4Signed(s, x, y); }, sum, a, b);
}
inline Rows Dot4(const Rows& sum, const Rows& a, const Rows& b) {
  return EachRegister([](Value s, Value x, Value y) { return Dot4(s, x, y); }, sum, a, b);
}
inline Rows MaddBytes(const Rows& a, const Rows& b) {
  return EachRegister([](Value x, Value y) { return MaddBytes(x, y); }, a, b);
}
inline Rows MaddHalves(const Rows& a, const Rows& b) {
  return EachRegister([](Value x, Value y) { return MaddHalves(x, y); }, a, b);
}
inline Rows AddHalves(const Rows& a, const Rows& b) {
  return EachRegister([](Value x, Value y) { return AddHalves(x, y); }, a, b);
}

}  // namespace boltbeam::kernel
