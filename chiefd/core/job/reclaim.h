// The chief itself was away: its journal says what the job was at, and the job's tasks say hello with what they hold.
// If all ps tasks still hold the generation, the job goes on and no step is lost; else it rolls back.
//
//   1. take_up(): the journal has a generation that trains. kReclaim: the chief waits for its tasks.
//   2. on_hello(), of each: it counts if it still holds the generation.
//   3. All are there, or the time is up for the workers: the pacer gets a roster without those that are missing.
//   4. on_pacer_answer(): the pacer has said where the job is. kTrain.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <vector>

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
class Fences;
class Gathering;
class GenerationPlan;
class JobMembers;
class Launch;
class Loans;
class Membership;
class Pausing;
class Progress;
class Recovery;
class Requests;
class Rollbacks;
class StageWait;
class WorkerLosses;
class Workers;
struct JobParts;
struct JobSetup;

class Reclaim {
 public:
  explicit Reclaim(JobParts& parts);

  // What former chiefs told of the job: losses count on, for a loop that kills the chief too must end. Before
  // take_up(). `clocks`: now, as those of the events.
  void recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks);
  // What an ended job had come to.
  void recall_end(const EndRecord& end);
  // A job that a former chief ran.
  void take_up(Turn& turn, const JournaledJob& journaled);

  // kReclaim: one of its tasks is back.
  void on_hello(Turn& turn, const TaskHello& hello);
  // kReclaim: a worker is gone again, before all were gathered.
  void on_gone(const Member& member) { reclaimed_.erase(member); }
  void note_leaves(TaskId task) { told_to_end_.insert(to_string(task)); }
  // kReclaim: goes on when all are there, or their time is up.
  void advance(Turn& turn);
  // kReclaim: the pacer has the roster, and its ledger is known.
  void on_pacer_answer(Turn& turn);
  bool is_back(const Member& member) const { return reclaimed_.count(member) != 0; }

 private:
  void recall_one(Instant now, const EventRecord& event, Duration age, bool counts, bool is_step_known);
  void take_up_generation(Turn& turn, const JournaledJob& journaled);
  void check_pacer(Turn& turn);
  void go_on(Turn& turn);
  std::vector<Member> drop_missing_workers(Turn& turn);
  // A ps that was told to end, as a former chief said, has left.
  Loss loss_of(TaskId task) const;

  const JobSetup& setup_;
  StageWait& stage_;
  EventLog& events_;
  Condition& condition_;
  Progress& progress_;
  Rollbacks& rollbacks_;
  GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  WorkerLosses& worker_losses_;
  const JobMembers& members_;
  Launch& launch_;
  Loans& loans_;
  Fences& fences_;
  Requests& requests_;
  Membership& membership_;
  Pausing& pausing_;
  Recovery& recovery_;
  Gathering& gathering_;
  CheckpointFolder& folder_;
  CheckpointSchedule& schedule_;
  Closing& closing_;
  Ending& ending_;

  std::set<Member> reclaimed_;
  std::set<std::string> told_to_end_;  // tasks that a chief before said were leaving
  Instant workers_until_;              // then it goes on without those that aren't back
};

}  // namespace disttrain::chiefd
