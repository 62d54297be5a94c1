// The whole core of the chief: its term, its tasks, and its queue of jobs. One job runs at a time. Every event goes
// through step(). The shell carries out the returned actions in order.
//
// The term and the numbers of jobs are durable before any task or client hears of them. So the action Listen comes only
// when the term is in the journal, and a client gets the number of its job only when the job is in the journal.
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

// A job that the journal holds. `config` is the parsed job file, or an error if this version can't parse that file.
struct RecoveredJob {
  JournaledJob journaled;
  Result<JobConfig> config;
};

// A chief that has crashed so often while it worked for a job fails this job at its next start.
inline constexpr std::uint32_t kMostCrashes = 2;

class Cluster {
 public:
  struct Setup {
    ClusterConfig config;
    // The state that the journal holds. The journal's id must be set, even if the journal is new. The term is that of
    // the former chief.
    JournalState journal;
    std::map<JobId, RecoveredJob> jobs;
    std::uint64_t seed = 0;  // a random number, from which the secrets of channels are made
    EventClocks clocks{};    // now
    Incarnation self{};      // this process's
    // How often former chiefs have crashed while they worked for a job. A job with kMostCrashes crashes fails at the
    // start, because it would crash this chief too.
    std::map<JobId, std::uint32_t> crashes{};
  };
  explicit Cluster(Setup setup);
  Cluster(const Cluster&) = delete;

  // The first step. Begins the next term, and takes over the job that was running under the former chief.
  Actions start(Instant now);
  Actions step(Instant now, const Event& event);

  Term term() const { return term_; }
  JournalId journal() const { return journal_; }
  // The incarnations of this chief and of former chiefs. With these a task decides which chief it obeys
  // (transport/obedience.h).
  Incarnation self() const { return self_; }
  const std::vector<Incarnation>& former_chiefs() const { return former_chiefs_; }
  const Timeouts& timeouts() const { return timeouts_; }

  // The job that is running or closing. If there is none, the last job that ran. If no job has run, the last job that
  // ended while it waited in the queue. If no job has ended either, the first job in the queue. None before the first
  // job.
  std::optional<JobId> current_or_last() const;
  // The job with this number or name. If several jobs have this name, the newest of them. For "", current_or_last().
  // None: there is no such job.
  std::optional<JobId> find(const std::string& job) const;
  std::vector<JobId> jobs() const;
  // The number of jobs that wait for their turn.
  std::size_t queued() const;
  // Returns true if the job has ended and its end is durable. The job must be known.
  bool has_ended(JobId job) const;
  // status(job).state without the rest of the status. The job must be known.
  JobState state_of(JobId job) const { return jobs_.at(job)->state(); }
  // The status of a job, which must be known. It includes the current state of all tasks of the cluster.
  JobStatus status(JobId job, Instant now) const;
  // The tasks that the job uses or has used last, also lost ones. The job must be known.
  std::vector<Member> members_of(JobId job) const { return jobs_.at(job)->members(); }
  // The state of all tasks, with their figures in the current job if there is one.
  std::vector<TaskStatus> tasks(Instant now) const;
  // An invariant that a bug has broken in the last step, such as "J4: job 3: ...". None: all invariants hold.
  // The simulator and a debug build of the daemon check this after every step. See job/invariants.h.
  std::optional<std::string> broken_invariant() const;

 private:
  void on(Instant now, const TaskJoined& event, Actions& actions);
  void on(Instant now, const ConnectionLost& event, Actions& actions);
  void on(Instant now, const TaskMessage& event, Actions& actions);
  void on(Instant now, const ProbeDone& event, Actions& actions);
  void on(Instant now, const Submit& event, Actions& actions);
  void on(Instant now, const Resubmit& event, Actions& actions);
  void on(Instant now, const chiefd::Stop& event, Actions& actions);
  void on(Instant now, const Save& event, Actions& actions);
  void on(Instant now, const Persisted& event, Actions& actions);
  void on(Instant now, const FolderDone& event, Actions& actions);
  void on(Instant now, const Reconfigured& event, Actions& actions);
  void on(Instant now, const TraceWritten& event, Actions& actions);
  void on(Instant now, const Tick& event, Actions& actions);
  // Why the task doesn't obey this chief. "": the task obeys it. A task doesn't obey this chief if it obeys another
  // chief of the same journal, with a later term or with the same term. Then this chief runs on an old copy of the
  // journal, or runs at the same time as the other chief.
  std::string why_disobeyed(const TaskHello& hello) const;
  void begin_leave(Instant now, const Member& member, Actions& actions);
  // Gives the tasks that were told to end permission to leave, as soon as the job doesn't need them.
  void let_leavers_go(Instant now, Actions& actions);

  // The current time for all time limits. It leaves out the time in which the chief itself didn't run, because its
  // process was stopped or its host was suspended. So no task counts as silent or late for that time.
  Instant awake(Instant now);
  Turn turn(Instant now, Actions& actions) { return Turn{now, term_, tasks_, last_ticket_, actions}; }
  Job* current();
  std::string name_of_current();  // "": none
  Status check_submission(const Submission& submission, bool goes_on) const;
  // Why the job can't be submitted again. None: it can.
  Status check_resubmission(const std::string& name, const std::optional<JobId>& id) const;
  // Lets a job that is submitted again go on from the checkpoints of the earlier one, if its checkpoint.restore is
  // "none".
  void let_go_on(Submission& submission) const;
  // Adds a job to the queue. The record with the returned ticket makes it durable.
  Ticket enqueue(Instant now, Submission submission, Actions& actions);
  // If the job has failed and job.on_failure says so, submits it again. Does nothing if that was done before.
  void resubmit_failed(Instant now, JobId id, Actions& actions);
  bool crashes_the_chief(JobId id) const;
  // The job that was submitted in place of this one. None: there is none.
  std::optional<JobId> successor(JobId id) const;
  // The job of this name that hasn't ended. Null: there is none.
  const Job* unended(const std::string& name) const;
  Error name_is_taken(const Job& by, const Submission& submission, bool goes_on) const;
  void tell_job(Instant now, const Findings& findings, Actions& actions);
  // Begins the next job if no job is running.
  void advance_queue(Instant now, Actions& actions);
  Job::Setup setup_of(JobId id, Submission submission) const;
  // How many jobs before this job haven't ended. For null, how many of all jobs haven't ended.
  std::uint32_t ahead_of(const Job* job) const;
  // The ticket under which the job's submission is being written to the journal. None: the submission is durable.
  std::optional<Ticket> ticket_of(JobId id) const;
  void freeze_figures(Instant now);
  void forget_old_jobs();
  // The identity and the state of the task, without its figures in a job.
  TaskStatus presence(const Task& task, Instant now) const;
  TaskFigures figures(const Task& task, const Job& job, bool is_at_work) const;
  std::vector<TaskStatus> tasks_in_no_job(Instant now) const;
  std::vector<TaskStatus> tasks_in_current_job(Instant now) const;
  std::vector<TaskStatus> tasks_beside(JobId id, Instant now) const;
  std::optional<std::uint64_t> reached_by(const Task& task) const;

  // A task's rank and figures at the end of a job.
  struct AtEnd {
    std::optional<std::uint32_t> rank;
    TaskFigures figures;
  };

  // Constant.
  const ClusterConfig config_;  // its heartbeat timeout may be out of date; timeouts_ has the current one
  const std::uint64_t seed_;

  Timeouts timeouts_;  // the current time limits, which an operator may change
  std::optional<Instant> last_step_;
  Duration slept_{};
  Term term_;
  JournalId journal_;
  const Incarnation self_;
  std::vector<Incarnation> former_chiefs_;  // the chiefs of earlier terms, the newest first
  Tasks tasks_;
  Ticket last_ticket_;
  std::optional<Ticket> term_ticket_;            // the ticket of the term's record, until this record is durable
  std::multimap<Ticket, AnswerClient> answers_;  // answers that wait until the record with the ticket is durable
  std::map<JobId, Ticket> unwritten_jobs_;       // jobs that no client has submitted, until they are durable
  Ticket stop_ticket_;                           // the ticket with which the newest stop or kill went into the journal
  JobId last_job_;
  std::map<JobId, std::unique_ptr<Job>> jobs_;
  std::optional<JobId> current_;
  std::map<JobId, JournaledJob> left_running_;  // until start()
  std::deque<EventRecord> past_events_;         // until start()
  const EventClocks begun_at_;
  std::map<JobId, std::string> unreadable_;          // jobs whose file this version can't parse, and why
  const std::map<JobId, std::uint32_t> crashes_;     // see Setup
  std::map<JobId, std::string> traces_;              // the path of the newest trace of each job that has one
  std::map<JobId, std::map<TaskId, AtEnd>> frozen_;  // of each ended job
};

}  // namespace disttrain::chiefd
