// When members of a job were last seen to get on with what takes long: a restore, a data set. Only asks. Limits for
// such work count from then (Heartbeat::work).
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

  // Instant(): it wasn't seen to.
  Instant worked_at(const Tasks& tasks, const Member& member) const;
  // The newest of these.
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
