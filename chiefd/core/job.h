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
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/attempts.h"
#include "chiefd/core/events.h"
#include "chiefd/core/lending.h"
#include "chiefd/core/links.h"
#include "chiefd/core/memory_fit.h"
#include "chiefd/core/restarts.h"
#include "chiefd/core/status.h"
#include "chiefd/core/tasks.h"
#include "common/timeouts.h"

namespace disttrain::chiefd {

// What a machine gets for one step: the time, the tasks, where actions go.
struct Turn {
  Instant now;
  Term term;
  Tasks& tasks;
  Ticket& last_ticket;
  Actions& actions;

  Ticket persist(Record record) {
    last_ticket = last_ticket.next();
    actions.push_back(Persist{last_ticket, std::move(record)});
    return last_ticket;
  }
  Ticket next_ticket() { return last_ticket = last_ticket.next(); }
};

class Job {
 public:
  struct Setup {
    JobId id;
    Submission submission;
    const Timeouts& timeouts;  // the cluster's, which outlive it and may change
    std::uint32_t credits = 4;
    std::uint32_t listed_workers = 0;  // of the cluster file: memory is made for so many
    bool takes_unlisted = false;       // and for some more
    std::uint64_t seed = 0;            // of its secrets
    JournalId journal{};               // of its marks
  };
  explicit Job(Setup setup);

  // A job that a former chief knew: queued, or ended.
  void restore(const JournaledJob& journaled);
  // Losses that former chiefs told of count on: a loop that kills the chief too must end. Before take_up(). `clocks`:
  // now, as those of the events.
  void recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks);
  // One that a former chief ran.
  void take_up(Turn& turn, const JournaledJob& journaled);

  JobId id() const { return setup_.id; }
  const std::string& name() const { return setup_.submission.config.job.name; }
  const Submission& submission() const { return setup_.submission; }
  JobState state() const { return state_; }
  // It has ended, and the journal has that: the end may be told.
  bool is_end_durable() const { return is_final(state_) && held_.empty(); }
  // Its tasks are told to release it, or have done so.
  bool is_closing() const { return stage_ == Stage::kClose || stage_ == Stage::kReleased; }
  bool has_told_to_close() const { return is_closing() && is_end_written_; }
  // It has ended and nothing of it is left at the tasks.
  bool is_released() const { return stage_ == Stage::kReleased; }
  // It had its turn, under whatever chief.
  bool has_begun() const { return has_begun_; }
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

 private:
  enum class Stage {
    kQueued,
    kGather,
    kDescribe,
    kFolder,
    kInit,
    kRegather,
    kFind,
    kGeneration,  // its number is being written
    kCreate,
    kOpen,
    kRoster,
    kReclaim,
    kTrain,
    kSettle,
    kFinalCut,
    kEvaluate,
    kClose,
    kReleased,
  };
  // What a task's going counts as.
  enum class Loss {
    kCounts,  // for job.max_restarts
    kLeft,    // it was told to end
    kLink,    // it lives, but can't reach another task
  };
  // A ps that is waited for, with the workers paused.
  struct Silence {
    Instant since;
    bool is_link = false;  // the chief hears it; most workers don't reach it
    std::string why{};     // then
  };
  // A lost worker whose records wait for the shards' answers.
  struct Fence {
    Member worker;
    std::set<ShardId> owed;
    RosterVersion roster;
    bool roster_applied = false;
    std::optional<Ticket> held;  // until this is durable the shards haven't been asked
    Instant deadline;            // from then on
  };
  // A task said it failed because another can't be reached: that one may be the root cause. All are probed, and until
  // each has been heard since, or is lost, or the time is up, nobody is blamed.
  struct Suspicion {
    Error error;
    Instant since;
  };
  // What recovery is for, until it trains again.
  struct Recovery {
    Cause cause;
    Instant began;
    Instant gathers_since;      // by this chief
    Instant not_before;         // back-off
    Step step;                  // that was reached
    bool is_step_known = true;  // else it is the newest that this chief knows of
    std::string shortage{};     // "waiting for ps/0": why the next generation hasn't begun
  };

  const JobConfig& config() const { return setup_.submission.config; }
  bool takes_checkpoints() const { return !config().checkpoint.directory.empty(); }
  bool has_init() const { return !config().checkpoint.init_from.empty(); }
  bool waits_for_lost() const { return config().job.on_worker_loss == OnWorkerLoss::kWait; }
  std::size_t least_workers() const { return std::max<std::size_t>(config().job.min_workers, 1); }
  bool is_sync() const { return config().train.mode == Mode::kSync; }
  // For an answer that costs a ps no time. A task that hears nothing of the chief for Timeouts::silent_ps opens its
  // connection anew and is asked again: an answer that is still missing then isn't missing for want of a link.
  Duration answer_limit() const { return setup_.timeouts.silent_ps + setup_.timeouts.silent; }
  bool holds_workers(const Tasks& tasks) const {
    return !silent_ps_.empty() || is_short_ || is_disk_late_ || leaving_owner(tasks);
  }
  bool uses(const Member& member) const;
  bool is_owner(const Member& member) const;
  bool is_worker(const Member& member) const;
  bool is_in_roster(const Member& member) const;
  const Member& pacer() const { return owners_.front().ps; }
  std::vector<Member> holders() const;
  bool has_stepped() const;
  JobPart part() const;
  void send(Turn& turn, TaskId task, ToTask message);
  void send_to_workers(Turn& turn, const ToTask& message);
  void set_state(Turn& turn, JobState state, std::string reason);
  void warn(std::string text);
  // For `disttrain events`, and the log.
  void tell(Turn& turn, const std::string& kind, std::uint8_t level, const std::string& text,
            std::optional<TaskId> task = {}, const std::string& cause = "");
  void hold(Ticket ticket, Action action) { held_[ticket].push_back(std::move(action)); }
  void await(const Turn& turn, std::vector<Member> who, Instant deadline);
  // True when nobody is awaited any more.
  bool answered(const Member& member);
  // When the member was last seen to get on with what takes long; Instant(): it wasn't.
  Instant worked_at(const Tasks& tasks, const Member& member) const;
  // The newest of these.
  template <typename Members>
  Instant newest_work(const Tasks& tasks, const Members& members) const {
    Instant newest;
    for (const Member& member : members) newest = std::max(newest, worked_at(tasks, member));
    return newest;
  }
  std::vector<Member> invited() const;
  bool extend_deadline(Turn& turn);
  TaskId who_stands_still(const Tasks& tasks) const;
  void on_deadline(Turn& turn);
  bool was_removed_before(const Tasks& tasks, const Member& worker) const;
  void on_task_failed(Turn& turn, const Member& from, const TaskFailed& failed);
  void check_suspicions(Turn& turn);
  bool is_settled(const Turn& turn, const Member& from, Instant since) const;

  // job_start.cc: from the queue to the first step.
  void gather(Turn& turn);
  void describe(Turn& turn, const std::vector<Member>& workers);
  void on_finding_while_describing(Turn& turn, const Finding& finding);
  void on_described(Turn& turn, const Member& from, const JobDescribed& described);
  void draw_numbers(const Turn& turn);
  void ask_folder(Turn& turn);
  void find_init(Turn& turn);
  void on_init(Turn& turn, const Result<FolderAnswer>& answer);
  Status check_described(const JobDescribed& described) const;
  Status check_restore() const;
  MemoryFit memory_fit(const Tasks& tasks) const;
  Status make_places(const Tasks& tasks, std::size_t least);
  void place_model(Turn& turn);
  // For `least` workers at least.
  Status place_on_all(const Tasks& tasks, std::size_t least);
  void begin_generation(Turn& turn);
  void create_shards(Turn& turn);
  void ask_to_create(Turn& turn, const Member& ps);
  void open(Turn& turn);
  OpenJob order_to_open(const Member& worker) const;
  void ask_to_open(Turn& turn, const Member& worker);
  Step clock_of(const Member& worker) const;
  void start_training(Turn& turn);
  std::uint64_t effective_steps() const;
  SharedJobConfig resolved_config() const;
  std::uint64_t steps_target() const;

  // job_run.cc: while it trains.
  void on_heartbeat(Turn& turn, const Member& from, const Heartbeat& heartbeat);
  void note_pacer(Turn& turn, const PacerReport& report);
  void on_roster_applied(Turn& turn, const RosterApplied& applied);
  void on_lease_request(Turn& turn, const Member& from, const LeaseRequest& request);
  void lend(Turn& turn);
  void grant(Turn& turn, const Lending::Loan& loan);
  void grant_again(Turn& turn, const Member& worker);
  bool is_being_written(const Member& worker, LeaseId lease) const;
  // The newest roster once more, unless it is being written: then it comes by itself.
  template <typename Message>
  bool is_held_for(TaskId task) const;
  void repeat_roster(Turn& turn);
  void give_pacer_time(Turn& turn);
  bool hears_both_ways(const Tasks& tasks, const Member& member) const;
  void repeat_ps_requests(Turn& turn, const Member& member);
  void repeat_training_requests(Turn& turn, const Member& member);
  void repeat_attempt(Turn& turn, const Member& member);
  void on_worker_finished(Turn& turn, const Member& from, const WorkerFinished& finished);
  void check_end(Turn& turn);
  void check_stall(Turn& turn);
  RootCause who_is_waited_for(const Tasks& tasks) const;
  std::string broken_links_text(Instant now) const;

  // job_workers.cc: workers are lost and join.
  void lose_worker(Turn& turn, const Member& worker, const std::string& why, Loss loss = Loss::kCounts);
  void fence(Turn& turn, const Member& worker, std::optional<Ticket> after);
  void change_roster(Turn& turn, std::vector<Member> members, const std::optional<Member>& lost);
  void begin_deadlines(Turn& turn, Ticket persisted);
  void advance_fences(Turn& turn);
  void choose_evaluator(Turn& turn);
  void invite(Turn& turn, const Member& worker);
  void invite_all(Turn& turn);
  void join_prepared(Turn& turn);
  std::vector<Member> roster_with(const Member& worker) const;
  void join(Turn& turn, const Member& worker);
  bool has_work_for(TaskId worker) const;
  bool is_work_left() const;
  bool any_is_left() const;
  void forget_predecessors(const Member& worker);
  std::size_t losses_of(TaskId worker, Instant now) const;  // within job.restart_window
  void keep_out(Turn& turn, TaskId worker, const std::string& why);
  std::string lost_too_often(std::size_t losses) const;
  std::string no_place_for(const Tasks& tasks, std::size_t workers) const;
  std::string training_reason(Instant now) const;
  std::string shortage(const Turn& turn) const;
  void check_quorum(Turn& turn);
  void pause_workers(Turn& turn, bool paused, const std::string& reason);

  // job_links.cc: tasks that the chief hears can't reach each other.
  void on_accusation(Turn& turn, const Member& from, const Accusation& accusation);
  void mend_link(Turn& turn, const Links::Link& link);
  void forget_links(const Turn& turn, const Finding& finding);
  bool has_channels() const;
  void tell_link(Turn& turn, const Links::Link& link, const std::string& consequence);
  void judge_link(Turn& turn, const Member& from, const Links::Link& link);
  void wait_for_links(Turn& turn, TaskId ps);
  void review_links(Turn& turn);
  void note_reach(Turn& turn, const Member& from, const std::vector<Member>& unreachable);
  void invite_again(Turn& turn);
  std::vector<Owner> ps_to_reach(const Tasks& tasks) const;
  bool reaches_owners(TaskId worker) const;
  std::vector<TaskId> voters(const Tasks& tasks) const;
  bool is_cut_off(const Tasks& tasks, TaskId ps) const;
  bool is_avoided(const Tasks& tasks, TaskId ps) const;
  std::set<TaskId> peers_cut_off(const Tasks& tasks, TaskId ps) const;
  std::string links_of(Instant now, TaskId worker) const;

  // job_recover.cc: a ps is silent, or lost.
  void lose_task(Turn& turn, const Finding& finding);
  void pause(Turn& turn, const Finding& finding);
  void resume(Turn& turn, const std::string& why);
  Duration patience_with_ps(Instant silent_since) const;
  void recover(Turn& turn, const Cause& cause, Loss loss = Loss::kCounts);
  void roll_back(Turn& turn, Loss loss = Loss::kCounts);
  std::size_t count_loss(Turn& turn, const std::string& kind, const Cause& cause);
  Error too_many_losses(ErrorCode code, const Cause& cause, std::size_t times) const;
  void drop_generation(Turn& turn);
  void regather(Turn& turn);
  bool regather_ps(Turn& turn, std::string& problem);
  bool can_train_with(const Tasks& tasks) const;
  bool regather_workers(Turn& turn);
  bool regather_memory(Turn& turn);
  std::size_t fewest_workers() const;
  void find_restore(Turn& turn);

  // job_reclaim.cc: the chief itself was away.
  void recall_end(const EndRecord& end);
  void reclaim(Turn& turn, const TaskHello& hello);
  void finish_reclaim(Turn& turn);

  // job_awaited.cc: whom it waits for.
  std::vector<Awaited> missing_to_begin(const Tasks& tasks) const;
  std::vector<Awaited> missing_ps(const Tasks& tasks) const;
  std::vector<Awaited> missing_workers(const Tasks& tasks, Instant now) const;
  std::vector<Awaited> missing_to_train(const Tasks& tasks) const;
  bool is_ready(const Task& task, Instant now) const;
  AwaitedFor expected_answer() const;

  // job_disk.cc: the chief's own disk is late.
  void wait_for_disk(Turn& turn);

  // job_leave.cc
  std::optional<TaskId> leaving_owner(const Tasks& tasks) const;

  // job_checkpoint.cc
  void advance_attempt(Turn& turn);
  bool is_checkpoint_due(const Turn& turn, Step& at) const;
  void set_next_due(Step after);
  void begin_attempt(Turn& turn, Step at);
  void folder_work(Turn& turn, Ticket ticket, decltype(FolderWork::work) work);
  void ask_newest(Turn& turn);
  void on_newest(Turn& turn, const Result<FolderAnswer>& answer);
  void review_savers(Turn& turn);
  std::string folder_problem(Instant now, const std::string& within) const;
  Error nothing_left(const FolderAnswer& answer) const;
  void on_newest_failed(Turn& turn, const Error& error, bool is_waited_for);
  void cut_now(Turn& turn);
  void order_cut(Turn& turn);
  void on_prepared(Turn& turn, const Member& from, const CheckpointPrepared& prepared);
  void on_written(Turn& turn, const ShardWritten& written);
  void commit_attempt(Turn& turn);
  void on_committed(Turn& turn, const FolderAnswer& answer);
  // `fails`: it would fail again if nothing changes, unlike one that a lost connection or task ended.
  void abandon_attempt(Turn& turn, const std::string& why, bool fails = false);
  // Nobody is to wait for it any more. What is being committed needs nobody, and is committed all the same.
  void interrupt_attempt(Turn& turn, const std::string& why);
  bool is_owed_by(const Member& ps) const;
  void note_broken(Turn& turn, const std::vector<std::string>& broken);
  void final_cut(Turn& turn);
  void fail_final_cut(Turn& turn, const std::string& why);

  // job_end.cc: after the last step.
  void end_steps(Turn& turn);
  void on_all_finished(Turn& turn);
  void evaluate(Turn& turn, Loss loss = Loss::kCounts);  // of the worker that was to evaluate before
  void on_evaluated(Turn& turn, const Evaluated& evaluated);
  EndRecord end_record(Instant now) const;
  void close(Turn& turn, JobState end, const std::string& reason);
  void begin_closing(Turn& turn);
  void tell_to_close(Turn& turn, std::vector<Member> members);
  void finish_closing(Turn& turn);

  // Constant.
  const Setup setup_;

  // What it is at.
  JobState state_ = JobState::kQueued;
  bool has_begun_ = false;
  std::string reason_ = "waits for its turn";
  Stage stage_ = Stage::kQueued;
  std::set<Member> awaited_;  // who owes an answer in this stage
  Instant waits_since_;       // for them; in kTrain for a leaver's checkpoint, or the end of a step
  std::optional<Instant> deadline_;
  Instant gather_until_;                       // then it doesn't begin again with others
  Instant workers_until_;                      // kReclaim: then it goes on without those that aren't back
  std::optional<Instant> complete_enough_at_;  // since when there are tasks enough to start
  Ticket stage_ticket_;  // what this stage waits for: the record of the generation or of the end, the folder's answer
  std::map<Ticket, Actions> held_;
  bool stopping_ = false;
  JobState end_ = JobState::kFinished;  // what it becomes when closed
  bool is_end_written_ = false;         // kClose: before that nobody is told to close
  std::string end_reason_;
  Step journaled_end_;            // where it was by the record of its end
  std::vector<Member> to_close_;  // told to close once the others have

  // Decided at its start, and at each recovery.
  std::optional<JobDescribed> described_;
  Layout layout_;
  std::vector<Owner> owners_;
  // Of this generation. The secret that channels show is on no disk: after a restart of the chief it is 0 until a ps of
  // the generation has told it. The mark is written into the checkpoint folder.
  std::uint64_t token_ = 0;
  std::uint64_t mark_ = 0;
  std::uint64_t numbers_drawn_ = 0;
  Generation generation_;
  bool was_begun_ = false;               // a generation before this one was, by whatever chief
  std::optional<RestorePoint> restore_;  // what this generation began with; none: initial values
  std::string init_path_;                // where the initial values are read; "": drawn, or not resolved yet
  bool opened_ = false;

  // Its workers.
  Roster roster_;
  std::vector<Member> workers_;              // all that were in a roster of this generation
  std::uint32_t places_ = 0;                 // workers that the shards' memory is made for
  std::vector<TaskId> ranks_;                // on_worker_loss = "wait": who has which rank
  std::set<Member> prepared_;                // have read the data and built the model
  std::map<Member, Instant> invited_;        // asked to do so
  std::map<Member, Instant> joining_;        // in the roster, haven't opened their channels
  std::map<std::string, Restarts> rejoins_;  // how often each was lost; by its name, as events have it
  std::map<TaskId, std::string> kept_out_;   // lost too often, or no memory for them: why
  Links links_;
  std::map<TaskId, Restarts> unlinked_;     // how often each worker was removed for a link
  std::map<TaskId, Instant> invite_after_;  // a worker that couldn't reach a ps isn't asked again before
  std::set<Member> unfinished_;
  std::set<Member> lost_;
  std::map<TaskId, Step> lost_clocks_;  // own steps that a lost worker had done
  std::optional<Member> evaluator_;
  std::map<Member, std::uint64_t> worker_steps_;
  std::map<Member, PhaseTimes> warmup_times_;  // phase times at the end of warm-up
  bool is_short_ = false;                      // of workers: paused
  Instant short_since_;
  std::set<Member> told_to_stop_;      // as they leave
  std::set<std::string> told_to_end_;  // tasks that a chief before said were leaving
  std::set<Member> stopped_;           // and these have

  // Data.
  Lending lending_;
  bool may_lend_ = false;  // the ledger is known
  std::map<Member, double> early_requests_;
  std::vector<Fence> fences_;
  std::map<LeaseId, GrantRecord> reclaimed_grants_;
  std::uint64_t grants_written_ = 0;  // since the last OpenGrantsRecord

  // Progress.
  PacerReport pacer_report_;
  bool heard_pacer_ = true;                         // by this chief, in this generation
  std::optional<double> loss_;                      // the newest that a pacer told
  std::uint64_t examples_heard_ = 0;                // of reports, as they grew; a rollback takes nothing back
  std::optional<std::uint64_t> examples_reported_;  // in this generation; none: this chief heard of none
  Instant progress_at_;
  Instant ticked_;
  std::optional<Ticket> unwritten_;  // the oldest record that something waits for
  Instant unwritten_since_;
  bool is_disk_late_ = false;  // the workers are paused for it
  std::map<TaskId, Silence> silent_ps_;
  std::map<Member, Suspicion> suspicions_;  // by who said so: nobody says it twice
  double evaluation_seconds_ = 0.0;         // that all waited for
  std::optional<EvaluationStatus> evaluation_;
  std::optional<ErrorCode> code_;
  std::optional<RootCause> root_cause_;
  std::optional<std::uint64_t> steps_at_end_;  // steps_target(), of a job that ended under another chief
  std::string damage_;                         // what a ps said of the checkpoint that was set aside last
  std::vector<std::string> warnings_;          // the newest

  // Recovery.
  std::optional<Recovery> recovery_;
  Restarts restarts_;
  std::uint32_t recoveries_ = 0;
  std::uint32_t fruitless_ = 0;  // recoveries since a step or a checkpoint further than all before
  Step furthest_;                // step ever reached
  Training before_;              // in earlier generations
  std::uint64_t steps_lost_ = 0;
  std::set<Member> reclaimed_;

  // Checkpoints.
  bool is_folder_open_ = false;
  std::optional<Instant> find_again_;  // it couldn't be opened or read
  Instant folder_asked_;
  std::string folder_error_;       // why, since it last could
  Generation folder_generation_;   // the newest in it
  std::uint64_t folder_mark_ = 0;  // the number in it
  std::optional<Attempt> attempt_;
  std::uint64_t last_attempt_ = 0;
  std::vector<ClientId> savers_;
  Instant saves_until_;  // they wait, if no attempt begins before
  std::optional<CheckpointRecord> newest_;
  CheckpointFigures figures_;
  std::optional<Instant> committed_at_;  // the newest of this chief
  Instant create_began_;
  Instant newest_at_;                  // when it was taken, or training began
  std::uint64_t next_due_ = 0;         // global step
  std::uint32_t failed_attempts_ = 0;  // in a row
  std::string attempt_error_;          // of the last of them
  Instant final_until_;                // the last checkpoint is tried again until then
  Instant next_try_;
  bool is_saved_ = false;           // nothing is applied in this generation after newest_
  std::uint32_t failed_saves_ = 0;  // attempts at that
};

}  // namespace disttrain::chiefd
