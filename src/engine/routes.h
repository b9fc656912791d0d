// Fusions that a plan may use. Each can be switched off by name, so that what it is worth can be measured.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace boltbeam::engine {

struct Route {
  std::string_view name;
  std::string_view what;
  std::uint32_t barriers = 0;  // that one use saves
};

inline constexpr std::string_view kAttentionByHeads = "attention-by-heads";
inline constexpr std::string_view kGateByRows = "gate-by-rows";
inline constexpr std::string_view kQuantiseByBlocks = "quantise-by-blocks";

inline constexpr std::string_view kSharedTails = "shared-tails";

inline constexpr std::array<Route, 4> kRoutes = {{
    {kAttentionByHeads,
     "each thread takes its KV heads from the products of q, k and v through RoPE to the end of attention, with no "
     "barrier between; needs as many KV heads for every thread",
     2},
    {kGateByRows, "each thread gates the rows of gate and up that it computed itself, with no barrier between"},
    {kQuantiseByBlocks,
     "each thread quantises the blocks of a product's input that it computed itself, instead of all of them after the "
     "barrier; needs whole blocks for every thread"},
    {kSharedTails,
     "a thread that has finished its share of a product takes over pieces from the end of another's; needs half a "
     "megabyte for every thread, and a barrier right after the product"},
}};

}  // namespace boltbeam::engine
