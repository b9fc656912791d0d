#include "search/propose.h"

#include "kernel/space.h"

namespace boltbeam::search {

Proposal ProposeProduct(const Part& part, const chip::Chip& chip, const IsRefuted& is_refuted) {
  Proposal proposal;
  proposal.part = part;
  proposal.free_product = kernel::FreeProduct();
  kernel::Space space = kernel::SpaceOf(*part.format, part.shape(), kernel::SpaceFactsOf(chip));
  for (const kernel::GemvGeometry& point : space.points) {
    if (is_refuted && is_refuted(SubjectOf(part, point, chip.id))) {
      ++proposal.refuted;
    } else {
      proposal.points.push_back(point);
    }
  }
  for (const kernel::RefusedPoints& refused : space.refused) {
    Reject(proposal.rejected, kernel::RefusalName(refused.refusal), refused.evidence, refused.points);
  }
  return proposal;
}

}  // namespace boltbeam::search
