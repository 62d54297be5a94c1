#include "chiefd/core/job/facts/stage.h"

namespace disttrain::chiefd {

void StageWait::await(Instant now, const std::vector<Member>& who, Instant deadline) {
  since_ = now;
  awaited_ = std::set<Member>(who.begin(), who.end());
  deadline_ = deadline;
}

void StageWait::postpone_deadline(Duration by) {
  if (deadline_) *deadline_ += by;
}

}  // namespace disttrain::chiefd
