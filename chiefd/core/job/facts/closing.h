// How far a job that ends has come: which record of its end is durable, and which tasks are still to be told.
#pragma once

#include <vector>

#include "chiefd/core/journal_state.h"
#include "common/messages/session.h"

namespace disttrain::chiefd {

struct ClosingFacts {
  JobState end = JobState::kFinished;  // the state after closing
  bool is_end_written = false;         // the chief tells no task to close before this is true
  Step journaled_step;                 // the step in the EndRecord
  std::vector<Member> to_close;        // ps tasks that are told to close when the workers have closed
};

}  // namespace disttrain::chiefd
