// Workers that aren't in the job are asked to read the data and build the model, and which ps tasks they reach. Those
// that answer are prepared, and may join. See candidates.h.
#pragma once

#include <vector>

#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class Candidates;
class Condition;
class EventLog;
class GenerationPlan;
class JobMembers;
class LinkFailures;
class Links;
class Membership;
class Regathering;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class Invitations {
 public:
  explicit Invitations(JobParts& parts);

  // Nothing happens where the worker has been asked, is prepared, or can't come back.
  void invite(Turn& turn, const Member& worker);
  // All that are there; those that are prepared join.
  void invite_all(Turn& turn);
  // Those that couldn't reach a ps are asked once more: that may have changed.
  void invite_again(Turn& turn);
  // The invitation is sent once more: the connection was away.
  void repeat(Turn& turn, const Member& worker) const;
  // Its answer.
  void on_described(Turn& turn, const Member& from, const JobDescribed& described);

 private:
  std::vector<Owner> ps_to_reach(const Tasks& tasks) const;

  const JobSetup& setup_;
  StageWait& stage_;
  EventLog& events_;
  const Condition& condition_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  Candidates& candidates_;
  const Links& links_;
  const JobMembers& members_;
  LinkFailures& link_failures_;
  Membership& membership_;
  Regathering& regathering_;
};

}  // namespace disttrain::chiefd
