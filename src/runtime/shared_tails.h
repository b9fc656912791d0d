// The ends of the threads' shares of a step, cut into pieces that whoever comes first takes.
//
// Shares are equal, but threads are not: another program, the hypervisor or the distance to a memory slows one of them
// for some microseconds, and all others would wait. The owner takes the pieces of its tail from the front, so that it
// goes on reading upwards; who has finished takes from the back.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

namespace boltbeam::runtime {

class SharedTails {
 public:
  static constexpr std::uint32_t kMostPieces = 0xFFFF;

  explicit SharedTails(std::uint32_t threads) : tails_(threads) {}

  /// Offers `pieces` of a thread's share. `turn` tells this step from earlier ones: who comes late takes nothing of it.
  void Offer(std::uint32_t owner, std::uint32_t turn, std::uint32_t pieces) {
    tails_[owner].state.store(std::uint64_t{turn} << 32 | std::uint64_t{pieces} << 16, std::memory_order_release);
  }
  /// The next piece from the front, for the owner.
  std::optional<std::uint32_t> TakeFront(std::uint32_t owner, std::uint32_t turn) {
    return Take(owner, turn, [](std::uint64_t state) { return state + 1; }, [](std::uint64_t s) { return Front(s); });
  }
  /// The last piece, for the others; nothing when the owner has not offered this step's yet.
  std::optional<std::uint32_t> TakeBack(std::uint32_t owner, std::uint32_t turn) {
    return Take(
        owner, turn, [](std::uint64_t state) { return state - (1U << 16); },
        [](std::uint64_t state) { return Back(state) - 1; });
  }

 private:
  struct alignas(64) Tail {
    std::atomic<std::uint64_t> state{0};  // turn, one past the last piece, first piece
  };
  static std::uint32_t Front(std::uint64_t state) { return state & 0xFFFF; }
  static std::uint32_t Back(std::uint64_t state) { return state >> 16 & 0xFFFF; }

  template <typename Next, typename Piece>
  std::optional<std::uint32_t> Take(std::uint32_t owner, std::uint32_t turn, Next next, Piece piece) {
    std::atomic<std::uint64_t>& tail = tails_[owner].state;
    std::uint64_t state = tail.load(std::memory_order_acquire);
    while (state >> 32 == turn && Front(state) < Back(state)) {
      if (tail.compare_exchange_weak(state, next(state), std::memory_order_acq_rel)) return piece(state);
    }
    return std::nullopt;
  }

  std::vector<Tail> tails_;
};

}  // namespace boltbeam::runtime
