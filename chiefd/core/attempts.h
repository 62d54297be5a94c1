// One attempt at a checkpoint, as the chief sees it: the folder is made, each ps has room, the shards cut, their files
// are written, the manifest makes them a checkpoint. One attempt at a time.
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
  Ticket ticket;          // of the folder's work
  std::set<Member> owed;  // kPrepare: of whom an answer is due
  std::string folder;     // its own; from kPrepare on
  Step at;                // sync: the step that is wanted; 0 = now
  bool holds = false;     // the last that is seen of its generation: nothing is applied after the cut
  std::map<ShardId, ShardWritten> written;
  Instant began;
  Instant commit_began;
  Instant deadline;
};

// Why the shards' copies don't make one checkpoint: they must hold the same complete pushes of every living worker
// (I10, I17). None: they do.
std::optional<std::string> difference(const std::map<ShardId, ShardWritten>& written,
                                      const std::vector<Member>& living);

}  // namespace disttrain::chiefd
