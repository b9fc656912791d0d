// Fusions that a plan may take, by name: the rows of data/routes/routes.json. Each can be switched off, so that what it
// is worth can be measured.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace boltbeam::engine {

struct Route {
  std::string name;
  std::string does, needs;
  bool bitwise = false;      // the same numbers to the last bit with it and without
  bool on = false;           // taken when nobody asks
  std::string refuted;       // why it is off, with figures
  bool saves_waits = false;  // what it saves is what threads wait for each other, no more; else: what plans differ in
  std::string in_place_of;   // a route that is not taken where this one is
};

/// In the registry's order. Every constant below has a row, and every row a constant: routes_test.
std::span<const Route> Routes();
const Route* FindRoute(std::string_view name);

/// Whether a plan may take the route: what was asked for, else what the row says. Off wins over on.
bool IsRouteOn(std::string_view name, const std::vector<std::string>& with, const std::vector<std::string>& without);

inline constexpr std::string_view kNormInConsumer = "norm-in-consumer";
inline constexpr std::string_view kAttentionByHeads = "attention-by-heads";
inline constexpr std::string_view kGateByRows = "gate-by-rows";
inline constexpr std::string_view kGateInRegisters = "gate-in-registers";
inline constexpr std::string_view kQkvOneSpace = "qkv-one-space";
inline constexpr std::string_view kArgmaxInVocabulary = "argmax-in-vocabulary";
inline constexpr std::string_view kQuantiseByBlocks = "quantise-by-blocks";
inline constexpr std::string_view kResidualInEpilogue = "residual-in-epilogue";
inline constexpr std::string_view kSharedTails = "shared-tails";

}  // namespace boltbeam::engine
