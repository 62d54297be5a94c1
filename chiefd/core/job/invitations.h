// Invites workers that aren't in the job: each is asked to read the data, build the model and say which ps tasks it
// can't reach. A worker that answers is prepared and may join. See candidates.h.
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

  // Does nothing if the worker has been asked, is prepared, or can't come back.
  void invite(Turn& turn, const Member& worker);
  // Invites every connected worker. Those that are prepared join.
  void invite_all(Turn& turn);
  // Asks workers that couldn't reach a ps once more: the link may be back.
  void invite_again(Turn& turn);
  // Sends the invitation again after a lost connection.
  void repeat(Turn& turn, const Member& worker) const;
  // The worker's answer.
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
