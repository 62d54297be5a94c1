// Who belongs to a job, by all that is known of its owners, its workers and those that are asked to come. Only asks.
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

  // It owns a shard, or is a worker that isn't lost.
  bool uses(const Member& member) const;
  // Owners, workers of this generation, and those that are invited, each once.
  std::vector<Member> all() const;
  // It holds this generation and isn't in it: a chief before has removed it. As the same incarnation it can't come
  // back.
  bool was_removed_before(const Tasks& tasks, const Member& worker) const;

 private:
  const JobSetup& setup_;
  const StageWait& stage_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Candidates& candidates_;
};

}  // namespace disttrain::chiefd
