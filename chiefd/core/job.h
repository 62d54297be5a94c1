// The life of one job, from the queue to its end. A state machine: Cluster gives it events, and it issues actions.
//
//   queued
//   starting    gather (tasks are there) -> describe (one worker) -> folder (of its checkpoints) -> init (the first
//               parameters) -> generation (is written) -> create (every ps that owns a shard) -> open (every worker)
//               -> roster (pacer)
//   running     until every worker has finished; workers leave and join on the way
//   paused      a ps is silent, or workers are too few; or a ps is lost: regather (a ps is back, or the others take its
//               shards) -> find (the newest checkpoint) -> generation -> ... as at the start
//   evaluating  settle (a last report of the pacer) -> final cut -> evaluate (one worker) -> close (everybody)
//   finished
//
// A restarted chief that finds a training job in its journal goes on with it: reclaim (each task says hello with the
// generation that it holds), then train.
//
// A job can fail or be stopped in any of these states. Its tasks are then told to close. The next job may start when
// they have closed, or were left behind after Timeouts::close. Every wait has a deadline. An action that needs a
// durable record is held until Persisted.
//
// Cluster talks only to Job. Job hands each event to its parts, which own the state and decide:
//
//   what happens                                    decided in chiefd/core/job/
//   the job begins: tasks, model, placement         gathering, launch
//   steps, reports, the end of the data             training_run, loans, progress, stall
//   a worker is lost, comes back, joins             membership, invitations, worker_losses, fences, quorum
//   a ps is silent or lost                          task_losses, recovery, regathering, pausing
//   tasks can't reach each other                    link_failures, reachability
//   a task fails, and who is to blame               suspicions
//   a stage takes too long, the chief's disk too    deadlines, late_disk
//   checkpoints                                     checkpoint_schedule, checkpointing, checkpoint_folder, savers
//   a task is told to end                           leaving
//   the end                                         ending, final_checkpoint, closing
//   the chief was restarted                         restart, reclaim
//   a task has a new connection                     requests
//
// parts.h wires the parts; invariants.h has the invariants between them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/awaited.h"
#include "chiefd/core/events.h"
#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/turn.h"
#include "chiefd/core/status.h"
#include "chiefd/core/tasks.h"

namespace disttrain::chiefd {

struct JobParts;

class Job {
 public:
  using Setup = JobSetup;
  explicit Job(Setup setup);
  ~Job();
  Job(const Job&) = delete;

  // A job that a former chief knew: queued, or ended.
  void restore(const JournaledJob& journaled);
  // See Restart::recall(). Call before take_up().
  void recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks);
  // Takes over a job that a former chief ran.
  void take_up(Turn& turn, const JournaledJob& journaled);

  JobId id() const;
  const std::string& name() const;
  const Submission& submission() const;
  JobState state() const;
  // The job has ended, and its end is durable: clients may be told.
  bool is_end_durable() const;
  // The tasks were told to release the job.
  bool has_told_to_close() const;
  // The job has ended, and no task holds anything of it.
  bool is_released() const;
  // The job has left the queue, under this or a former chief.
  bool has_begun() const;
  // Without the state of the tasks: Cluster adds that.
  JobStatus status(Instant now) const;
  // What the job waits for. Empty if it works, or waits for its turn or for the chief's own disk.
  std::vector<Awaited> waits_for(const Tasks& tasks, Instant now) const;
  // The worker's own steps, as it last reported; 0 before the first report.
  std::uint64_t steps_of(const Member& worker) const;
  // How far the member has come in this generation, by its last heartbeat: a worker's own steps, or the newest version
  // of a ps's shards. None: the member isn't in the generation, or hasn't stepped.
  std::optional<std::uint64_t> reached_by(const Member& member, const Heartbeat& heartbeat) const;
  // The part of a worker's phase times since the end of warm-up.
  PhaseTimes measured_times(const Member& worker, PhaseTimes times) const;
  // Why a connected worker is kept out of the job: "isn't taken back: ...". "": it may take part.
  std::string why_kept_out(TaskId task, Instant now) const;
  // The tasks that the job uses. Known after its end, too, for the status.
  std::vector<Member> members() const;
  // See EventLog::reached().
  Step reached() const;

  void begin(Turn& turn);
  void stop(Turn& turn, const std::string& user);
  void kill(Turn& turn, const std::string& user);
  void fail(Turn& turn, Error error, std::optional<TaskId> root);
  // Takes a checkpoint now. The client is answered when it is taken.
  void save(Turn& turn, ClientId client);

  void on_message(Turn& turn, const Member& from, const FromTask& message);
  // A known member has a new connection: repeats the requests that it hasn't answered. Requests and answers may arrive
  // twice by this; the second one changes nothing.
  void on_reconnect(Turn& turn, const TaskHello& hello);
  void on_finding(Turn& turn, const Finding& finding);
  void on_persisted(Turn& turn, Ticket ticket);
  void on_folder(Turn& turn, const FolderDone& done);
  void on_tick(Turn& turn);

  // The job doesn't need this task (any more), so it may end.
  bool may_go(const Member& member) const;
  // Prepares the end of tasks that were told to end: see Leaving::advance().
  void advance_leavers(Turn& turn);
  // "J4: ...": a broken invariant between the parts, which is a bug. None: all hold. See invariants.h.
  std::optional<std::string> broken_invariant() const;

 private:
  void on_heartbeat_of_stranger(Turn& turn, const Member& from, const FromTask& message);
  void on_message_of_member(Turn& turn, const Member& from, const FromTask& message);
  void on_opened(Turn& turn, const Member& from);
  void advance_training(Turn& turn);

  const std::unique_ptr<JobParts> parts_;
};

}  // namespace disttrain::chiefd
