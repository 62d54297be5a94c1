// Starts a generation: its record is written, the ps tasks create their shards, the workers open the job, the pacer
// takes the roster, and training starts. A job's start and a rollback do the same.
#pragma once

#include <cstdint>

#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

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

  // Owners, layout and roster are decided.
  void begin_generation(Turn& turn);
  // Its record is durable.
  void create_shards(Turn& turn);
  // All shards are there.
  void open(Turn& turn);
  // All workers have opened the job.
  void set_roster(Turn& turn);
  // The pacer has the roster.
  void start_training(Turn& turn);

  // The request to one member. It is repeated after a lost connection.
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
