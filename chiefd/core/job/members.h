// Says which tasks belong to a job: the ps tasks that own its shards, its workers, and the invited workers. Changes
// nothing.
#pragma once

#include <vector>

#include "chiefd/core/tasks.h"
#include "common/messages/session.h"

namespace disttrain::chiefd {

class Candidates;
class GenerationPlan;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class JobMembers {
 public:
  explicit JobMembers(const JobParts& parts);

  // True if the member owns a shard, or is a worker that isn't lost.
  bool uses(const Member& member) const;
  // All owners of shards, all workers of this generation (also lost ones), and all invited workers. Each is listed
  // once.
  std::vector<Member> all() const;
  // True if this worker was removed before the chief was restarted. Such a worker says that it holds the current
  // generation, but isn't one of the job's workers. It can join only as another process.
  bool was_removed_before(const Tasks& tasks, const Member& worker) const;

 private:
  const JobSetup& setup_;
  const StageWait& stage_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Candidates& candidates_;
};

}  // namespace disttrain::chiefd
