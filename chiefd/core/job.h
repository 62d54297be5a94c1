// The life of one job, from the queue to its end. Job is a state machine: Cluster passes it events, and it returns
// actions. A job goes through these states, and in a state through these stages:
//
//   queued                  The job waits for its turn.
//   starting    gather      The chief waits for the tasks to say hello.
//               describe    One worker describes the model and the data.
//               folder      The chief opens the job's checkpoint folder.
//               init        The chief looks for the initial parameters.
//               generation  The chief writes the new generation to its journal.
//               create      Every ps that owns a shard creates its shards.
//               open        Every worker opens the job.
//               roster      The pacer takes the first roster.
//   running     train       The workers train until all have finished. Workers may leave and join.
//               settle      The pacer sends its last report.
//               final cut   The last checkpoint is taken.
//   paused                  All workers wait, for example because a ps is silent or there are too few workers.
//               regather    A ps was lost. The chief waits until it is back, or gives its shards to other ps tasks.
//               find        The chief looks for the newest checkpoint, and goes on with the stage `generation`.
//   evaluating  evaluate    The evaluators evaluate the last checkpoints, or one worker evaluates.
//   stopping    train       A client has stopped the job, and the workers end their step. Then the stages `settle` and
//                           `final cut` follow.
//   finished                The job has done all its work.
//   failed                  The job can't go on.
//   stopped                 A client has stopped or killed the job.
//
// The last stage before a final state is `close`, in which all tasks release the job. Only a job that is stopped in the
// queue skips it. In this stage a job that finishes keeps its state, running or evaluating. A job that fails is
// `failed` already. A job that is stopped or killed is `stopping`.
//
// A restarted chief that finds a training job in its journal goes on with the job. In the stage `reclaim` it waits
// until each task has said hello with the generation that it holds. Then the job goes on to train.
//
// A job can fail or be stopped in any state that isn't final. The next job starts when all tasks have closed the job.
// The chief waits for their answers for at most Timeouts::close, or for twice that time if the workers close the job
// before the ps tasks. Every wait has a deadline. The wait for tasks that are away may be without a limit; then its
// deadlines are those of the chief's reports about it (job/rules/absences.h). If an action must not happen before a
// record is durable, Job returns it only after the event Persisted for this record.
//
// Cluster calls only Job. What Job knows and does lies in chiefd/core/job/, in four rooms. Each room uses only those
// above it in this table:
//
//   facts    what is known of the job. Each class keeps its own facts consistent, and knows no other.
//   views    questions about several facts, which change nothing: who is missing, who may take part, what is left.
//   rules    decide. A rule is a pure function of the facts, the tasks, the time and an event, and returns a verdict.
//   flow     the job's life. It passes events to the rules, carries out their verdicts, and alone changes the facts.
//
// report.h has the job's status, and invariants.h what holds between the facts after each step.
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

struct JobFacts;

class Job {
 public:
  using Setup = JobSetup;
  explicit Job(Setup setup);
  ~Job();
  Job(const Job&) = delete;

  // Restores a job of the journal that is queued or has ended, or that this chief won't go on with.
  void restore(const JournaledJob& journaled);
  // See flow::recall(). Call before take_up().
  void recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks);
  // Takes over a job that was running under a former chief.
  void take_up(Turn& turn, const JournaledJob& journaled);

  JobId id() const;
  const std::string& name() const;
  const Submission& submission() const;
  JobState state() const;
  // Returns true if the job has ended and its end is durable, so that clients may hear of it.
  bool is_end_durable() const;
  // Returns true if the tasks were told to release the job.
  bool has_told_to_close() const;
  // Returns true if the job has ended and no task holds anything of it any more.
  bool is_released() const;
  // For a failed job: true if the same job may succeed when it is submitted again. It may if it has trained, or has
  // waited in vain for a task. Otherwise something is wrong with its file, its data or its folder.
  bool may_succeed_later() const;
  // Returns true if the job has left the queue, under this chief or under a former one.
  bool has_begun() const;
  // The number of the newest generation. 0: none has begun, so the job has no checkpoints of its own.
  Generation generation() const;
  // The job's status without the state of the tasks, which Cluster adds.
  JobStatus status(Instant now) const;
  // The tasks for which the job waits. Empty if the job does its work, waits for its turn, or waits for the chief's own
  // disk.
  std::vector<Awaited> waits_for(const Tasks& tasks, Instant now) const;
  // The number of steps that the worker itself has done, by its last report. 0 before its first report.
  std::uint64_t steps_of(const Member& worker) const;
  // How far the member has come in this generation, by its last heartbeat. For a worker this is the number of its own
  // steps, and for a ps the newest version of its shards. None: the member isn't in the generation, or hasn't made a
  // step.
  std::optional<std::uint64_t> reached_by(const Member& member, const Heartbeat& heartbeat) const;
  // Returns the worker's phase times (`times`) without the time that the worker spent before the end of warm-up.
  PhaseTimes measured_times(const Member& worker, PhaseTimes times) const;
  // Why a connected worker may not take part in the job, such as "can't rejoin the job: ...". "": it may.
  std::string why_kept_out(TaskId task, Instant now) const;
  // The worker's rank. None if it isn't in the roster.
  std::optional<std::uint32_t> rank_of(const Member& worker) const;
  // True if the evaluator works for the job.
  bool is_evaluated_by(const Member& evaluator) const;
  // The tasks that the job uses, without evaluators. After the job's end, the tasks that it used last, for the status.
  std::vector<Member> members() const;
  // See views::reached().
  Step reached() const;

  void begin(Turn& turn);
  void stop(Turn& turn, const std::string& user);
  void kill(Turn& turn, const std::string& user);
  void fail(Turn& turn, Error error, std::optional<TaskId> root);
  // Takes a checkpoint now. The client gets its answer when the checkpoint is committed.
  void save(Turn& turn, ClientId client);

  void on_message(Turn& turn, const Member& from, const FromTask& message);
  // A known task has connected again. Repeats the requests that the task hasn't answered. So a request or an answer may
  // arrive twice, and the second one changes nothing.
  void on_reconnect(Turn& turn, const TaskHello& hello);
  void on_finding(Turn& turn, const Finding& finding);
  void on_persisted(Turn& turn, Ticket ticket);
  void on_folder(Turn& turn, const FolderDone& done);
  void on_tick(Turn& turn);

  // Returns true if the task may end, because the job doesn't need it, or doesn't need it any more.
  bool may_go(const Member& member) const;
  // Prepares the job for the end of the tasks that were told to end. See flow::advance_leavers().
  void advance_leavers(Turn& turn);
  // An invariant between the parts that a bug has broken, such as "J4: ...". None: all invariants hold. See
  // invariants.h.
  std::optional<std::string> broken_invariant() const;

 private:
  const std::unique_ptr<JobFacts> facts_;
};

}  // namespace disttrain::chiefd
