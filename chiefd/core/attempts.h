// The state of one attempt to take a checkpoint, as the chief keeps it. job/flow/checkpoints.cc describes the phases.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/events.h"
#include "common/messages/checkpoint.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct Attempt {
  enum class Phase { kBegin, kPrepare, kCut, kCommit };
  std::uint64_t number = 0;
  Phase phase = Phase::kBegin;
  Ticket ticket;          // the ticket of the FolderWork that the attempt waits for
  std::set<Member> owed;  // in kPrepare: the ps tasks that haven't answered yet
  std::string folder;     // the attempt's own folder, which exists from kPrepare on
  Step at;                // in sync: the step at which the pacer cuts; 0: at once
  bool holds = false;     // true: the shards apply nothing after the cut
  std::map<ShardId, ShardWritten> written;
  Instant began;
  Instant commit_began;
  Instant deadline;
};

// Why the copies that the shards have written don't make one checkpoint. In a checkpoint, all copies contain the same
// pushes of every living worker (I17), and no copy contains only a part of a push (I10). None: the copies make one
// checkpoint.
std::optional<std::string> difference(const std::map<ShardId, ShardWritten>& written,
                                      const std::vector<Member>& living);

}  // namespace disttrain::chiefd
