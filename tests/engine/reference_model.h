// A dense decoder's forward pass in double precision, written plainly: the oracle that the engine is checked against.
// It shares no arithmetic with the engine: weights come from the reference dequantizer, sums are plain loops.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "model/model.h"

namespace boltbeam::engine {

/// What the negative controls get wrong on purpose.
struct Mistakes {
  bool other_rope_kind = false;
  double rope_base_factor = 1;
  bool shifted_head = false;   // the head's rows are read with the first 32 elements rotated by one
  bool wider_window = false;   // local layers see one position more
  bool one_rope_base = false;  // local layers rotate as the others do
  bool no_post_norms = false;
  bool other_activation = false;
  bool plain_embedding = false;  // not scaled
};

class ReferenceModel {
 public:
  explicit ReferenceModel(const model::Model& model, const Mistakes& mistakes = {});
  /// Logits of the last of the tokens appended so far.
  std::vector<double> Append(std::int32_t token);

 private:
  using Vector = std::vector<double>;
  const Vector& Weights(const model::Tensor& tensor);
  Vector Multiply(const model::Tensor& tensor, const Vector& x, const model::Tensor* bias = nullptr);
  Vector Normalised(const Vector& x, const model::Tensor& weight, std::size_t first, std::size_t count);
  void Rotate(Vector& heads, std::size_t position, std::uint32_t layer) const;
  double Activated(double x) const;
  bool IsLocal(std::uint32_t layer) const;
  Vector Attend(std::int32_t layer, const Vector& query) const;

  const model::Model& model_;
  const Mistakes mistakes_;
  std::map<const model::Tensor*, Vector> cache_;
  std::map<std::int32_t, std::vector<Vector>> keys_, values_;
  std::size_t position_ = 0;
};

/// KL divergence of the distributions that two rows of logits stand for, in nats.
double Divergence(std::span<const double> base, std::span<const float> logits);

}  // namespace boltbeam::engine
