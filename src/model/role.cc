#include <array>

#include "model/model.h"
#include "model/token_graph.h"

namespace boltbeam::model {
namespace {

struct RoleRow {
  Role role;
  std::string_view name;
  std::string_view part;
};

// In the order of the enumeration, which the assertion below checks.
constexpr std::array kRoles = {
    RoleRow{Role::kEmbedding, "embedding", "embed"},
    RoleRow{Role::kAttnNorm, "attn_norm", "norm"},
    RoleRow{Role::kAttnQ, "attn_q", "attn_qo"},
    RoleRow{Role::kAttnK, "attn_k", "attn_kv"},
    RoleRow{Role::kAttnV, "attn_v", "attn_kv"},
    RoleRow{Role::kAttnQBias, "attn_q_bias", "bias"},
    RoleRow{Role::kAttnKBias, "attn_k_bias", "bias"},
    RoleRow{Role::kAttnVBias, "attn_v_bias", "bias"},
    RoleRow{Role::kAttnQNorm, "attn_q_norm", "norm"},
    RoleRow{Role::kAttnKNorm, "attn_k_norm", "norm"},
    RoleRow{Role::kAttnOutput, "attn_output", "attn_qo"},
    RoleRow{Role::kAttnPostNorm, "attn_post_norm", "norm"},
    RoleRow{Role::kFfnNorm, "ffn_norm", "norm"},
    RoleRow{Role::kFfnGate, "ffn_gate", "ffn_gate_up"},
    RoleRow{Role::kFfnUp, "ffn_up", "ffn_gate_up"},
    RoleRow{Role::kFfnDown, "ffn_down", "ffn_down"},
    RoleRow{Role::kFfnPostNorm, "ffn_post_norm", "norm"},
    RoleRow{Role::kOutputNorm, "output_norm", "norm"},
    RoleRow{Role::kHead, "head", "lm_head"},
    RoleRow{Role::kRopeFrequencies, "rope_frequencies", "rope"},
};

constexpr bool InOrder() {
  for (std::size_t i = 0; i < kRoles.size(); ++i) {
    if (kRoles[i].role != static_cast<Role>(i)) return false;
  }
  return kRoles.size() == static_cast<std::size_t>(Role::kRopeFrequencies) + 1;
}
static_assert(InOrder());

}  // namespace

std::string_view RoleName(Role role) { return kRoles[static_cast<std::size_t>(role)].name; }

std::optional<Role> FindRole(std::string_view name) {
  for (const RoleRow& row : kRoles) {
    if (row.name == name) return row.role;
  }
  return std::nullopt;
}

std::string_view PartOfRole(Role role) { return kRoles[static_cast<std::size_t>(role)].part; }

}  // namespace boltbeam::model
