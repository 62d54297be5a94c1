// Says when members of a job last made progress with long work, such as a restore or reading a data set
// (Heartbeat::work). The time limits for such work start from then. Changes nothing.
#pragma once

#include <algorithm>
#include <vector>

#include "chiefd/core/tasks.h"
#include "common/messages/session.h"
#include "common/time.h"

namespace disttrain::chiefd {

class GenerationPlan;
struct JobParts;
struct JobSetup;

class WorkClock {
 public:
  explicit WorkClock(const JobParts& parts);

  // When the member last made progress. Instant() if the chief has seen no progress.
  Instant worked_at(const Tasks& tasks, const Member& member) const;
  // The newest worked_at() of the members.
  template <typename Members>
  Instant newest_work(const Tasks& tasks, const Members& members) const {
    Instant newest;
    for (const Member& member : members) newest = std::max(newest, worked_at(tasks, member));
    return newest;
  }

 private:
  const JobSetup& setup_;
  const GenerationPlan& generation_;
};

}  // namespace disttrain::chiefd
