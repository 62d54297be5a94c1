// The life of a job: all transitions between its stages (chiefd/core/job/facts/stage.h), and all messages that the
// chief sends for it. Only these functions change the facts of a job. The order of a life:
//
//   begin_job, gather, describe, find_init, begin_generation, create_shards, open_job, set_roster, start_training
//   check_end, settle, end_last_step, take_last_checkpoint, evaluate, finish_evaluation, close_job, begin_closing,
//   finish_closing
//
// and beside it, from any stage in between:
//
//   pause, resume                      the workers wait, for example for a silent ps
//   recover, roll_back, regather       the next generation, which begins with begin_generation
//   fail_job, stop, kill               the job closes
//   take_up, on_hello, end_reclaim     a restarted chief goes on with the job
//
// The rules (rules/) read the facts, change nothing, and return verdicts. carry_out() carries a verdict out. REQUIRES
// of all functions: `turn` is the step that the core makes now. None throws, and none blocks.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd::flow {

// ---- verdicts.cc

// Does what a rule has decided.
void carry_out(JobFacts& job, Turn& turn, const Verdict& verdict);
void carry_out_all(JobFacts& job, Turn& turn, const std::vector<Verdict>& verdicts);

// ---- events.cc: what has happened. See Job.

void on_reconnect(JobFacts& job, Turn& turn, const TaskHello& hello);
void on_persisted(JobFacts& job, Turn& turn, Ticket ticket);
void on_folder(JobFacts& job, Turn& turn, const FolderDone& done);
void on_message(JobFacts& job, Turn& turn, const Member& from, const FromTask& message);
void on_finding(JobFacts& job, Turn& turn, const Finding& finding);
void on_tick(JobFacts& job, Turn& turn);

// ---- state.cc

// Sets the state. A new state is journaled and reported as an event. The chief tells clients about a final state only
// when that state is durable. While the job is being stopped, kPaused becomes kStopping. Otherwise a restarted chief
// would find kPaused in the journal, and wouldn't know that the job is being stopped.
void set_state(JobFacts& job, Turn& turn, JobState state, std::string reason);
// Journals and reports the state as it is. For a state that isn't new, but whose reason a restarted chief must know.
void journal_state(JobFacts& job, Turn& turn);
// Sends the message when all records are durable that an action waits for.
void send_behind_all(JobFacts& job, Turn& turn, TaskId task, ToTask message);
// Reports an event of the job, for `disttrain events` and the log. `level` as in LogLine. `task`, `cause`: see
// EventRecord.
void tell(const JobFacts& job, Turn& turn, const std::string& kind, std::uint8_t level, const std::string& text,
          std::optional<TaskId> task = {}, const std::string& cause = "");

// ---- start.cc

// Called when the job's turn has come.
void begin_job(JobFacts& job, Turn& turn);
// Enters stage kGather.
void begin_gathering(JobFacts& job, Turn& turn);
// In stage kGather: the job waits for tasks.
void await(JobFacts& job, Turn& turn, const Await& verdict);
// In stage kDescribe: other workers are asked, too.
void ask_others(JobFacts& job, Turn& turn, const AskOthers& verdict);
// Counts the loss, and gathers again or fails the job.
void gather_after_loss(JobFacts& job, Turn& turn, const GatherAgain& verdict);
// Goes back to stage kGather. REQUIRES: the job has no shards.
void gather_again(JobFacts& job, Turn& turn);
// In stage kGather: goes on to kDescribe if enough tasks are connected.
void gather(JobFacts& job, Turn& turn);
// The job begins with these workers: asks the first one to describe the model and the data.
void describe(JobFacts& job, Turn& turn, const std::vector<Member>& workers);
// In stage kDescribe: the awaited worker can't describe the model and the data. Asks the other workers. If none of
// them can, or too few of them are left, the job fails.
void on_describe_failed(JobFacts& job, Turn& turn, const Member& from, const Error& error);
// In stage kDescribe: a task has joined or is lost.
void on_finding_at_describe(JobFacts& job, Turn& turn, const Finding& finding);
// In stage kDescribe: the worker has described the model and the data.
void on_described(JobFacts& job, Turn& turn, const Member& from, const JobDescribed& described);
// In the stages kFolder and kFind: the chief has read the folder. The next generation begins with the newest
// checkpoint. If the folder never had one, the generation begins with initial values.
void begin_with_newest(JobFacts& job, Turn& turn, const FolderAnswer& answer);
// Called when the checkpoint folder was read.
void find_init(JobFacts& job, Turn& turn);
// In stage kInit: the shell has found the first parameters, or has failed.
void on_init(JobFacts& job, Turn& turn, const Result<FolderAnswer>& answer);
// Called when owners, layout and roster are decided.
void begin_generation(JobFacts& job, Turn& turn);
// Called when the record of the generation is durable.
void create_shards(JobFacts& job, Turn& turn);
// Sends one ps the request to create its shards. It is sent again after a lost connection.
void ask_to_create(JobFacts& job, Turn& turn, const Member& ps);
// Called when all ps tasks have created their shards.
void open_job(JobFacts& job, Turn& turn);
// The same for a worker, which opens the job.
void ask_to_open(JobFacts& job, Turn& turn, const Member& worker);
// In stage kOpen: no worker is awaited any more. Goes on to the next stage, or starts again without the workers that
// have failed.
void advance_open(JobFacts& job, Turn& turn);
// Called when all workers have opened the job.
void set_roster(JobFacts& job, Turn& turn);
// Called when the pacer has the roster.
void start_training(JobFacts& job, Turn& turn);

// ---- start_failures.cc

// In stage kOpen: this worker has failed or is lost. REQUIRES: views::may_start_without(). `is_process`: the process
// is to blame, and stays out; otherwise the worker may join while the job trains.
void note_start_failure(JobFacts& job, Turn& turn, const Member& worker, const Error& error, bool is_process);
void start_with_others(JobFacts& job, Turn& turn, const StartWithOthers& verdict);
// Leaves out what has failed, or counts what was lost, in this generation. Called before the generation is dropped,
// whatever the reason.
void settle_start_failures(JobFacts& job, Turn& turn);
// Leaves the worker's process out of the job, and tells it to release the job.
void leave_out(JobFacts& job, Turn& turn, const Member& worker, const std::string& why);

// ---- training.cc

void on_heartbeat(JobFacts& job, Turn& turn, const Member& from, const Heartbeat& heartbeat);
void on_roster_applied(JobFacts& job, Turn& turn, const RosterApplied& applied);
void on_worker_finished(JobFacts& job, Turn& turn, const Member& from, const WorkerFinished& finished);
// Ends the training if all workers have finished, or if neither a worker nor any work is left.
void check_end(JobFacts& job, Turn& turn);
// At each tick. Workers may have finished although records are left, because a worker was lost or has joined at the
// end. In sync the others go on without them. If all have finished, removes those that are there: they come back as
// other members, and do the rest.
void review_finished(JobFacts& job, Turn& turn);
void share_rest(JobFacts& job, Turn& turn, const ShareRest& verdict);
// Called at each tick of a training job. If a fence is late, rolls the job back. If the job has made no step for too
// long, fails the job.
void check_stall(JobFacts& job, Turn& turn);

// ---- leases.cc

// Called when training starts.
void begin_loans(JobFacts& job, Term term);
// Called after a restart of the chief, when the pacer has reported. The leases from before the restart stay open.
void resume_loans(JobFacts& job, Term term);
// Called after resume_loans(). Adds the requests that came before it.
void request_early(JobFacts& job);
// Called when the pacer has the newest roster and its report has the ledger. Lends to the new roster from now on.
void lend_to_new_roster(JobFacts& job);
void on_lease_request(JobFacts& job, Turn& turn, const Member& from, const LeaseRequest& request);
// Lends to every worker that waits, as long as there are records.
void lend(JobFacts& job, Turn& turn);
// Sends the worker's leases again. Leaves out a lease whose record isn't durable yet, because this lease is sent when
// its record is durable.
void grant_again(JobFacts& job, Turn& turn, const Member& worker);
// Asks every ps to fence the worker, as soon as the record `after` is durable. If `after` is none, asks at once. The
// fence is sent before the roster. So when the pacer answers that it has the roster, its ledger has the records of
// all pushes of this worker that were applied.
void fence(JobFacts& job, Turn& turn, const Member& worker, std::optional<Ticket> after);
void on_fence_persisted(JobFacts& job, Turn& turn, Ticket persisted);
void on_fenced(JobFacts& job, Turn& turn, const WorkerFenced& fenced);
void on_fence_roster_applied(JobFacts& job, Turn& turn, RosterVersion version);
// Finds the workers that are completely fenced, and makes their records free to be lent again.
void advance_fences(JobFacts& job, Turn& turn);
// Asks this ps again to fence the workers. The ps gets the full time for its answers again. The pacer also gets the
// full time to answer that it has the roster.
void repeat_fences(JobFacts& job, Turn& turn, const Member& ps);
// Gives a ps that owes an answer more time if the chief can't hear it just now.
void excuse_unheard_debtors(JobFacts& job, const Turn& turn);
// Restarts the time limit of every fence.
void give_fences_time(JobFacts& job, Instant now);

// ---- workers.cc

// Removes a lost worker of this generation. For Loss::kLink the caller tells the operator.
void lose_worker(JobFacts& job, Turn& turn, const Member& worker, const std::string& why, Loss loss = Loss::kCounts);
// Counts and reports a lost worker.
void tell_loss(JobFacts& job, Turn& turn, const Member& worker, const std::string& why, Loss loss);
// Makes the next roster. It is durable before the chief sends it to the pacer. The chief fences the worker `lost` as
// soon as the roster is durable. In sync nothing is lent until the pacer has answered. Returns the ticket of the
// roster's record.
Ticket change_roster(JobFacts& job, Turn& turn, std::vector<Member> members, const std::optional<Member>& lost);
// If the worker that evaluates during training is lost, chooses another worker for this.
void choose_evaluator(JobFacts& job, Turn& turn);
// Lets all prepared workers join. Does nothing while a checkpoint is cut, because the cut waits for a fixed set of
// workers.
void join_prepared(JobFacts& job, Turn& turn);
// Lets a prepared worker join the roster.
void join(JobFacts& job, Turn& turn, const Member& worker);
// Keeps a connected worker out of the job for the reason `why`, and reports this once.
void keep_out(JobFacts& job, Turn& turn, TaskId worker, const std::string& why);
void check_quorum(JobFacts& job, Turn& turn);

// ---- invitations.cc

// Invites the worker. Does nothing if the worker was already asked, is prepared, or can't come back.
void invite(JobFacts& job, Turn& turn, const Member& worker);
// A worker is gone. If it was invited, ends its invitation.
void on_invited_gone(JobFacts& job, Turn& turn, const Finding& finding);
// Sends the invitation again, because the worker's connection was lost.
void repeat_invitation(const JobFacts& job, Turn& turn, const Member& worker);
// Invites every connected worker, and lets prepared workers join.
void invite_all(JobFacts& job, Turn& turn);
// The worker's answer.
void on_invited_described(JobFacts& job, Turn& turn, const Member& from, const JobDescribed& described);
// Sends another invitation to each worker that couldn't reach a ps, because the link may work again.
void invite_again(JobFacts& job, Turn& turn);

// ---- links.cc

// Most workers can't reach the ps: the job waits for their links.
void wait_for_links(JobFacts& job, Turn& turn, TaskId ps);
void on_accusation(JobFacts& job, Turn& turn, const Member& from, const Accusation& accusation);
// A task came or went. Forgets the broken links of a task that is gone.
void forget_links(JobFacts& job, const Turn& turn, const Finding& finding);
// Called at each tick. Drops complaints that weren't repeated. If broken links made the job pause, ends the pause
// when the links work again.
void review_links(JobFacts& job, Turn& turn);
// A worker that isn't in the job has reported which ps tasks it can't reach.
void note_reach(JobFacts& job, Turn& turn, const Member& from, const std::vector<Member>& unreachable);

// ---- pauses.cc

void tell_pause(JobFacts& job, Turn& turn, bool paused, const std::string& reason);
// One reason for the pause is over. The job goes on unless another reason is left.
void resume(JobFacts& job, Turn& turn, const std::string& why);
// The reasons to pause, and the ends of two of them. See verdict.h.
void pause_for_ps(JobFacts& job, Turn& turn, const PauseForPs& verdict);
void pause_for_workers(JobFacts& job, Turn& turn, const std::string& reason);
void end_shortage(JobFacts& job, Turn& turn, const std::string& why);
void pause_for_disk(JobFacts& job, Turn& turn, const std::string& reason);
void end_disk_pause(JobFacts& job, Turn& turn, const std::string& why);
// Pauses the workers and the job. The caller has noted the reason in Pauses.
void pause(JobFacts& job, Turn& turn, const std::string& reason);

// ---- losses.cc

void on_loss(JobFacts& job, Turn& turn, const Finding& finding);
// In the stages kSettle, kFinalCut and kEvaluate.
void end_without(JobFacts& job, Turn& turn, const EndWithout& verdict);
// At each tick. Rolls the job back if a ps has been silent for too long. Returns true if it did.
bool check_silence(JobFacts& job, Turn& turn);

// ---- recovery.cc

// Counts the loss, and does what chiefd/core/job/rules/recovery.h decides. Does nothing if the job closes already or is
// in the queue.
void recover(JobFacts& job, Turn& turn, const Cause& cause, Loss loss = Loss::kCounts);
// The job rolls back because of this loss, which is counted. REQUIRES: shards are placed.
void begin_rollback(JobFacts& job, Turn& turn, const Cause& cause, Loss loss);
// Does the rollback that Rollbacks::current() describes.
void roll_back(JobFacts& job, Turn& turn, Loss loss = Loss::kCounts);
// Counts a loss. Returns the number of losses within job.restart_window, this one included. Reports an event, so that
// a restarted chief counts this loss too.
std::size_t count_loss(JobFacts& job, Turn& turn, const std::string& kind, const Cause& cause);
// In stage kRegather: goes on if enough tasks are connected.
void regather(JobFacts& job, Turn& turn);
// In stage kRegather: what the next generation waits for.
void await_tasks(JobFacts& job, const AwaitTasks& verdict);
// All that the next generation needs is there: looks for the checkpoint that it begins with.
void begin_next(JobFacts& job, Turn& turn);

// ---- restart.cc

// Restores a job of the journal that is queued or has ended, or that this chief won't go on with.
void restore(JobFacts& job, const JournaledJob& journaled);
// Counts the losses from before the restart too. Otherwise a loss that also kills the chief could repeat without end.
// Call this before take_up(). `clocks` has the current time on both clocks that events are stamped with.
void recall(JobFacts& job, Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks);
// Restores the figures of a job that ended before the restart.
void recall_end(JobFacts& job, const EndRecord& end);
// Restores what is known of the step of a job that hadn't ended.
void recall_progress(JobFacts& job, const JournaledJob& journaled);
// Takes over a job that was running before the restart.
void take_up(JobFacts& job, Turn& turn, const JournaledJob& journaled);
// A task of the job has said hello.
void on_hello(JobFacts& job, Turn& turn, const TaskHello& hello);
// Called at each tick. Goes on when all tasks are back or their time is over.
void advance_reclaim(JobFacts& job, Turn& turn);
// All ps tasks are back: asks the pacer for the job's step, and goes on with the workers that are back.
void reclaim_job(JobFacts& job, Turn& turn);
// The pacer has the roster and has reported its ledger.
void end_reclaim(JobFacts& job, Turn& turn);

// ---- folder.cc

// Asks the shell for the newest checkpoint. If the folder isn't open yet, the shell opens it first.
void ask_newest(JobFacts& job, Turn& turn);
void on_newest(JobFacts& job, Turn& turn, const Result<FolderAnswer>& answer);
// Called at each tick. If the folder couldn't be opened or read, asks the shell again after one second.
void review_folder(JobFacts& job, Turn& turn);
// Called when a ps has found the checkpoint damaged. Sets that checkpoint aside and looks for the newest of the other
// checkpoints.
void set_aside(JobFacts& job, Turn& turn, const std::string& damage);
// Called when the job ends. Releases the lock on the folder.
void close_folder(JobFacts& job, Turn& turn);

// ---- checkpoints.cc

// Begins an attempt if one is due, or moves the current attempt on to its next phase. Called at each tick, and when
// something has changed that an attempt may wait for.
void advance_checkpoint(JobFacts& job, Turn& turn);
// Begins an attempt. In sync, `at` is the step at which the shards cut. Step 0 means that they cut at once.
void begin_attempt(JobFacts& job, Turn& turn, Step at);
// The shards' files make a checkpoint: writes its manifest.
void commit_attempt(JobFacts& job, Turn& turn);
void on_attempt_folder(JobFacts& job, Turn& turn, const FolderDone& done);
// Cuts at once if the current attempt waits for a later step. Called when no worker makes steps: the later step won't
// come, and workers that want to join would wait for the cut.
void cut_now(JobFacts& job, Turn& turn);
void on_prepared(JobFacts& job, Turn& turn, const Member& from, const CheckpointPrepared& prepared);
void on_written(JobFacts& job, Turn& turn, const ShardWritten& written);
void on_checkpoint_failed(JobFacts& job, Turn& turn, const Member& from, const CheckpointFailed& failed);
// Called when a task has a new connection. Repeats the requests that the old connection may have lost.
void repeat_checkpoint(JobFacts& job, Turn& turn, const Member& member);
// Gives the current attempt up, so that no task waits for it any more. If the chief is already committing the
// attempt, the commit goes on, because it needs no task. If the shards were holding, they apply pushes again in both
// cases.
void interrupt_attempt(JobFacts& job, Turn& turn, const std::string& why);
// Gives the current attempt up. The previous checkpoint stays, and training goes on. `fails` is true if the next
// attempt would fail for the same reason, for example a full disk. It is false if the attempt ended because a
// connection or a task was lost.
void abandon_attempt(JobFacts& job, Turn& turn, const std::string& why, bool fails = false);
// Called when all steps are done, and in stage kFinalCut when an attempt has ended well or the folder is open.
void end_last_step(JobFacts& job, Turn& turn);
// Enters stage kFinalCut, or tries again there.
void take_last_checkpoint(JobFacts& job, Turn& turn);
// A client asks for a checkpoint. The chief answers when the checkpoint is taken.
void save(JobFacts& job, Turn& turn, ClientId client);
// A worker's trainer asks for a checkpoint. It gets no answer. If the job isn't running, or its folder can't be used,
// nothing happens.
void save_for_worker(JobFacts& job, Turn& turn);
// Called at each tick. Refuses the clients if no attempt has begun for 20 heartbeat timeouts. So clients wait through
// a short pause of the job.
void review_savers(JobFacts& job, Turn& turn);
void refuse_savers(JobFacts& job, Turn& turn, ErrorCode code, const std::string& why);

// ---- evaluations.cc

// Called after a restart of the chief, with the journal's record.
void take_up_evaluations(JobFacts& job, const std::optional<EvaluationsRecord>& record);
// The shell has opened the folder for the first time. Takes over what evaluations of earlier jobs in it found.
void resume_evaluations(JobFacts& job, Turn& turn, const FolderAnswer& answer);
// The shell has listed the folder.
void on_kept(JobFacts& job, Turn& turn, const FolderAnswer& answer);
// Returns false if the work wasn't this part's.
bool on_listing(JobFacts& job, Turn& turn, const FolderDone& done);
// Called at each tick: orders evaluations, and ends orders that are late. May end the job's training early.
void advance_evaluations(JobFacts& job, Turn& turn);
void send_order(JobFacts& job, Turn& turn, const Member& member);
void on_evaluator_finding(JobFacts& job, Turn& turn, const Finding& finding);
// Messages, findings and hellos of evaluators.
void on_evaluator_message(JobFacts& job, Turn& turn, const Member& from, const FromTask& message);
void on_evaluated_by_worker(JobFacts& job, Turn& turn, const Evaluated& evaluated);
// Called in stage kEvaluate. If a checkpoint waits for an evaluation and the evaluators weren't given up, begins to
// wait for them and returns true. finish_evaluation() follows.
bool await_evaluations(JobFacts& job, Turn& turn);
void give_up_evaluators(JobFacts& job, Turn& turn, const std::string& why);
// The job ends. Lets the folder keep what it doesn't keep yet. Nobody waits for the folder's answer.
void keep_last(JobFacts& job, Turn& turn);
// Tells the evaluators to release the job.
void close_evaluators(JobFacts& job, Turn& turn);

// ---- end.cc

void stop(JobFacts& job, Turn& turn, const std::string& user);
// Ends a job that is still in the queue.
void release(JobFacts& job, Turn& turn, const std::string& reason);
// A client has stopped the job, which saves its progress first. `ends_by_itself`: its workers have finished already, or
// are told when the tasks are back.
void stop_steps(JobFacts& job, Turn& turn, const std::string& reason, bool ends_by_itself);
// Lets a job that trains finish before it has done all its steps. Does nothing if it doesn't train, or is stopping
// already.
void stop_early(JobFacts& job, Turn& turn, const std::string& reason);
// The job stops without these workers.
void stop_without(JobFacts& job, Turn& turn, const StopWithout& verdict);
// The workers of a job that is being stopped have the full time to finish their steps.
void give_steps_time(JobFacts& job, Instant now);
// Tells the workers of a job that is being stopped to finish their steps.
void end_steps(JobFacts& job, Turn& turn);
void kill(JobFacts& job, Turn& turn, const std::string& user);
// Fails the job. `root` is the task to blame, if there is one.
void fail_job(JobFacts& job, Turn& turn, Error error, std::optional<TaskId> root);
// Called when every worker has finished. Asks the pacer for a report that includes all pushes, because the report in
// the pacer's last heartbeat may be older.
void settle(JobFacts& job, Turn& turn);
// Starts the final evaluation: waits for the evaluators, or lets one worker evaluate.
void evaluate(JobFacts& job, Turn& turn, Loss loss = Loss::kCounts);
// Called in stage kEvaluate when the job doesn't wait for evaluators any more. Closes the job if the parameters of
// its last step were evaluated. Otherwise one worker evaluates them. If no worker is left, the job rolls back, and
// `loss` says why the last worker was lost.
void finish_evaluation(JobFacts& job, Turn& turn, Loss loss = Loss::kCounts);
void on_evaluated(JobFacts& job, Turn& turn, const Member& from, const Evaluated& evaluated);
// The worker's own program has failed in the final evaluation. Lets another worker evaluate. If no other worker is
// left, the job fails. It doesn't roll back, because the program would fail again with the same parameters.
void on_evaluation_failed(JobFacts& job, Turn& turn, const Member& from, const Error& error);
void close_job(JobFacts& job, Turn& turn, JobState end, const std::string& reason);
// Called when the job's end is durable. A chief that is restarted later then knows that the job has ended, although
// tasks may still hold the job.
void begin_closing(JobFacts& job, Turn& turn);
// In stage kClose: this task has released the job, or is gone.
void on_released(JobFacts& job, Turn& turn, const Member& member);
// Called when all tasks that were told to close have answered or are out of time. If the ps tasks weren't told yet,
// because the workers close first, tells them. Otherwise releases the job.
void finish_closing(JobFacts& job, Turn& turn);
// Stops the workers that were told to end. If a ps was told to end, begins the checkpoint that must be taken before
// it leaves, or goes on with this checkpoint.
void advance_leavers(JobFacts& job, Turn& turn);

// ---- requests.cc

// A member of the job has a new connection.
void on_member_reconnect(JobFacts& job, Turn& turn, const TaskHello& hello);
// Repeats each FenceWorker that this ps hasn't answered. If the pacer is on this ps, then repeats the roster.
// lose_worker() sends both in the same order.
void repeat_to_ps(JobFacts& job, Turn& turn, const Member& ps);
void repeat_in_training(JobFacts& job, Turn& turn, const Member& member);
// If the chief waits for the pacer's answer, restarts the time limit for this answer.
void give_pacer_time(JobFacts& job, Turn& turn);

// ---- failures.cc

void on_task_failed(JobFacts& job, Turn& turn, const Member& from, const TaskFailed& failed);
// Another task may be the cause of the failure: probes the others, and judges the failure later.
void suspect(JobFacts& job, Turn& turn, const Member& from, const Error& error);
// The job needs this worker, which can't take part now: invites it again later.
void ask_again_later(JobFacts& job, Turn& turn, const Member& worker, const std::string& reason);
// At each tick.
void review_suspicions(JobFacts& job, Turn& turn);

// ---- waits.cc

// Returns false if the stage isn't overdue, or goes on because somebody makes progress.
bool check_deadline(JobFacts& job, Turn& turn);
// The tasks that haven't released the job in time are left behind.
void leave_behind(JobFacts& job, Turn& turn);
// At each tick.
void review_disk(JobFacts& job, Turn& turn);
// Called at each tick, after the job has gone on if enough tasks are there. Returns true if the wait has
// failed the job.
bool review_absences(JobFacts& job, Turn& turn);

}  // namespace disttrain::chiefd::flow
