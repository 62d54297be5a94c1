// Invites workers that don't take part in the job. An invited worker reads the data, builds the model, and reports
// which ps tasks it can't reach. When it has reported, it is prepared and may join. See candidates.h.
#pragma once

#include <vector>

#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class Candidates;
class Condition;
class GenerationPlan;
class JobMembers;
class LinkFailures;
class Links;
class Membership;
class Regathering;
class StageWait;
class StartFailures;
class Workers;
struct JobParts;
struct JobSetup;

class Invitations {
 public:
  explicit Invitations(JobParts& parts);

  // Invites the worker. Does nothing if the worker was already asked, is prepared, or can't come back.
  void invite(Turn& turn, const Member& worker);
  // Invites every connected worker, and lets prepared workers join.
  void invite_all(Turn& turn);
  // Sends another invitation to each worker that couldn't reach a ps, because the link may work again.
  void invite_again(Turn& turn);
  // Sends the invitation again, because the worker's connection was lost.
  void repeat(Turn& turn, const Member& worker) const;
  // A worker is gone. If it was invited, ends its invitation.
  void on_gone(Turn& turn, const Finding& finding);
  // The worker's answer.
  void on_described(Turn& turn, const Member& from, const JobDescribed& described);

 private:
  std::vector<Owner> ps_to_reach(const Tasks& tasks) const;

  const JobSetup& setup_;
  StageWait& stage_;
  const Condition& condition_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  Candidates& candidates_;
  const Links& links_;
  const JobMembers& members_;
  LinkFailures& link_failures_;
  StartFailures& start_failures_;
  Membership& membership_;
  Regathering& regathering_;
};

}  // namespace disttrain::chiefd
