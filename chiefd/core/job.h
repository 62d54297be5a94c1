// The life of one job, from the queue to its end. A machine: Cluster gives it what happens and it says what to do.
//
//   queued
//   starting    gather (tasks are there) -> describe (one worker) -> create (every ps that owns a shard) ->
//               open (every worker) -> first roster (pacer)
//   running     until every worker has finished; paused while a ps is silent
//   evaluating  settle (a last report of the pacer) -> evaluate (one worker) -> close (everybody)
//   finished
//
// From any of these a job can fail or be stopped; its tasks are then told to close, and only once they did (or were
// left behind after Timeouts::close) may the next job start. Every wait has a deadline. What the outside must not see
// before it is durable is held until Persisted.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/lending.h"
#include "chiefd/core/status.h"
#include "chiefd/core/tasks.h"
#include "common/timeouts.h"

namespace disttrain::chiefd {

// What a machine gets for one step: the time, the tasks, where actions go.
struct Turn {
  Instant now;
  Tasks& tasks;
  Ticket& last_ticket;
  Actions& actions;

  Ticket persist(Record record) {
    last_ticket = last_ticket.next();
    actions.push_back(Persist{last_ticket, std::move(record)});
    return last_ticket;
  }
};

class Job {
 public:
  struct Setup {
    JobId id;
    Submission submission;
    Timeouts timeouts;
    std::uint32_t credits = 4;
    std::uint64_t seed = 0;  // of the job's token
  };
  explicit Job(Setup setup);

  // A job that a former chief knew: queued, or ended.
  void restore(const JournaledJob& journaled);

  JobId id() const { return setup_.id; }
  const std::string& name() const { return setup_.submission.config.job.name; }
  JobState state() const { return state_; }
  // It has ended, and the journal has that: the end may be told.
  bool is_end_durable() const { return is_final(state_) && held_.empty(); }
  // Its tasks are told to release it, or have done so.
  bool is_closing() const { return stage_ == Stage::kClose || stage_ == Stage::kReleased; }
  // It has ended and nothing of it is left at the tasks.
  bool is_released() const { return stage_ == Stage::kReleased; }
  // Without tasks' own state: Cluster adds what Tasks knows.
  JobStatus status() const;
  // The worker's own steps, as it last said; 0 before it did.
  std::uint64_t steps_of(const Member& worker) const;
  // Of a worker's phase times those since the end of warm-up.
  PhaseTimes measured_times(const Member& worker, PhaseTimes times) const;
  // The tasks that it uses; for status after its end, too.
  std::vector<Member> members() const;

  void begin(Turn& turn);
  void stop(Turn& turn, const std::string& user);
  void kill(Turn& turn, const std::string& user);
  void fail(Turn& turn, Error error, std::optional<TaskId> root);

  void on_message(Turn& turn, const Member& from, const FromTask& message);
  // A member that we know has a new connection: whatever it was asked over the old one and hasn't answered, it is asked
  // again. Requests and answers may be doubled by this, and change nothing the second time.
  void on_reconnect(Turn& turn, const Member& member);
  void on_finding(Turn& turn, const Finding& finding);
  void on_persisted(Turn& turn, Ticket ticket);
  void on_tick(Turn& turn);

 private:
  enum class Stage {
    kQueued,
    kGather,
    kDescribe,
    kGeneration,  // its number is being written
    kCreate,
    kOpen,
    kRoster,
    kTrain,
    kSettle,
    kEvaluate,
    kClose,
    kReleased,
  };
  // A lost worker whose records wait for the shards' answers.
  struct Fence {
    Member worker;
    std::set<ShardId> owed;
    RosterVersion roster;
    bool roster_applied = false;
    Instant deadline;
  };
  // A task said it failed because another can't be reached: that one may be the root cause. All are probed, and until
  // each has been heard since, or is lost, or the time is up, nobody is blamed.
  struct Suspicion {
    Error error;
    TaskId task;
    Instant since;
  };

  const JobConfig& config() const { return setup_.submission.config; }
  bool uses(const Member& member) const;
  bool is_owner(const Member& member) const;
  bool is_worker(const Member& member) const;
  const Member& pacer() const { return owners_.front().ps; }
  void send(Turn& turn, TaskId task, ToTask message, std::optional<std::uint64_t> train_steps = {});
  void send_to_workers(Turn& turn, const ToTask& message);
  void set_state(Turn& turn, JobState state, std::string reason);
  void hold(Ticket ticket, Action action) { held_[ticket].push_back(std::move(action)); }
  void await(std::vector<Member> who, Instant deadline);
  // True when nobody is awaited any more.
  bool answered(const Member& member);
  void on_deadline(Turn& turn);
  void check_suspicion(Turn& turn);

  // job_start.cc: from the queue to the first step.
  void gather(Turn& turn);
  void describe(Turn& turn, const std::vector<Member>& workers);
  void on_finding_while_describing(Turn& turn, const Finding& finding);
  void place_model(Turn& turn, const JobDescribed& described);
  Status check_described(const JobDescribed& described) const;
  Status check_memory(const Tasks& tasks) const;
  void create_shards(Turn& turn);
  void ask_to_create(Turn& turn, const Member& ps);
  void open(Turn& turn);
  void ask_to_open(Turn& turn, const Member& worker);
  void start_training(Turn& turn);
  std::uint64_t effective_steps() const;
  std::uint64_t steps_target() const;

  // job_run.cc: while it trains.
  void on_heartbeat(Turn& turn, const Member& from, const Heartbeat& heartbeat);
  void note_pacer(Turn& turn, const PacerReport& report);
  void on_lease_request(Turn& turn, const Member& from, const LeaseRequest& request);
  void lend(Turn& turn);
  void grant(Turn& turn, const Lending::Loan& loan);
  void grant_again(Turn& turn, const Member& worker);
  bool is_being_written(const Member& worker, LeaseId lease) const;
  void repeat_training_requests(Turn& turn, const Member& member);
  void on_worker_finished(Turn& turn, const Member& from, const WorkerFinished& finished);
  void lose_task(Turn& turn, const Finding& finding);
  void lose_worker(Turn& turn, const Member& worker, const std::string& why);
  void remove_from_roster(Turn& turn, const Member& worker);
  void advance_fences(Turn& turn);
  void pause(Turn& turn, const Finding& finding);
  void resume(Turn& turn);
  void check_stall(Turn& turn);
  RootCause who_is_waited_for(const Tasks& tasks) const;

  // job_end.cc: after the last step.
  void on_all_finished(Turn& turn);
  void evaluate(Turn& turn);
  void on_evaluated(Turn& turn, const Evaluated& evaluated);
  void close(Turn& turn, JobState end, const std::string& reason);
  void tell_to_close(Turn& turn, std::vector<Member> members);
  void finish_closing(Turn& turn);

  // Constant.
  const Setup setup_;

  // What it is at.
  JobState state_ = JobState::kQueued;
  std::string reason_ = "waits for its turn";
  Stage stage_ = Stage::kQueued;
  std::set<Member> awaited_;  // who owes an answer in this stage
  std::optional<Instant> deadline_;
  Instant gather_until_;                       // then it doesn't begin again with others
  std::optional<Instant> complete_enough_at_;  // since when there are tasks enough to start
  Ticket generation_ticket_;
  std::map<Ticket, Actions> held_;
  bool stopping_ = false;
  JobState end_ = JobState::kFinished;  // what it becomes when closed
  std::string end_reason_;
  std::vector<Member> to_close_;  // told to close once the others have

  // Decided at its start.
  JobDescribed described_;
  Layout layout_;
  std::vector<Owner> owners_;
  std::uint64_t token_ = 0;
  Generation generation_;
  bool opened_ = false;

  // Its workers.
  Roster roster_;
  std::vector<Member> starters_;  // the first roster
  std::set<Member> unfinished_;
  std::set<Member> lost_;
  std::optional<Member> evaluator_;
  std::map<Member, std::uint64_t> worker_steps_;
  std::map<Member, PhaseTimes> warmup_times_;  // phase times at the end of warm-up

  // Data.
  Lending lending_;
  std::vector<Fence> fences_;

  // Progress.
  PacerReport pacer_report_;
  Instant progress_at_;
  std::map<TaskId, Instant> silent_ps_;
  std::optional<Suspicion> suspicion_;
  double evaluation_seconds_ = 0.0;  // that all waited for
  std::optional<EvaluationStatus> evaluation_;
  std::optional<ErrorCode> code_;
  std::optional<RootCause> root_cause_;
  std::vector<std::string> warnings_;
};

}  // namespace disttrain::chiefd
