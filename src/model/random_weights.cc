#include "model/random_weights.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace boltbeam::model {
namespace {

constexpr std::uint64_t kPoolElements = 1 << 18;
constexpr std::uint64_t kMostStretch = 256;  // elements: a row of any shape is made of many stretches
constexpr std::uint64_t kBufferBytes = 4 << 20;

}  // namespace

std::uint64_t RandomBits::Next() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

float RandomBits::Normal() {
  // Four uniform 16-bit integers have the sum's deviation 2^16 / sqrt(3).
  constexpr float kScale = 1.7320508F / 65536.0F;
  const std::uint64_t bits = Next();
  const auto sum =
      static_cast<std::int32_t>((bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) + ((bits >> 32) & 0xFFFF) + (bits >> 48));
  return static_cast<float>(sum - 131070) * kScale;
}

float RandomBits::Uniform() { return static_cast<float>(static_cast<std::int64_t>(Next()) >> 40) / 8388608.0F; }

Result<std::vector<std::byte>> RandomWeights::Draw(std::uint64_t elements) {
  std::vector<float> values(elements);
  for (float& value : values) value = bits_.Normal() * static_cast<float>(deviation_);
  std::vector<std::byte> bytes(elements / format_->elements * format_->bytes);
  BOLTBEAM_TRY(formats::Quantize(*format_, values, bytes));
  return bytes;
}

Result<void> RandomWeights::Start(std::uint64_t index, const formats::Format& format, std::uint64_t columns,
                                  std::uint64_t elements, double deviation) {
  format_ = &format;
  deviation_ = deviation;
  left_elements_ = elements;
  stretch_elements_ = std::max<std::uint64_t>(std::gcd(columns, kMostStretch), format.elements);
  stretch_bytes_ = stretch_elements_ / format.elements * format.bytes;
  bits_ = RandomBits(seed_ * 0x2545F4914F6CDD1DULL + index);
  pool_ = nullptr;
  if (elements <= kPoolElements) return {};
  std::vector<std::byte>& pool = pools_[PoolKey(format_, stretch_elements_, deviation)];
  if (pool.empty()) {
    BOLTBEAM_ASSIGN(pool, Draw(kPoolElements / stretch_elements_ * stretch_elements_));
  }
  pool_ = &pool;
  return {};
}

Result<std::span<const std::byte>> RandomWeights::Next() {
  if (left_elements_ == 0) return std::span<const std::byte>();
  if (pool_ == nullptr) {
    BOLTBEAM_ASSIGN(buffer_, Draw(left_elements_));
    left_elements_ = 0;
    return std::span<const std::byte>(buffer_);
  }
  const std::uint64_t stretches =
      std::min(left_elements_ / stretch_elements_, std::max<std::uint64_t>(kBufferBytes / stretch_bytes_, 1));
  const std::uint64_t choices = pool_->size() / stretch_bytes_;
  buffer_.resize(stretches * stretch_bytes_);
  for (std::uint64_t i = 0; i < stretches; ++i) {
    // The high bits of a 32-bit draw, scaled: no division.
    const std::uint64_t choice = ((bits_.Next() >> 32) * choices) >> 32;
    std::memcpy(buffer_.data() + i * stretch_bytes_, pool_->data() + choice * stretch_bytes_, stretch_bytes_);
  }
  left_elements_ -= stretches * stretch_elements_;
  return std::span<const std::byte>(buffer_);
}

}  // namespace boltbeam::model
