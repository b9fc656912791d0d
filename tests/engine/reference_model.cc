#include "engine/reference_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace boltbeam::engine {

using model::Role;

ReferenceModel::ReferenceModel(const model::Model& model, const Mistakes& mistakes)
    : model_(model), mistakes_(mistakes) {}

const ReferenceModel::Vector& ReferenceModel::Weights(const model::Tensor& tensor) {
  Vector& values = cache_[&tensor];
  if (!values.empty()) return values;
  std::vector<std::byte> bytes(tensor.info->bytes);
  values.resize(tensor.info->elements);
  if (!model_.file().Read(tensor.info->file_offset, bytes) || !formats::Dequantize(*tensor.format, bytes, values)) {
    std::ranges::fill(values, std::nan(""));
  }
  return values;
}

ReferenceModel::Vector ReferenceModel::Multiply(const model::Tensor& tensor, const Vector& x,
                                                const model::Tensor* bias) {
  const Vector& weights = Weights(tensor);
  const bool is_shifted = mistakes_.shifted_head && &tensor == &model_.head();
  Vector y(tensor.rows());
  for (std::size_t row = 0; row < y.size(); ++row) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t column = is_shifted && k < 32 ? (k + 1) % 32 : k;
      y[row] += weights[row * x.size() + column] * x[k];
    }
    if (bias != nullptr) y[row] += Weights(*bias)[row];
  }
  return y;
}

ReferenceModel::Vector ReferenceModel::Normalised(const Vector& x, const model::Tensor& weight, std::size_t first,
                                                  std::size_t count) {
  double squares = 0;
  for (std::size_t i = first; i < first + count; ++i) squares += x[i] * x[i];
  const double factor = 1 / std::sqrt(squares / static_cast<double>(count) + model_.hyper().rms_epsilon);
  Vector y(count);
  for (std::size_t i = 0; i < count; ++i) y[i] = x[first + i] * factor * Weights(weight)[i];
  return y;
}

// All layers but every n-th look back a window only.
bool ReferenceModel::IsLocal(std::uint32_t layer) const {
  const model::HyperParameters& h = model_.hyper();
  return h.sliding_window > 0 && (layer + 1) % h.sliding_window_pattern != 0;
}

double ReferenceModel::Activated(double x) const {
  const bool is_gelu = (model_.architecture().activation == model::Activation::kGelu) != mistakes_.other_activation;
  if (!is_gelu) return x / (1 + std::exp(-x));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

void ReferenceModel::Rotate(Vector& heads, std::size_t position, std::uint32_t layer) const {
  const model::HyperParameters& h = model_.hyper();
  const bool neox = (model_.architecture().rope == model::RopeKind::kNeox) != mistakes_.other_rope_kind;
  const std::size_t half = h.rope_dims / 2;
  for (std::size_t head = 0; head < heads.size(); head += h.head_dim) {
    for (std::size_t i = 0; i < half; ++i) {
      const bool is_local = IsLocal(layer) && !mistakes_.one_rope_base;
      const double base = (is_local ? h.local_rope_base : h.rope_base) * mistakes_.rope_base_factor;
      const double angle = static_cast<double>(position) * std::pow(base, -2.0 * static_cast<double>(i) / h.rope_dims);
      double& a = heads[head + (neox ? i : 2 * i)];
      double& b = heads[head + (neox ? i + half : 2 * i + 1)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
}

ReferenceModel::Vector ReferenceModel::Attend(std::int32_t layer, const Vector& query) const {
  const model::HyperParameters& h = model_.hyper();
  const std::vector<Vector>& keys = keys_.at(layer);
  const std::vector<Vector>& values = values_.at(layer);
  const std::size_t seen = h.sliding_window + (mistakes_.wider_window ? 1 : 0);
  const std::size_t first = IsLocal(static_cast<std::uint32_t>(layer)) && keys.size() > seen ? keys.size() - seen : 0;
  Vector out(std::size_t{h.heads} * h.head_dim);
  for (std::size_t head = 0; head < h.heads; ++head) {
    const std::size_t kv = head / (h.heads / h.kv_heads) * h.head_dim;
    Vector scores;
    for (std::size_t p = first; p < keys.size(); ++p) {
      double score = 0;
      for (std::size_t d = 0; d < h.head_dim; ++d) score += query[head * h.head_dim + d] * keys[p][kv + d];
      scores.push_back(score * h.attention_scale);
    }
    const double top = *std::ranges::max_element(scores);
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - top);
    for (std::size_t p = 0; p < scores.size(); ++p) {
      for (std::size_t d = 0; d < h.head_dim; ++d)
        out[head * h.head_dim + d] += scores[p] / sum * values[first + p][kv + d];
    }
  }
  return out;
}

std::vector<double> ReferenceModel::Append(std::int32_t token) {
  const model::HyperParameters& h = model_.hyper();
  const auto tensor = [&](Role role, std::int32_t layer) -> const model::Tensor& { return *model_.Find(role, layer); };
  const Vector& table = Weights(tensor(Role::kEmbedding, -1));
  Vector x(table.begin() + std::ptrdiff_t{token} * h.hidden, table.begin() + (std::ptrdiff_t{token} + 1) * h.hidden);
  if (model_.architecture().scale_embedding && !mistakes_.plain_embedding) {
    for (double& value : x) value *= std::sqrt(static_cast<double>(h.hidden));
  }
  const auto add = [&](Vector y, Role post_norm, std::int32_t layer) {
    const bool is_normed = model_.architecture().post_norms && !mistakes_.no_post_norms;
    if (is_normed) y = Normalised(y, tensor(post_norm, layer), 0, y.size());
    std::ranges::transform(x, y, x.begin(), std::plus());
  };
  for (std::int32_t layer = 0; layer < static_cast<std::int32_t>(h.layers); ++layer) {
    Vector y = Normalised(x, tensor(Role::kAttnNorm, layer), 0, x.size());
    Vector query = Multiply(tensor(Role::kAttnQ, layer), y, model_.Find(Role::kAttnQBias, layer));
    Vector key = Multiply(tensor(Role::kAttnK, layer), y, model_.Find(Role::kAttnKBias, layer));
    Vector value = Multiply(tensor(Role::kAttnV, layer), y, model_.Find(Role::kAttnVBias, layer));
    if (model_.architecture().qk_norm) {
      for (auto [heads, role] : {std::pair(&query, Role::kAttnQNorm), std::pair(&key, Role::kAttnKNorm)}) {
        for (std::size_t first = 0; first < heads->size(); first += h.head_dim) {
          std::ranges::copy(Normalised(*heads, tensor(role, layer), first, h.head_dim),
                            heads->begin() + static_cast<std::ptrdiff_t>(first));
        }
      }
    }
    Rotate(query, position_, static_cast<std::uint32_t>(layer));
    Rotate(key, position_, static_cast<std::uint32_t>(layer));
    keys_[layer].push_back(key);
    values_[layer].push_back(value);
    add(Multiply(tensor(Role::kAttnOutput, layer), Attend(layer, query)), Role::kAttnPostNorm, layer);
    y = Normalised(x, tensor(Role::kFfnNorm, layer), 0, x.size());
    Vector gate = Multiply(tensor(Role::kFfnGate, layer), y);
    const Vector up = Multiply(tensor(Role::kFfnUp, layer), y);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = Activated(gate[i]) * up[i];
    add(Multiply(tensor(Role::kFfnDown, layer), gate), Role::kFfnPostNorm, layer);
  }
  ++position_;
  return Multiply(model_.head(), Normalised(x, tensor(Role::kOutputNorm, -1), 0, x.size()));
}

double Divergence(std::span<const double> base, std::span<const float> logits) {
  const auto log_sum = [](auto row) {
    const double top = *std::ranges::max_element(row);
    double sum = 0;
    for (const double value : row) sum += std::exp(value - top);
    return top + std::log(sum);
  };
  const double base_sum = log_sum(base);
  const double sum = log_sum(logits);
  double divergence = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    const double log_p = base[i] - base_sum;
    divergence += std::exp(log_p) * (log_p - (logits[i] - sum));
  }
  return divergence;
}

}  // namespace boltbeam::engine
