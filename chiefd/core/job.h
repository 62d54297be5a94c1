// The life of one job, from the queue to its end. A machine: Cluster gives it what happens and it says what to do.
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
// A chief that finds a job in training in its journal goes on with it: reclaim (its tasks say hello with what they
// hold), then train.
//
// From any of these a job can fail or be stopped; its tasks are then told to close, and only once they did (or were
// left behind after Timeouts::close) may the next job start. Every wait has a deadline. What the outside must not see
// before it is durable is held until Persisted.
//
// Job is what Cluster talks to. It hands what happens to the parts of the job, which own its state and decide:
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
// parts.h wires them; invariants.h says what always holds between them.
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
  // Losses that former chiefs told of count on: a loop that kills the chief too must end. Before take_up(). `clocks`:
  // now, as those of the events.
  void recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks);
  // One that a former chief ran.
  void take_up(Turn& turn, const JournaledJob& journaled);

  JobId id() const;
  const std::string& name() const;
  const Submission& submission() const;
  JobState state() const;
  // It has ended, and the journal has that: the end may be told.
  bool is_end_durable() const;
  // Its tasks are told to release it, or have done so.
  bool has_told_to_close() const;
  // It has ended and nothing of it is left at the tasks.
  bool is_released() const;
  // It had its turn, under whatever chief.
  bool has_begun() const;
  // Without tasks' own state: Cluster adds what Tasks knows.
  JobStatus status(Instant now) const;
  // What it can't go on without just now. Empty where it works, or waits for its turn or the chief's own disk.
  std::vector<Awaited> waits_for(const Tasks& tasks, Instant now) const;
  // The worker's own steps, as it last said; 0 before it did.
  std::uint64_t steps_of(const Member& worker) const;
  // How far it has come in this generation, by its last heartbeat: own steps of a worker, newest version of a ps's
  // shards. None: it isn't in it, or hasn't stepped.
  std::optional<std::uint64_t> reached_by(const Member& member, const Heartbeat& heartbeat) const;
  // Of a worker's phase times those since the end of warm-up.
  PhaseTimes measured_times(const Member& worker, PhaseTimes times) const;
  // Why the job does without a worker that is there: "isn't taken back: ...". "": it may take part.
  std::string why_kept_out(TaskId task, Instant now) const;
  // The tasks that it uses; for status after its end, too.
  std::vector<Member> members() const;
  // The newest step that the chief has heard of; while it recovers, what it had come to.
  Step reached() const;

  void begin(Turn& turn);
  void stop(Turn& turn, const std::string& user);
  void kill(Turn& turn, const std::string& user);
  void fail(Turn& turn, Error error, std::optional<TaskId> root);
  // A checkpoint now; the client is answered when it is there.
  void save(Turn& turn, ClientId client);

  void on_message(Turn& turn, const Member& from, const FromTask& message);
  // A member that we know has a new connection: whatever it was asked over the old one and hasn't answered, it is asked
  // again. Requests and answers may be doubled by this, and change nothing the second time.
  void on_reconnect(Turn& turn, const TaskHello& hello);
  void on_finding(Turn& turn, const Finding& finding);
  void on_persisted(Turn& turn, Ticket ticket);
  void on_folder(Turn& turn, const FolderDone& done);
  void on_tick(Turn& turn);

  // Tasks that were told to end. Nothing hangs on this one (any more).
  bool may_go(const Member& member) const;
  // Sees to it that they may go soon.
  void advance_leavers(Turn& turn);
  // "J4: ...": a relation between its parts that doesn't hold: a bug. None: all hold. See invariants.h.
  std::optional<std::string> broken_invariant() const;

 private:
  void on_heartbeat_of_stranger(Turn& turn, const Member& from, const FromTask& message);
  void on_message_of_member(Turn& turn, const Member& from, const FromTask& message);
  void on_opened(Turn& turn, const Member& from);
  void advance_training(Turn& turn);

  const std::unique_ptr<JobParts> parts_;
};

}  // namespace disttrain::chiefd
