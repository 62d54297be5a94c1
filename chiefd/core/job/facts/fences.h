// The lost workers that the shards of a generation still have to fence. The chief may lend a lost worker's records
// again only after these answers: every shard says that it takes nothing more from that worker, and the pacer says that
// it has the roster without that worker.
//
//   1. worker/1 is lost. The chief writes roster 4, sends FenceWorker to every ps, and then sends SetRoster to the
//      pacer.
//   2. ps/0 answers for shards 0 and 1, and ps/1 answers for shard 2. Now all shards have answered.
//   3. The pacer answers that roster 4 is in force, and sends its ledger. The chief lends again the records that
//      worker/1 held and that aren't in the ledger.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "chiefd/core/events.h"
#include "common/messages/session.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct Fence {
  Member worker;
  std::set<ShardId> owed;  // the shards that haven't answered
  RosterVersion roster;
  bool roster_applied = false;
  std::optional<Ticket> held;  // the shards are asked when this record is durable
  Instant deadline;            // when the answers are due; set when the shards are asked
};

struct Fences {
  std::vector<Fence> all;

  bool is_fencing(const Member& worker) const {
    return std::any_of(all.begin(), all.end(), [&](const Fence& fence) { return fence.worker == worker; });
  }
  // True if an incarnation of this task is being fenced.
  bool is_fencing_task(TaskId worker) const {
    return std::any_of(all.begin(), all.end(), [&](const Fence& fence) { return fence.worker.task == worker; });
  }
};

}  // namespace disttrain::chiefd
