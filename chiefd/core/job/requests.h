// What tasks have been asked and haven't answered is asked again once they have a new connection. A task may get a
// request twice by this; the second one changes nothing.
#pragma once

#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class Candidates;
class Checkpointing;
class Condition;
class Fences;
class GenerationPlan;
class HeldActions;
class Invitations;
class JobMembers;
class Launch;
class Loans;
class Pausing;
class Reclaim;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class Requests {
 public:
  explicit Requests(JobParts& parts);

  // A member that we know has a new connection.
  void on_reconnect(Turn& turn, const TaskHello& hello);
  // Fences and, of the pacer, the roster. In the order of Membership::lose().
  void repeat_to_ps(Turn& turn, const Member& ps);
  void repeat_in_training(Turn& turn, const Member& member);
  // The pacer is asked for the roster that is in force, unless that is being written and comes by itself.
  void repeat_roster(Turn& turn);
  // It has the whole time again, as if it had been asked now.
  void give_pacer_time(Turn& turn);

 private:
  const JobSetup& setup_;
  StageWait& stage_;
  const HeldActions& held_;
  const Condition& condition_;
  const GenerationPlan& generation_;
  const Workers& workers_;
  const Candidates& candidates_;
  const JobMembers& members_;
  Launch& launch_;
  Loans& loans_;
  Fences& fences_;
  Invitations& invitations_;
  Pausing& pausing_;
  Reclaim& reclaim_;
  Checkpointing& checkpointing_;
};

}  // namespace disttrain::chiefd
