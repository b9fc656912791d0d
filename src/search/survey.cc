#include "search/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernel/families/attention.h"
#include "kernel/geometry.h"
#include "kernel/knobs.h"
#include "search/attention_space.h"
#include "search/gpu_product.h"

namespace boltbeam::search {
namespace {

constexpr double kListedChanges = 334;    // of a well-known search's fixed list
constexpr int kListedSteps = 4;           // of its walk
constexpr std::uint64_t kGpuSplits = 32;  // parts of the context, the fewest of the flash tile's space
constexpr std::uint64_t kChunk = kernel::AttentionShape().chunk;  // of a CPU's when nobody has searched

/// Fills in everything that a model's parts come to on one chip.
class Surveyor {
 public:
  Surveyor(const model::Model& model, const chip::Chip& chip, const SurveyOptions& options)
      : model_(model), chip_(chip), options_(options), parts_(PartsOf(model)) {
    survey_.chip = chip.id;
    survey_.is_cpu = chip.backend == "cpu";
  }

  Result<Survey> Run() && {
    BOLTBEAM_ASSIGN(routes_, LoadRecordedRoutes());
    for (const Part& part : parts_) {
      if (survey_.is_cpu) {
        BOLTBEAM_TRY(CpuProduct(part));
      } else {
        BOLTBEAM_TRY(GpuProduct(part));
      }
    }
    if (survey_.is_cpu) {
      BOLTBEAM_TRY(CpuAttention());
    } else {
      Flash();
    }
    Counts();
    if (options_.predict) {
      Gains();
      BOLTBEAM_TRY(Fusions());
    }
    survey_.recorded = NotesOn(routes_, parts_, chip_);
    return std::move(survey_);
  }

 private:
  static FamilySurvey Of(const Part& part, const char* family) {
    FamilySurvey row;
    row.role = part.role;
    row.format = part.format->name;
    row.shape = part.ShapeText();
    row.family = family;
    row.table = part.table;
    row.calls = part.calls;
    return row;
  }

  Result<void> CpuProduct(const Part& part) {
    FamilySurvey row = Of(part, "product");
    Proposal proposal = ProposeProduct(part, chip_, options_.is_refuted);
    row.free_product = proposal.free_product;
    row.legal = proposal.legal();
    row.refuted = proposal.refuted;
    row.rejected = proposal.rejected;
    if (options_.predict) {
      BOLTBEAM_ASSIGN(Foresight foresight, PredictProduct(proposal, chip_, options_.threads, options_.coefficients));
      row.predicted = foresight.survivors.size();
      row.closed = foresight.rejected;
      row.floor_ns = foresight.floor_ns;
      const kernel::GemvGeometry usual = kernel::DefaultGeometry(*part.format, part.cols, kernel::VectorFactsOf(chip_));
      if (!foresight.survivors.empty()) row.best = Foretell(foresight.survivors.front());
      if (std::ranges::find(proposal.points, usual) != proposal.points.end()) {
        BOLTBEAM_ASSIGN(const Work work, Counter(part, chip_, options_.threads).Count(usual));
        row.usual = Foretell(search::Foretell(usual, work, options_.coefficients));  // turned away or not
      }
      survey_.foresights.push_back(std::move(foresight));
    }
    survey_.proposals.push_back(std::move(proposal));
    survey_.families.push_back(std::move(row));
    return {};
  }

  static Foretold Foretell(const Prediction& prediction) {
    return {kernel::GeometryText(prediction.geometry), prediction.ns, prediction.low_ns, prediction.high_ns};
  }

  Result<void> GpuProduct(const Part& part) {
    FamilySurvey row = Of(part, "gpu-product");
    KnobSpace space = GpuProductSpace(part, chip_);
    row.free_product = space.free_product;
    row.legal = space.points.size();
    row.rejected = space.rejected;
    row.refuted = DropRefuted(space, part, chip_.id, routes_);
    if (options_.predict) {
      BOLTBEAM_ASSIGN(const GpuForesight foresight, PredictGpuProduct(part, space, chip_));
      row.predicted = foresight.survivors.size();
      row.closed = foresight.rejected;
      row.unknown = foresight.unknown;
      row.floor_ns = foresight.floor_ns;
      const auto foretell = [&](const GpuPrediction& one) {
        return Foretold{space.Text(space.points[one.point]), one.ns, one.low_ns, one.high_ns};
      };
      if (!foresight.survivors.empty()) row.best = foretell(foresight.survivors.front());
      if (foresight.usual) row.usual = foretell(*foresight.usual);
    }
    survey_.families.push_back(std::move(row));
    return {};
  }

  Result<void> CpuAttention() {
    const auto cache = model::CacheFormats{};
    const AttentionPart part = AttentionPartOf(model_, cache, std::max<std::uint64_t>(1, options_.depth));
    const KnobSpace space = AttentionSpace(part, chip_);
    FamilySurvey row = AttentionRow("attention", space);
    if (options_.predict) {
      BOLTBEAM_ASSIGN(const AttentionForesight foresight, PredictAttention(part, space, chip_, options_.threads));
      row.predicted = foresight.survivors.size();
      row.floor_ns = foresight.floor_ns;
      for (const AttentionPrediction& one : foresight.survivors) {
        const KnobPoint& point = space.points[one.point];
        const Foretold foretold{space.Text(point), one.ns, one.low_ns, one.high_ns};
        if (!row.best) row.best = foretold;
        const bool is_usual = space.ValueOf(point, "chunk") == kChunk &&
                              space.ValueOf(point, "lanes") == kernel::VectorFactsOf(chip_).lanes;
        if (is_usual && !row.usual) row.usual = foretold;
      }
    }
    survey_.families.push_back(std::move(row));
    return {};
  }

  FamilySurvey AttentionRow(const char* family, const KnobSpace& space) const {
    const model::HyperParameters& hyper = model_.hyper();
    FamilySurvey row;
    row.role = "attention";
    row.format = "F16";
    row.shape = fmt::format("{}/{}x{}", hyper.heads, hyper.kv_heads, hyper.head_dim);
    row.family = family;
    row.calls = hyper.layers;
    row.free_product = space.free_product;
    row.legal = space.points.size();
    row.rejected = space.rejected;
    return row;
  }

  void Flash() {
    survey_.families.push_back(AttentionRow("flash-tile", FlashSpace(FlashShapeOf(model_, options_.depth), chip_)));
  }

  void Counts() {
    for (const FamilySurvey& row : survey_.families) {
      if (row.legal > 0) survey_.token_log10 += row.calls * std::log10(static_cast<double>(row.legal));
    }
    survey_.beam_log10 = kListedSteps * std::log10(kListedChanges);
  }

  /// What the best foretold point saves of the token, and what the floor leaves at most.
  void Gains() {
    for (const FamilySurvey& row : survey_.families) {
      if (row.usual) survey_.token_ns += row.calls * row.usual->ns;
    }
    if (survey_.token_ns <= 0) return;
    for (FamilySurvey& row : survey_.families) {
      if (!row.usual || !row.best) continue;
      const double calls = row.calls;
      row.gain = calls * (row.usual->ns - row.best->ns) / survey_.token_ns;
      row.gain_bound = calls * std::max(0.0, row.usual->high_ns - row.floor_ns) / survey_.token_ns;
      if (*row.gain_bound < options_.smallest_claim) {
        row.verdict = fmt::format("closed: at most {:.2f} % of the token, the smallest claim is {:.0f} %",
                                  100 * *row.gain_bound, 100 * options_.smallest_claim);
      }
    }
  }

  Result<void> Fusions() {
    BOLTBEAM_ASSIGN(const FusionMachine machine, FusionMachineOf(chip_, options_.threads));
    const std::uint64_t splits = survey_.is_cpu ? (options_.depth + kChunk - 1) / kChunk : kGpuSplits;
    double token_ns = survey_.token_ns;
    if (token_ns <= 0) {
      for (const FamilySurvey& row : survey_.families) token_ns += row.calls * row.floor_ns;
    }
    survey_.fusions = FusionIdeas(LayerGraph(model_, options_.depth, splits), machine, model_.hyper().layers, token_ns,
                                  options_.smallest_claim);
    CloseRefuted(survey_.fusions, parts_, chip_.id, routes_);
    return {};
  }

  const model::Model& model_;
  const chip::Chip& chip_;
  const SurveyOptions& options_;
  std::vector<Part> parts_;
  std::vector<RecordedRoute> routes_;
  Survey survey_;
};

}  // namespace

std::uint64_t FamilySurvey::RejectedPoints() const {
  std::uint64_t points = 0;
  for (const Rejected& one : rejected) points += one.points;
  return points;
}

Result<Survey> SurveyModel(const model::Model& model, const chip::Chip& chip, const SurveyOptions& options) {
  return Surveyor(model, chip, options).Run();
}

}  // namespace boltbeam::search
