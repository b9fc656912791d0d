#include "audit/compare/between.h"

#include <string>
#include <vector>

#include "audit/compare/matching.h"
#include "base/temporary_folder.h"
#include "measure/statistics.h"
#include "model/skeleton.h"

namespace boltbeam::audit {

Result<Between> MeasureBetween(const Peer& peer, const model::Model& model, const BetweenOptions& options) {
  BOLTBEAM_ASSIGN(const base::TemporaryFolder folder, base::TemporaryFolder::Make());
  const std::string path = (folder.path() / "skeleton.gguf").string();
  BOLTBEAM_ASSIGN(const model::SynthPlan plan, model::PlanSkeleton(model, options.scale));
  model::SynthOptions writing;
  writing.seed = options.seed;
  writing.cancelled = options.cancelled;
  BOLTBEAM_TRY(model::WriteSynth(plan, path, writing));
  BOLTBEAM_ASSIGN(const model::Model skeleton, model::Model::Load(path));
  std::vector<double> windows;
  PartTiming timing;
  timing.depth = options.run.depth;
  timing.positions = options.run.Positions();
  timing.cold_bytes = options.cold_bytes;
  timing.between = [&]() -> Result<void> {
    if (options.cancelled && options.cancelled()) return Fail(Code::kInterrupted, "compare", "Ctrl-C");
    BOLTBEAM_ASSIGN(const PeerWindow window, RunPeerWindow(peer, path, options.run));
    windows.push_back(window.token_ns);
    return {};
  };
  BOLTBEAM_ASSIGN(const std::vector<TimedOperation> operations, PeerOperations(peer, path, timing));
  Between between;
  between.token_ns = measure::Median(windows);
  between.parts_ns = MatchOperations(operations, skeleton, options.run.depth).TotalNs();
  return between;
}

}  // namespace boltbeam::audit
