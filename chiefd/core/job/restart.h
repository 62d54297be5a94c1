// Decides how a restarted chief goes on with a job that it finds in its journal.
//
//   the journal has                              the job
//   the end of the job                           closes, because its tasks may not have heard of the end
//   no generation that trains, and no rollback   gathers its tasks again, and loses no step by this
//   a rollback that hasn't ended                 rolls back
//   a generation that trains                     waits for its tasks (reclaim.h)
#pragma once

#include <deque>

#include "chiefd/core/job/turn.h"
#include "chiefd/core/journal_state.h"

namespace disttrain::chiefd {

class Candidates;
class CheckpointFolder;
class CheckpointSchedule;
class Closing;
class Condition;
class Ending;
class Evaluators;
class EventLog;
class Gathering;
class GenerationPlan;
class Loans;
class Progress;
class Reclaim;
class Recovery;
class Regathering;
class Rollbacks;
class WorkerLosses;
class Workers;
struct JobParts;
struct JobSetup;

class Restart {
 public:
  explicit Restart(JobParts& parts);

  // Counts the losses from before the restart too. Otherwise a loss that also kills the chief could repeat without end.
  // Call this before take_up(). `clocks` has the current time on both clocks that events are stamped with.
  void recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks);
  // Restores what is known of the step of a job that hadn't ended.
  void recall_progress(const JournaledJob& journaled);
  // Restores the figures of a job that ended before the restart.
  void recall_end(const EndRecord& end);
  // Takes over a job that was running before the restart.
  void take_up(Turn& turn, const JournaledJob& journaled);

 private:
  void recall_one(Instant now, const EventRecord& event, Duration age, bool counts, bool is_step_known);
  void take_up_generation(Turn& turn, const JournaledJob& journaled);

  const JobSetup& setup_;
  EventLog& events_;
  Condition& condition_;
  Progress& progress_;
  Rollbacks& rollbacks_;
  GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  WorkerLosses& worker_losses_;
  Gathering& gathering_;
  Loans& loans_;
  Reclaim& reclaim_;
  Recovery& recovery_;
  Regathering& regathering_;
  CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  Closing& closing_;
  Evaluators& evaluators_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
