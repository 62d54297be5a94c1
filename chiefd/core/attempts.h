// The chief's state of one attempt to take a checkpoint. job/checkpointing.h has the phases.
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
  Ticket ticket;          // of the FolderWork under way
  std::set<Member> owed;  // kPrepare: the ps tasks that haven't answered
  std::string folder;     // the attempt's own; set from kPrepare on
  Step at;                // sync: the step to cut at; 0: now
  bool holds = false;     // the shards apply nothing after the cut
  std::map<ShardId, ShardWritten> written;
  Instant began;
  Instant commit_began;
  Instant deadline;
};

// Why the shards' copies don't make one checkpoint: all must hold the same complete pushes of every living worker (I10,
// I17). None: they do.
std::optional<std::string> difference(const std::map<ShardId, ShardWritten>& written,
                                      const std::vector<Member>& living);

}  // namespace disttrain::chiefd
