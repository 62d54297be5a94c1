// A fixture: the chief's core, and tasks that the test plays. The fixture's functions send events to the core and
// record the core's actions.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/cluster.h"

namespace disttrain::chiefd {

inline TaskId ps(std::uint32_t index) {
  return TaskId{Role::kPs, index};
}
inline TaskId worker(std::uint32_t index) {
  return TaskId{Role::kWorker, index};
}

class ClusterTest : public testing::Test {
 protected:
  // Starts a chief whose cluster file lists `ps_count` ps tasks and `workers` workers. The chief's records become
  // durable at once, except after hold_disk().
  void start_chief(std::uint32_t ps_count, std::uint32_t workers) {
    config_.ps.resize(ps_count);
    config_.workers.resize(workers);
    for (std::uint32_t i = 0; i < ps_count; ++i) config_.ps[i].address = "host:711" + std::to_string(i);
    for (std::uint32_t i = 0; i < workers; ++i) config_.workers[i].address = "host:712" + std::to_string(i);
    restart_chief();
  }

  // Starts a new chief on the same journal.
  void restart_chief() {
    journal_.journal = JournalId(7);
    Cluster::Setup setup{config_, journal_, {}, 42, clocks()};
    setup.self = Incarnation(70);
    setup.crashes = crashes_;
    for (const auto& [id, job] : journal_.jobs)
      setup.jobs.emplace(id, RecoveredJob{job, configs_.at(job.submitted.toml)});
    cluster_ = std::make_unique<Cluster>(std::move(setup));
    carry_out(cluster_->start(now_));
  }

  void hello(TaskId task, std::uint64_t incarnation = 0) {
    if (incarnation != 0) {
      incarnations_[task] = incarnation;
      heartbeats_[task] = Heartbeat{};
    }
    if (incarnations_[task] == 0) incarnations_[task] = 100 + task.index + (task.role == Role::kPs ? 0 : 50);
    silenced_.erase(task);
    join(hello_of(task));
  }
  // Says hello as the process that lives at the task's address. If another process has the place, the chief probes the
  // address. This process answers the probe, and gets the place.
  void join(const TaskHello& hello) {
    task_refused_.reset();
    step(TaskJoined{hello});
    if (!task_refused_ || task_refused_->code != ErrorCode::kTemporary) return;
    const auto probe = std::find_if(probes_.rbegin(), probes_.rend(),
                                    [&](const Probe& p) { return p.member.task == hello.member.task; });
    if (probe == probes_.rend()) return;
    task_refused_.reset();
    step(ProbeDone{probe->member, ProbeOutcome::kAnswered, hello.member});
    step(TaskJoined{hello});
  }
  TaskHello hello_of(TaskId task) {
    TaskHello hello;
    hello.member = member(task);
    const bool is_listed = task.role == Role::kEvaluator ||
                           task.index < (task.role == Role::kPs ? config_.ps.size() : config_.workers.size());
    if (is_listed) hello.address = address_of(config_, task);
    hello.host = "host";
    hello.pid = pid_of_.count(task) != 0 ? pid_of_[task] : 1000 + task.index;
    hello.shards = task.role == Role::kPs ? 2 : 0;
    if (const auto memory = memory_.find(task); memory != memory_.end()) hello.memory_bytes = memory->second;
    return hello;
  }
  // The task connects again, and says that it still holds its job.
  void hello_again(TaskId task) {
    TaskHello hello = hello_of(task);
    hello.job = heartbeats_[task].job;
    hello.generation = heartbeats_[task].generation;
    hello.token = secrets_[task];
    step(TaskJoined{hello});
  }
  void hello_all() {
    for (std::uint32_t i = 0; i < config_.ps.size(); ++i) hello(ps(i));
    for (std::uint32_t i = 0; i < config_.workers.size(); ++i) hello(worker(i));
  }

  Member member(TaskId task) { return Member{task, Incarnation(incarnations_[task])}; }

  static JobConfig job_config(const std::string& name, Mode mode = Mode::kAsync) {
    JobConfig config;
    config.job.name = name;
    config.train.mode = mode;
    config.train.batch_size = 10;
    config.train.epochs = 1;
    return config;
  }

  // Returns the number of the job, or 0 when it is refused (see refused_).
  JobId submit(const JobConfig& config, bool goes_on = false, std::uint32_t awaited_workers = 0) {
    const std::string toml = "# " + config.job.name;
    configs_.emplace(toml, config);
    const std::size_t answered = answers_.size();
    step(Submit{ClientId(1), Submission{toml, config, 0, awaited_workers}, goes_on});
    return answers_.size() > answered ? answers_.back().job : JobId(0);
  }

  void step(const Event& event) {
    pending_.push_back(event);
    if (pending_.size() > 1) return;  // called from within carry_out
    while (!pending_.empty()) {
      const Actions actions = cluster_->step(now_, pending_.front());
      carry_out(actions);
      pending_.pop_front();
    }
  }
  void say(TaskId from, FromTask message) {
    if (std::holds_alternative<JobClosed>(message)) heartbeats_[from] = Heartbeat{};
    step(TaskMessage{member(from), std::move(message)});
  }

  // Time goes by in ticks of 100 ms. In each tick, every task that isn't silenced sends its heartbeat (see
  // heartbeats_).
  void pass(Duration duration) {
    for (Instant end = now_ + duration; now_ < end;) {
      now_ += std::chrono::milliseconds(100);
      for (const auto& [task, incarnation] : incarnations_)
        if (silenced_.count(task) == 0) say(task, heartbeats_[task]);
      step(Tick{});
    }
  }
  void silence(TaskId task) { silenced_.insert(task); }
  void hear_again(TaskId task) { silenced_.erase(task); }
  void kill(TaskId task) {
    silence(task);
    step(ConnectionLost{member(task), "reset"});
    step(ProbeDone{member(task), ProbeOutcome::kRefused});
  }

  JobStatus status(JobId job) { return cluster_->status(job, now_); }

  // The messages of one kind that were sent to a task, the oldest first.
  template <typename Message>
  std::vector<Message> sent(TaskId to) const {
    std::vector<Message> messages;
    for (const Send& message : sent_)
      if (message.task == to)
        if (const Message* m = std::get_if<Message>(&message.message)) messages.push_back(*m);
    return messages;
  }
  template <typename Message>
  std::size_t count_sent() const {
    return static_cast<std::size_t>(std::count_if(sent_.begin(), sent_.end(), [](const Send& message) {
      return std::holds_alternative<Message>(message.message);
    }));
  }
  const std::vector<Probe>& probes() const { return probes_; }
  // The newest request of one kind to the folder. REQUIRES: there was one.
  template <typename Work>
  Work newest_of() const {
    const auto found = std::find_if(folder_work_.rbegin(), folder_work_.rend(),
                                    [](const FolderWork& work) { return std::holds_alternative<Work>(work.work); });
    return std::get<Work>(found->work);
  }

  std::map<JobId, std::uint32_t> crashes_;  // of former chiefs
  // If true, tasks carry out the chief's orders. Tests can also turn off single answers.
  bool obedient_ = true;
  bool answers_close_ = true;
  bool answers_fence_ = true;
  ModelSpec model_{{VariableSpec{"w", {784, 100}, VariableKind::kTrainable, {}, 784, 100}}, {}, {}, {}};
  std::uint64_t train_hash_ = 0;
  std::uint64_t records_ = 1000;
  std::uint64_t evaluation_records_ = 0;
  std::string described_notice_;
  // Pairs of a worker and a ps between which the link is broken. If the chief asks the worker, the worker reports that
  // it can't reach the ps.
  std::set<std::pair<TaskId, TaskId>> broken_links_;
  PacerReport pacer_;

  ClusterConfig config_;
  std::unique_ptr<Cluster> cluster_;
  JournalState journal_;
  Instant now_{std::chrono::seconds(1000)};
  std::map<TaskId, std::uint32_t> pid_of_;   // of processes that don't have their usual number, 1000 + index
  std::map<TaskId, std::uint64_t> secrets_;  // the tokens that ps tasks hold
  Duration wall_set_by_{};                   // how far the host's wall clock was moved
  EventClocks clocks() const {
    const Duration uptime = now_.time_since_epoch();
    return {(uptime + wall_set_by_).count(), uptime.count()};
  }
  std::map<TaskId, Heartbeat> heartbeats_;
  // The memory in bytes that each ps reports as its limit. A ps that isn't in this map reports none.
  std::map<TaskId, std::uint64_t> memory_;
  std::vector<Send> sent_;
  std::vector<std::string> notes_;
  std::vector<JobId> ended_;
  std::vector<JobSubmitted> answers_;
  std::size_t requests_done_ = 0;
  std::optional<Refused> refused_;
  std::optional<Refused> task_refused_;
  std::vector<Record> records_written_;
  bool disk_is_held_ = false;
  std::vector<FolderWork> folder_work_;
  std::optional<RestorePoint> newest_;
  std::optional<KeptEvaluations> evaluations_;  // what the folder keeps
  std::vector<KeptCheckpoint> kept_;            // the checkpoints that were committed
  std::optional<Error> folder_error_;
  bool folder_is_held_ = false;
  bool folder_is_unlisted_ = false;  // true: the checkpoints in the folder can't be listed
  int listens_ = 0;
  int done_ = 0;

  // Each ps reports that its shards are written.
  void say_written(const PrepareCheckpoint& prepare) {
    for (std::uint32_t i = 0; i < config_.ps.size(); ++i) write_shards(ps(i), prepare);
  }

  void release_disk() {
    disk_is_held_ = false;
    for (Ticket ticket : std::exchange(unwritten_, {})) step(Persisted{ticket});
  }
  void release_folder() {
    folder_is_held_ = false;
    for (const FolderDone& done : std::exchange(folder_done_, {})) step(done);
  }

 private:
  void carry_out(const Actions& actions) {
    for (const Action& action : actions) std::visit([this](const auto& a) { on(a); }, action);
  }
  void on(const Listen&) { ++listens_; }
  void on(const Admit&) {}
  void on(const RefuseTask& refuse) { task_refused_ = refuse.refused; }
  void on(const Disconnect&) {}
  void on(const Probe& probe) { probes_.push_back(probe); }
  void on(const Persist& persist) {
    Record record = persist.record;
    if (auto* event = std::get_if<EventRecord>(&record)) {
      event->wall_nanoseconds = clocks().wall_nanoseconds;
      event->uptime_nanoseconds = clocks().uptime_nanoseconds;
    }
    chiefd::apply(journal_, record);
    records_written_.push_back(record);
    if (disk_is_held_)
      unwritten_.push_back(persist.ticket);
    else
      later(Persisted{persist.ticket});
  }
  void on(const AnswerClient& answer) {
    if (const auto* submitted = std::get_if<JobSubmitted>(&answer.answer)) answers_.push_back(*submitted);
    if (std::holds_alternative<RequestDone>(answer.answer)) ++requests_done_;
    if (const auto* refused = std::get_if<Refused>(&answer.answer)) refused_ = *refused;
    if (std::holds_alternative<RequestDone>(answer.answer)) ++done_;
  }
  void on(const FolderWork& work) {
    folder_work_.push_back(work);
    FolderAnswer answer;
    answer.newest = newest_;
    if (newest_) answer.newest_generation = newest_->generation;
    answer.path = "/attempt";
    if (std::holds_alternative<CommitAttempt>(work.work)) {
      answer.path = "/checkpoint-" + std::to_string(folder_work_.size());
      newest_ =
          RestorePoint{answer.path, std::get<CommitAttempt>(work.work).generation, pacer_.global_step, pacer_, 0, {}};
      kept_.push_back({newest_->generation, newest_->step, newest_->path});
    }
    if (const auto* keep = std::get_if<KeepBest>(&work.work)) {
      answer.exported = keep->best;
      if (keep->evaluations) evaluations_ = keep->evaluations;
      if (evaluations_ && !keep->best.empty()) evaluations_->found.exported = keep->best;
    }
    if (std::holds_alternative<OpenFolder>(work.work)) answer.evaluations = evaluations_;
    if (!folder_is_unlisted_) answer.kept = kept_;
    const FolderDone done{work.job, work.ticket,
                          folder_error_ ? Result<FolderAnswer>(tl::unexpected(*folder_error_)) : answer};
    if (folder_is_held_)
      folder_done_.push_back(done);
    else
      later(done);
  }
  void on(const CloseFolder&) {}
  void on(const JobEnded& ended) { ended_.push_back(ended.job); }
  void on(const Note& note) { notes_.push_back(note.text); }
  void on(const Send& send) {
    if (const auto* create = std::get_if<CreateShards>(&send.message)) secrets_[send.task] = create->token;
    sent_.push_back(send);
    if (silenced_.count(send.task) == 0)
      std::visit([this, &send](const auto& message) { obey(send.task, message); }, send.message);
  }

  void later(const Event& event) {
    if (pending_.empty()) {
      step(event);
    } else {
      pending_.push_back(event);
    }
  }
  void answer(TaskId from, FromTask message) {
    if (obedient_) later(TaskMessage{member(from), std::move(message)});
  }
  void obey(TaskId task, const DescribeJob& m) {
    heartbeats_[task].job = m.job;
    std::vector<Member> unreachable;
    for (const Owner& owner : m.reach)
      if (broken_links_.count({task, owner.ps.task}) != 0) unreachable.push_back(owner.ps);
    answer(task, JobDescribed{.job = m.job,
                              .model = model_,
                              .train_records = records_,
                              .train_hash = train_hash_,
                              .evaluation_records = evaluation_records_,
                              .unreachable = unreachable,
                              .notice = described_notice_});
  }
  void obey(TaskId task, const CreateShards& m) {
    heartbeats_[task].job = m.job;
    heartbeats_[task].generation = m.generation;
    answer(task, ShardsCreated{m.job, m.generation});
  }
  void obey(TaskId task, const OpenJob& m) {
    heartbeats_[task].job = m.job;
    heartbeats_[task].generation = m.generation;
    answer(task, JobOpened{m.job, m.generation});
  }
  void obey(TaskId task, const SetRoster& m) {
    RosterApplied applied{m.job, m.generation, m.roster.version, pacer_.global_step, pacer_};
    for (const auto& [worker, heartbeat] : heartbeats_)
      if (heartbeat.steps > 0) applied.batches.push_back({worker, Step(heartbeat.steps)});
    answer(task, std::move(applied));
  }
  void obey(TaskId task, const FenceWorker& m) {
    if (!answers_fence_) return;
    const CreateShards create = sent<CreateShards>(task).back();
    const std::uint64_t steps = heartbeats_[m.worker.task].steps;
    for (std::uint32_t s = 0; s < create.owners.size(); ++s)
      if (create.owners[s].ps.task == task)
        answer(task, WorkerFenced{m.job, m.generation, ShardId(s), m.worker, Sequence(0), Step(steps)});
  }
  void obey(TaskId task, const CloseJob& m) {
    heartbeats_[task] = Heartbeat{};
    if (answers_close_) return answer(task, JobClosed{m.job});
    heartbeats_[task].job = m.job;  // the task holds the job, and each heartbeat says so
    heartbeats_[task].generation = m.generation;
  }
  void obey(TaskId, const StartJob&) {}
  void obey(TaskId, const LeaseGrant&) {}
  void obey(TaskId, const StopJob&) {}
  void obey(TaskId, const SetEvaluator&) {}
  void obey(TaskId, const Evaluate&) {}
  void obey(TaskId task, const EvaluateCheckpoint& m) {
    heartbeats_[task].job = m.job;
    heartbeats_[task].generation = m.generation;
  }
  void obey(TaskId, const HeartbeatAnswer&) {}
  void obey(TaskId, const PauseJob&) {}
  void obey(TaskId, const LeaveGranted&) {}
  void obey(TaskId task, const PrepareCheckpoint& m) {
    answer(task, CheckpointPrepared{m.job, m.generation, m.attempt});
  }
  void obey(TaskId task, const TakeCut& m) { write_shards(task, m); }
  void obey(TaskId, const MarkChannels& m) {
    for (std::uint32_t i = 0; i < config_.ps.size(); ++i) write_shards(ps(i), m);
  }
  void obey(TaskId, const AbandonCheckpoint&) {}
  template <typename Order>
  void write_shards(TaskId task, const Order& m) {
    if (silenced_.count(task) != 0 || sent<CreateShards>(task).empty()) return;
    const CreateShards create = sent<CreateShards>(task).back();
    for (std::uint32_t s = 0; s < create.owners.size(); ++s) {
      if (create.owners[s].ps.task != task && m.attempt != 0 && !std::is_same_v<Order, TakeCut>) continue;
      ShardWritten written;
      written.job = m.job;
      written.generation = m.generation;
      written.attempt = m.attempt;
      written.shard = ShardId(s);
      written.entry.version = pacer_.global_step;
      if (s == 0) written.pacer = pacer_;
      answer(create.owners[s].ps.task, written);
    }
  }

  std::map<TaskId, std::uint64_t> incarnations_;
  std::set<TaskId> silenced_;
  std::deque<Event> pending_;
  std::vector<Ticket> unwritten_;
  std::vector<FolderDone> folder_done_;
  std::vector<Probe> probes_;
  std::map<std::string, JobConfig> configs_;
};

// A job that trains: 2 ps, `workers` workers, all obedient.
class TrainingTest : public ClusterTest {
 protected:
  JobId train(const JobConfig& config, std::uint32_t workers = 2) {
    start_chief(2, workers);
    hello_all();
    const JobId job = submit(config);
    EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
    return job;
  }
  void report_pacer(std::uint64_t step, std::uint32_t complete_epochs, std::vector<EpochLedger> ledger = {}) {
    pacer_.global_step = Step(step);
    pacer_.complete_epochs = complete_epochs;
    pacer_.ledger = std::move(ledger);
    Heartbeat& heartbeat = heartbeats_[ps(0)];
    heartbeat.pacer = pacer_;
    say(ps(0), heartbeat);
  }
  Generation generation(JobId job) { return journal_.jobs.at(job).generation.generation; }
  void finish(JobId job, TaskId task) { say(task, WorkerFinished{job, generation(job), 10}); }
  void ask(JobId job, TaskId task, double rate = 1e9) { say(task, LeaseRequest{job, generation(job), rate}); }
  void lend_all(JobId job) { lend_all_to(job, worker(0)); }
  void lend_all_to(JobId job, TaskId task) {
    for (int i = 0; i < 100; ++i) ask(job, task);
  }
  std::string event(const std::string& kind) const {
    for (auto event = journal_.events.rbegin(); event != journal_.events.rend(); ++event)
      if (event->kind == kind) return event->text;
    return "no event of this kind";
  }
  std::optional<std::uint64_t> step_of_event(const std::string& kind) const {
    for (auto event = journal_.events.rbegin(); event != journal_.events.rend(); ++event)
      if (event->kind == kind) return event->step;
    return std::nullopt;
  }
  // A new process starts in place of the task's dead one, and says hello.
  void restart(TaskId task) { hello(task, ++last_incarnation_); }

  std::uint64_t last_incarnation_ = 1000;
};

inline std::uint64_t records_of(const std::vector<LeaseGrant>& grants) {
  std::uint64_t records = 0;
  for (const LeaseGrant& grant : grants)
    if (grant.lease)
      for (const Interval& interval : grant.lease->positions) records += interval.end - interval.begin;
  return records;
}

}  // namespace disttrain::chiefd
