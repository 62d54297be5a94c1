// The chief as a whole: its term, its tasks, and its queue of jobs, of which one runs at a time. Every event goes
// through step(); the shell carries the actions out in order.
//
// The term and the numbers of jobs are durable before any task or client hears of them: Listen comes once the term is
// written, and a client gets its job's number once the job is written.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/job.h"
#include "chiefd/core/status.h"
#include "chiefd/core/tasks.h"
#include "common/config/cluster_config.h"
#include "common/result.h"
#include "common/timeouts.h"

namespace disttrain::chiefd {

// A job of the journal. `config`: the job's parsed text; an error if this version can't read it.
struct RecoveredJob {
  JournaledJob journaled;
  Result<JobConfig> config;
};

class Cluster {
 public:
  struct Setup {
    ClusterConfig config;
    JournalState journal;  // journal.journal is set, even if new; journal.term is the former chief's
    std::map<JobId, RecoveredJob> jobs;
    std::uint64_t seed = 0;  // random; for the channels' secrets
    EventClocks clocks{};    // now
    Incarnation self{};      // this process's
  };
  explicit Cluster(Setup setup);
  Cluster(const Cluster&) = delete;

  // The first step: begins the next term and takes over the job that a former chief left running.
  Actions start(Instant now);
  Actions step(Instant now, const Event& event);

  Term term() const { return term_; }
  JournalId journal() const { return journal_; }
  // Tasks decide by these which chief to obey: transport/obedience.h.
  Incarnation self() const { return self_; }
  const std::vector<Incarnation>& former_chiefs() const { return former_chiefs_; }
  const Timeouts& timeouts() const { return timeouts_; }

  // The job that runs or closes; else the last job that ran; else the last that ended in the queue; else the first that
  // waits. None before the first job.
  std::optional<JobId> current_or_last() const;
  // The job with this number or name; "": current_or_last(). Of several jobs with one name the newest. None: there is
  // no such job.
  std::optional<JobId> find(const std::string& job) const;
  std::vector<JobId> jobs() const;
  // Jobs that wait for their turn.
  std::size_t queued() const;
  // The job has ended, and its end is durable. The job must be known.
  bool has_ended(JobId job) const;
  // The job must be known. `tasks` holds all tasks of the cluster as they are now.
  JobStatus status(JobId job, Instant now) const;
  // With figures of the current job, if there is one.
  std::vector<TaskStatus> tasks(Instant now) const;
  // "J4: job 3: ...": an invariant that this step broke, which is a bug. None: all hold. The simulator and a debug
  // build of the daemon check this after every step. See job/invariants.h.
  std::optional<std::string> broken_invariant() const;

 private:
  void on(Instant now, const TaskJoined& event, Actions& actions);
  void on(Instant now, const ConnectionLost& event, Actions& actions);
  void on(Instant now, const TaskMessage& event, Actions& actions);
  void on(Instant now, const ProbeDone& event, Actions& actions);
  void on(Instant now, const Submit& event, Actions& actions);
  void on(Instant now, const chiefd::Stop& event, Actions& actions);
  void on(Instant now, const Save& event, Actions& actions);
  void on(Instant now, const Persisted& event, Actions& actions);
  void on(Instant now, const FolderDone& event, Actions& actions);
  void on(Instant now, const Reconfigured& event, Actions& actions);
  void on(Instant now, const Tick& event, Actions& actions);
  // Why the task doesn't obey this chief: it obeys a chief of a later term of this journal, or another chief of the
  // same term. Then this chief runs on an old copy, or beside the other chief. "": it obeys this chief.
  std::string why_disobeyed(const TaskHello& hello) const;
  void begin_leave(Instant now, const Member& member, Actions& actions);
  // Lets tasks that were told to end go as soon as the job doesn't need them.
  void let_leavers_go(Instant now, Actions& actions);

  // The time that limits run by. It leaves out the time that the chief itself slept, because its process was stopped or
  // its host suspended: no task was silent or late then.
  Instant awake(Instant now);
  Turn turn(Instant now, Actions& actions) { return Turn{now, term_, tasks_, last_ticket_, actions}; }
  Job* current();
  std::string name_of_current();  // "": none
  Status check_submission(const Submit& event) const;
  // The unended job of that name. null: there is none.
  const Job* unended(const std::string& name) const;
  Error name_is_taken(const Job& by, const Submit& event) const;
  void tell_job(Instant now, const Findings& findings, Actions& actions);
  // Begins the next job when none runs.
  void advance_queue(Instant now, Actions& actions);
  Job::Setup setup_of(JobId id, Submission submission) const;
  // The number of unended jobs before this job; null: of all unended jobs.
  std::uint32_t ahead_of(const Job* job) const;
  // The ticket of the job's submission, until that is durable.
  std::optional<Ticket> ticket_of(JobId id) const;
  void freeze_figures(Instant now);
  void forget_old_jobs();
  // Identity and state of the task, without figures.
  TaskStatus presence(const Task& task, Instant now) const;
  TaskFigures figures(const Task& task, const Job& job, bool is_at_work) const;
  std::vector<TaskStatus> tasks_in_no_job(Instant now) const;
  std::vector<TaskStatus> tasks_in_current_job(Instant now) const;
  std::vector<TaskStatus> tasks_beside(JobId id, Instant now) const;
  std::optional<std::uint64_t> reached_by(const Task& task) const;

  // Constant.
  const ClusterConfig config_;  // except the heartbeat timeout, see timeouts_
  const std::uint64_t seed_;

  Timeouts timeouts_;  // of its tasks and jobs; may change
  std::optional<Instant> last_step_;
  Duration slept_{};
  Term term_;
  JournalId journal_;
  const Incarnation self_;
  std::vector<Incarnation> former_chiefs_;  // of earlier terms, the newest first
  Tasks tasks_;
  Ticket last_ticket_;
  std::optional<Ticket> term_ticket_;            // until it is durable
  std::multimap<Ticket, AnswerClient> answers_;  // sent when the ticket is durable
  Ticket stop_ticket_;                           // of the newest end that a client asked for
  JobId last_job_;
  std::map<JobId, std::unique_ptr<Job>> jobs_;
  std::optional<JobId> current_;
  std::map<JobId, JournaledJob> left_running_;  // until start()
  std::deque<EventRecord> past_events_;         // until start()
  const EventClocks begun_at_;
  std::map<JobId, std::string> unreadable_;                // queued jobs whose text this version can't read, and why
  std::map<JobId, std::map<TaskId, TaskFigures>> frozen_;  // of jobs that ended
};

}  // namespace disttrain::chiefd
