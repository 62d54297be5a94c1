// A restarted chief finds the job in its journal, and decides where the job goes on.
//
//   the journal has                               the job
//   its end                                       closes: its tasks may not have heard of the end
//   no generation that trains, and no rollback    gathers its tasks again: no step is lost by that
//   a rollback that wasn't done                   rolls back
//   a generation that trains                      waits for its tasks (reclaim.h)
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
class EventLog;
class Gathering;
class GenerationPlan;
class Loans;
class Progress;
class Reclaim;
class Recovery;
class Rollbacks;
class WorkerLosses;
class Workers;
struct JobParts;
struct JobSetup;

class Restart {
 public:
  explicit Restart(JobParts& parts);

  // Counts former losses on: a loss that also kills the chief must not repeat without end. Call before take_up().
  // `clocks`: the current time, on the clocks that events are stamped with.
  void recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks);
  // Restores the figures of a job that has ended.
  void recall_end(const EndRecord& end);
  // Takes over a job that a former chief ran.
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
  CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  Closing& closing_;
  Ending& ending_;
};

}  // namespace disttrain::chiefd
