#include "engine/row_space.h"

#include <algorithm>
#include <span>

#include "engine/routes.h"
#include "engine/weights.h"
#include "model/token_graph.h"

namespace boltbeam::engine {
namespace {

using model::Operation;
using model::Role;
using Kind = RowSpace::Kind;

bool IsOfAttention(Role role) { return role == Role::kAttnQ || role == Role::kAttnK || role == Role::kAttnV; }

class Divider {
 public:
  Divider(const model::Model& model, const TableOf& table_of, const Options& options)
      : model_(model), table_of_(table_of), options_(options) {}

  /// Products of one input.
  void Divide(std::span<const Operation> products) {
    for (std::size_t first = 0; first < products.size();) {
      std::size_t last = first + 1;
      Kind kind = Kind::kAlone;
      if (last < products.size() && ArePair(products[first], products[last])) {
        kind = Kind::kPairs;
        ++last;
      } else {
        while (last < products.size() && HaveOneSpace(products[first], products[last])) ++last;
        if (last > first + 1) kind = Kind::kRows;
      }
      Add(kind, products.subspan(first, last - first));
      first = last;
    }
  }

  std::vector<RowSpace> Take() { return std::move(spaces_); }

 private:
  bool IsOn(std::string_view route) const { return IsRouteOn(route, options_.with, options_.without); }

  bool AreAlike(const Operation& a, const Operation& b) const {
    return a.weights->format == b.weights->format && a.cols == b.cols && (a.bias != nullptr) == (b.bias != nullptr) &&
           table_of_(*a.weights).geometry == table_of_(*b.weights).geometry;
  }

  bool ArePair(const Operation& a, const Operation& b) const {
    return IsOn(kGateInRegisters) && a.weights->role == Role::kFfnGate && b.weights->role == Role::kFfnUp &&
           a.rows == b.rows && a.bias == nullptr && AreAlike(a, b);
  }

  bool HaveOneSpace(const Operation& a, const Operation& b) const {
    const auto has_whole_groups = [&](const Operation& operation) {
      return operation.rows % table_of_(*operation.weights).layout.lanes == 0;
    };
    return IsOn(kQkvOneSpace) && IsOfAttention(a.weights->role) && IsOfAttention(b.weights->role) && AreAlike(a, b) &&
           has_whole_groups(a) && has_whole_groups(b);
  }

  void Add(Kind kind, std::span<const Operation> products) {
    RowSpace space;
    space.kind = kind;
    std::int64_t total = 0;
    for (const Operation& product : products) {
      space.tensors.push_back(product.weights);
      total += table_of_(*product.weights).groups();
    }
    space.by_thread = kind != Kind::kRows ||
                      (IsOn(kAttentionByHeads) && HeadsFit(model_, products[0].layer, table_of_, options_.threads));
    std::int64_t before = 0;
    for (const model::Tensor* tensor : space.tensors) {
      const std::int64_t groups = table_of_(*tensor).groups();
      std::vector<runtime::Range>& shares = space.shares.emplace_back();
      for (std::uint32_t thread = 0; thread < options_.threads; ++thread) {
        runtime::Range share = runtime::Share(groups, thread, options_.threads);
        if (!space.by_thread) {
          const runtime::Range whole = runtime::Share(total, thread, options_.threads);
          share = {std::clamp(whole.begin - before, std::int64_t{0}, groups),
                   std::clamp(whole.end - before, std::int64_t{0}, groups)};
        }
        shares.push_back(share);
      }
      before += groups;
    }
    spaces_.push_back(std::move(space));
  }

  const model::Model& model_;
  const TableOf& table_of_;
  const Options& options_;
  std::vector<RowSpace> spaces_;
};

}  // namespace

runtime::Range RowSpace::RangeOf(std::uint32_t thread) const {
  if (kind != Kind::kRows) return shares[0][thread];
  runtime::Range range;
  for (std::uint32_t t = 0; t <= thread; ++t) {
    range.begin = range.end;
    for (const auto& tensor : shares) range.end += tensor[t].end - tensor[t].begin;
  }
  return range;
}

std::vector<RowSpace> RowSpacesOf(const model::Model& model, const TableOf& table_of, const Options& options) {
  Divider divider(model, table_of, options);
  const std::vector<Operation> graph = model::BuildTokenGraph(model, {});
  const auto is_product = [](const Operation& operation) { return operation.kind == model::OpKind::kMatmul; };
  for (auto at = graph.begin(); at != graph.end();) {
    const auto begin = std::find_if(at, graph.end(), is_product);
    at = std::find_if_not(begin, graph.end(), is_product);
    divider.Divide({begin, at});
  }
  return divider.Take();
}

bool HeadsFit(const model::Model& model, std::int32_t layer, const TableOf& table_of, std::uint32_t threads) {
  const model::HyperParameters& hyper = model.hyper();
  const auto has_whole_groups = [&](Role role) {
    return hyper.head_dim % table_of(*model.Find(role, layer)).layout.lanes == 0;
  };
  return hyper.kv_heads % threads == 0 && has_whole_groups(Role::kAttnQ) && has_whole_groups(Role::kAttnK) &&
         has_whole_groups(Role::kAttnV);
}

}  // namespace boltbeam::engine
