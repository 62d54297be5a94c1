// Stores which tasks of a job are back after a restart of the chief, and how long the chief waits for the others.
#pragma once

#include <set>
#include <string>

#include "common/messages/session.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct ReclaimFacts {
  std::set<Member> back;              // the tasks that have said hello with this generation
  std::set<std::string> told_to_end;  // such as "worker/1". If the task is gone, this doesn't count as a loss
  Instant workers_until;              // at this time the job goes on without the missing workers
  // Until this time a generation begins only with all workers of the cluster file: the first one that is back may be
  // one that can't take part.
  Instant waits_for_workers_until;

  bool is_back(const Member& member) const { return back.count(member) != 0; }
};

}  // namespace disttrain::chiefd
