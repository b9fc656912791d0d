#include "judge/metered_session.h"

#include "base/ticks.h"

namespace boltbeam::judge {
namespace {

class Stay {
 public:
  explicit Stay(std::uint64_t& ticks) : ticks_(ticks), begin_(base::Ticks()) {}
  ~Stay() { ticks_ += base::Ticks() - begin_; }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

 private:
  std::uint64_t& ticks_;
  std::uint64_t begin_;
};

}  // namespace

std::uint64_t MeteredSession::depth() const {
  const Stay stay(ticks_);
  return inner_.depth();
}

Result<void> MeteredSession::Prompt(std::span<const std::int32_t> tokens,
                                    const std::function<void(std::size_t, std::span<const float>)>& each) {
  const Stay stay(ticks_);
  return inner_.Prompt(tokens, each);
}

Result<void> MeteredSession::Decode(std::int32_t token, engine::Trace* trace) {
  const Stay stay(ticks_);
  return inner_.Decode(token, trace);
}

std::span<const float> MeteredSession::logits() const {
  const Stay stay(ticks_);
  return inner_.logits();
}

void MeteredSession::KeepLogits(bool keep) {
  const Stay stay(ticks_);
  inner_.KeepLogits(keep);
}

std::int32_t MeteredSession::argmax() const {
  const Stay stay(ticks_);
  return inner_.argmax();
}

Result<engine::AloneTimes> MeteredSession::RunAlone(const engine::Alone& alone) {
  const Stay stay(ticks_);
  return inner_.RunAlone(alone);
}

Result<void> MeteredSession::Truncate(std::uint64_t depth) {
  const Stay stay(ticks_);
  return inner_.Truncate(depth);
}

}  // namespace boltbeam::judge
