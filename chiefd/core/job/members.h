// Which tasks belong to a job: its owners, its workers and the invited workers. Queries only.
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

  // The member owns a shard, or is a worker that isn't lost.
  bool uses(const Member& member) const;
  // Owners, workers of this generation, and those that are invited, each once.
  std::vector<Member> all() const;
  // A former chief removed this worker: it holds the current generation but isn't in it. The same incarnation can't
  // come back.
  bool was_removed_before(const Tasks& tasks, const Member& worker) const;

 private:
  const JobSetup& setup_;
  const StageWait& stage_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Candidates& candidates_;
};

}  // namespace disttrain::chiefd
