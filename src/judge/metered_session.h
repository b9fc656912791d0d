// A session that counts the time spent inside it, whatever is called: what no window's timer saw shows here.
#pragma once

#include "engine/engine.h"

namespace boltbeam::judge {

class MeteredSession final : public engine::Session {
 public:
  /// inner must outlive it.
  explicit MeteredSession(engine::Session& inner) : inner_(inner) {}

  /// Time stamp counter's ticks inside the session so far, over every entry point.
  [[nodiscard]] std::uint64_t ticks() const { return ticks_; }

  std::uint64_t depth() const override;
  Result<void> Prompt(std::span<const std::int32_t> tokens,
                      const std::function<void(std::size_t, std::span<const float>)>& each) override;
  Result<void> Decode(std::int32_t token, engine::Trace* trace) override;
  std::span<const float> logits() const override;
  void KeepLogits(bool keep) override;
  std::int32_t argmax() const override;
  Result<engine::AloneTimes> RunAlone(const engine::Alone& alone) override;
  Result<void> Truncate(std::uint64_t depth) override;

 private:
  engine::Session& inner_;
  mutable std::uint64_t ticks_ = 0;
};

}  // namespace boltbeam::judge
