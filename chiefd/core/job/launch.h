// Starts a generation. The chief journals the generation, the ps tasks create their shards, the workers open the job,
// the pacer takes the roster, and training starts. Both the start of a job and a rollback use this class.
#pragma once

#include <cstdint>

#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class Candidates;
class CheckpointFolder;
class CheckpointSchedule;
class CheckpointStats;
class Condition;
class EventLog;
class GenerationPlan;
class Invitations;
class JobReport;
class Links;
class Loans;
class Progress;
class Rollbacks;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class Launch {
 public:
  explicit Launch(JobParts& parts);

  // Called when owners, layout and roster are decided.
  void begin_generation(Turn& turn);
  // Called when the record of the generation is durable.
  void create_shards(Turn& turn);
  // Called when all ps tasks have created their shards.
  void open(Turn& turn);
  // Called when all workers have opened the job.
  void set_roster(Turn& turn);
  // Called when the pacer has the roster.
  void start_training(Turn& turn);

  // These functions send a request to one task. The chief sends it again after a lost connection.
  void ask_to_create(Turn& turn, const Member& ps);
  void ask_to_open(Turn& turn, const Member& worker);
  OpenJob order_to_open(const Member& worker) const;

 private:
  Step clock_of(const Member& worker) const;
  void tell_start(Turn& turn);
  void end_rollback(Turn& turn);

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  EventLog& events_;
  Progress& progress_;
  Rollbacks& rollbacks_;
  GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  Links& links_;
  const CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  CheckpointStats& stats_;
  Loans& loans_;
  Invitations& invitations_;
  const JobReport& report_;

  Instant create_began_;
};

}  // namespace disttrain::chiefd
