#include "chiefd/core/cluster.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/check.h"
#include "common/mutant.h"

namespace disttrain::chiefd {

Cluster::Cluster(Setup setup)
    : config_(std::move(setup.config)),
      seed_(setup.seed),
      timeouts_(derive_timeouts(config_.heartbeat.timeout)),
      term_(setup.journal.term.next()),
      journal_(setup.journal.journal),
      tasks_(config_, timeouts_),
      last_job_(setup.journal.last_job),
      past_events_(std::move(setup.journal.events)),
      begun_wall_nanoseconds_(setup.wall_nanoseconds) {
  DISTTRAIN_CHECK_NE(journal_.value, 0u);
  for (const auto& [id, recovered] : setup.jobs) {
    Submission submission;
    submission.toml = recovered.journaled.submitted.toml;
    submission.warmup_steps = recovered.journaled.submitted.warmup_steps;
    if (recovered.config) submission.config = *recovered.config;
    submission.config.job.name = recovered.journaled.submitted.name;
    jobs_[id] = std::make_unique<Job>(setup_of(id, std::move(submission)));
    const JobState state = recovered.journaled.state;
    const bool was_running = !is_final(state) && state != JobState::kQueued;
    if (was_running && recovered.config)
      left_running_[id] = recovered.journaled;
    else
      jobs_[id]->restore(recovered.journaled);
    if (!recovered.config) unreadable_[id] = recovered.config.error().message;
  }
}

Actions Cluster::start(Instant now) {
  now = awake(now);
  Actions actions;
  Turn turn = this->turn(now, actions);
  term_ticket_ = turn.persist(TermRecord{journal_, term_});
  turn.persist(
      EventRecord{0, JobId(), "chief_started", "chief/0", 0, "the chief begins, term " + std::to_string(term_.value)});
  for (const auto& [id, journaled] : left_running_) {
    current_ = id;  // one at a time runs
    jobs_.at(id)->recall(now, past_events_, begun_wall_nanoseconds_);
    jobs_.at(id)->take_up(turn, journaled);
  }
  left_running_.clear();
  past_events_.clear();
  for (auto& [id, job] : jobs_) {
    if (is_final(job->state())) continue;
    if (const auto problem = unreadable_.find(id); problem != unreadable_.end()) {
      job->fail(turn, Error{ErrorCode::kConfig, "this version can't read the job: " + problem->second}, std::nullopt);
    }
  }
  if (DISTTRAIN_MUTANT(kTermNotDurable)) actions.push_back(Listen{});
  return actions;
}

Actions Cluster::step(Instant now, const Event& event) {
  now = awake(now);
  Actions actions;
  std::visit([&](const auto& e) { on(now, e, actions); }, event);
  let_leavers_go(now, actions);
  advance_queue(now, actions);
  return actions;
}

// There is a tick within every interval.
Instant Cluster::awake(Instant now) {
  const Duration since = last_step_ ? now - *last_step_ : Duration::zero();
  last_step_ = now;
  if (since > 2 * timeouts_.interval) slept_ += since - timeouts_.interval;
  return now - slept_;
}

Job::Setup Cluster::setup_of(JobId id, Submission submission) const {
  return Job::Setup{id,
                    std::move(submission),
                    timeouts_,
                    config_.transport.credits,
                    static_cast<std::uint32_t>(config_.workers.size()),
                    config_.allow_unlisted_workers,
                    seed_};
}

Job* Cluster::current() {
  return current_ ? jobs_.at(*current_).get() : nullptr;
}

namespace {

const char* kind_of(Finding::What what) {
  switch (what) {
    case Finding::What::kJoined:
      return kTaskJoined;
    case Finding::What::kReturned:
      return "task_returned";
    case Finding::What::kSilent:
      return "task_silent";
    case Finding::What::kLost:
      return "task_lost";
    case Finding::What::kLeft:
      return "task_left";
  }
  return "unknown";
}

}  // namespace

std::string Cluster::name_of_current() {
  const Job* job = current();
  return job != nullptr ? job->name() : "";
}

void Cluster::tell_job(Instant now, const Findings& findings, Actions& actions) {
  for (const Finding& finding : findings) {
    const bool is_good = finding.what != Finding::What::kSilent && finding.what != Finding::What::kLost;
    const std::string text = to_string(finding.member.task) + ": " + finding.why;
    actions.push_back(Note{static_cast<std::uint8_t>(is_good ? 1 : 2), text, kind_of(finding.what), name_of_current()});
    Turn turn = this->turn(now, actions);
    turn.persist(
        EventRecord{0, current_.value_or(JobId()), kind_of(finding.what), to_string(finding.member.task), 0, text});
    if (Job* job = current()) job->on_finding(turn, finding);
  }
}

void Cluster::on(Instant now, const TaskJoined& event, Actions& actions) {
  Findings findings;
  tasks_.join(now, event.hello, findings, actions);
  // What it holds of a job that isn't run any more, by this chief or by a former one.
  const bool is_admitted = tasks_.is_current(event.hello.member);
  if (is_admitted && event.hello.job.value != 0 && event.hello.job != current_)
    tasks_.send(Send{event.hello.member.task,
                     CloseJob{event.hello.job, event.hello.generation, "the chief doesn't run this job any more"},
                     std::nullopt},
                actions);
  Turn turn = this->turn(now, actions);
  if (Job* job = current(); job != nullptr && is_admitted) job->on_reconnect(turn, event.hello);
  tell_job(now, findings, actions);
}

void Cluster::on(Instant now, const ConnectionLost& event, Actions& actions) {
  Findings findings;
  tasks_.lose_connection(now, event.member, event.why, findings, actions);
  tell_job(now, findings, actions);
}

namespace {

struct JobOf {
  template <typename Message>
  JobId operator()(const Message& message) const {
    return message.job;
  }
  JobId operator()(const LeaveRequest&) const { return JobId(); }
};

}  // namespace

void Cluster::on(Instant now, const TaskMessage& event, Actions& actions) {
  if (!tasks_.is_current(event.from)) return;
  if (std::holds_alternative<LeaveRequest>(event.message)) return begin_leave(now, event.from, actions);
  Findings findings;
  const Heartbeat* heartbeat = std::get_if<Heartbeat>(&event.message);
  if (heartbeat != nullptr) {
    tasks_.hear(now, event.from, *heartbeat, findings);
    tasks_.send(Send{event.from.task, HeartbeatAnswer{term_, timeouts_.silent}, std::nullopt}, actions);
  }
  tell_job(now, findings, actions);
  const JobId id = std::visit(JobOf{}, event.message);
  if (current_ == id) {
    Turn turn = this->turn(now, actions);
    current()->on_message(turn, event.from, event.message);
  } else if (heartbeat != nullptr && id.value != 0) {
    tasks_.send(Send{event.from.task, CloseJob{id, heartbeat->generation, "the chief doesn't run this job any more"},
                     std::nullopt},
                actions);
  }
}

void Cluster::begin_leave(Instant now, const Member& member, Actions& actions) {
  const bool is_new = tasks_.begin_leave(member);
  Turn turn = this->turn(now, actions);
  if (is_new) {
    const std::string text = to_string(member.task) + " was told to end";
    actions.push_back(Note{1, text, kTaskLeaves, name_of_current()});
    turn.persist(EventRecord{0, current_.value_or(JobId()), kTaskLeaves, to_string(member.task), 0, text});
  }
  if (Job* job = current()) job->advance_leavers(turn);
}

void Cluster::let_leavers_go(Instant now, Actions& actions) {
  for (const Member& member : tasks_.leaving()) {
    const Job* job = current();
    if (job != nullptr && !job->may_go(member)) continue;
    Findings findings;
    tasks_.let_go(member, findings, actions);
    tell_job(now, findings, actions);
  }
}

void Cluster::on(Instant now, const Reconfigured& event, Actions&) {
  const Timeouts before = std::exchange(timeouts_, derive_timeouts(event.heartbeat_timeout));
  tasks_.forgive_change(now, before);
}

void Cluster::on(Instant now, const ProbeDone& event, Actions& actions) {
  Findings findings;
  tasks_.finish_probe(event.member, event.outcome, findings, actions);
  tell_job(now, findings, actions);
}

namespace {

bool is_same(const Submission& one, const Submission& other) {
  return one.toml == other.toml && one.warmup_steps == other.warmup_steps;
}

// "`epochs = 60` there, `epochs = 5` here": the first lines that differ.
std::string difference(std::string_view there, std::string_view here) {
  const auto take_line = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line;
  };
  while (!there.empty() || !here.empty()) {
    const std::string_view old_line = take_line(there);
    const std::string_view new_line = take_line(here);
    if (old_line != new_line) return "`" + std::string(old_line) + "` there, `" + std::string(new_line) + "` here";
  }
  return "other warm-up steps";
}

}  // namespace

const Job* Cluster::unended(const std::string& name) const {
  for (const auto& [id, job] : jobs_)
    if (!is_final(job->state()) && job->name() == name) return job.get();
  return nullptr;
}

Error Cluster::name_is_taken(const Job& by, const Submit& event) const {
  const std::string is_there =
      "job " + by.name() + " is " + to_string(by.state()) + " already, as number " + std::to_string(by.id().value);
  if (!event.goes_on) return Error{ErrorCode::kConfig, is_there + ": wait for its end, stop it, or set job.name"};
  return Error{
      ErrorCode::kConfig,
      is_there + ", and is another one (" + difference(by.submission().toml, event.submission.toml) +
          "): set job.name for a job of its own, or give the text back to go on with the one that is there. To "
          "be rid of that one, go on with it and `disttrain kill " +
          by.name() + "`, or remove " + config_.chief.state_directory +
          "/journal while no chief runs, which forgets every job of this cluster (not their checkpoints)"};
}

Status Cluster::check_submission(const Submit& event) const {
  const Submission& submission = event.submission;
  if (const Job* namesake = unended(submission.config.job.name)) return tl::unexpected(name_is_taken(*namesake, event));
  const auto waiting = static_cast<std::ptrdiff_t>(queued());
  // With none that runs, the first of them is about to.
  const std::ptrdiff_t most = config_.chief.max_queued_jobs + (current_ ? 0 : 1);
  if (waiting >= most)
    return fail(
        ErrorCode::kTemporary,
        std::to_string(waiting) + " jobs wait already, as many as chief.max_queued_jobs allows: try again later");
  if (config_.ps.empty() || config_.workers.empty())
    return fail(ErrorCode::kConfig, "the cluster file lists no ps or no worker: a job needs at least one of each");
  if (submission.config.job.min_workers > config_.workers.size() && !config_.allow_unlisted_workers)
    return fail(ErrorCode::kConfig, "job.min_workers is " + std::to_string(submission.config.job.min_workers) +
                                        ", but the cluster file lists " + std::to_string(config_.workers.size()) +
                                        " workers");
  return {};
}

std::uint32_t Cluster::ahead_of(const Job* job) const {
  const auto end = job != nullptr ? jobs_.find(job->id()) : jobs_.end();
  return static_cast<std::uint32_t>(
      std::count_if(jobs_.begin(), end, [](const auto& entry) { return !is_final(entry.second->state()); }));
}

void Cluster::on(Instant now, const Submit& event, Actions& actions) {
  const Job* namesake = unended(event.submission.config.job.name);
  if (event.goes_on && namesake != nullptr && is_same(namesake->submission(), event.submission)) {
    const AnswerClient answer{event.client, JobSubmitted{namesake->id(), ahead_of(namesake), true}};
    if (const auto ticket = ticket_of(namesake->id()))
      answers_.emplace(*ticket, answer);
    else
      actions.push_back(answer);
    return;
  }
  if (Status status = check_submission(event); !status) {
    actions.push_back(AnswerClient{event.client, Refused{status.error().code, status.error().message}});
    return;
  }
  const std::uint32_t ahead = ahead_of(nullptr);
  const JobId id = last_job_ = last_job_.next();
  const Submission& submission = event.submission;
  Turn turn = this->turn(now, actions);
  const Ticket ticket =
      turn.persist(SubmittedRecord{id, submission.config.job.name, submission.toml, submission.warmup_steps});
  answers_.emplace(ticket, AnswerClient{event.client, JobSubmitted{id, ahead}});
  jobs_[id] = std::make_unique<Job>(setup_of(id, submission));
  forget_old_jobs();
}

void Cluster::on(Instant now, const chiefd::Stop& event, Actions& actions) {
  const std::optional<JobId> id = find(event.job);
  const auto refuse = [&](ErrorCode code, std::string reason) {
    actions.push_back(AnswerClient{event.client, Refused{code, std::move(reason)}});
  };
  if (!id) return refuse(ErrorCode::kUsage, event.job.empty() ? "no job runs" : "there is no job " + event.job);
  Job& job = *jobs_.at(*id);
  if (is_final(job.state()))
    return refuse(ErrorCode::kUsage, "job " + job.name() + " has ended already: it is " + to_string(job.state()));
  Turn turn = this->turn(now, actions);
  if (event.kill)
    job.kill(turn, event.user);
  else
    job.stop(turn, event.user);
  // A chief that starts after this one must not go on with a job whose end was promised.
  const AnswerClient answer{event.client, RequestDone{}};
  const auto last = std::find_if(actions.rbegin(), actions.rend(),
                                 [](const Action& action) { return std::holds_alternative<Persist>(action); });
  if (last != actions.rend())
    answers_.emplace(std::get<Persist>(*last).ticket, answer);
  else
    actions.push_back(answer);
}

void Cluster::on(Instant now, const Save& event, Actions& actions) {
  const std::optional<JobId> id = find(event.job);
  if (!id || is_final(jobs_.at(*id)->state())) {
    const std::string what = event.job.empty() ? "no job runs" : "there is no job " + event.job + " that runs";
    actions.push_back(AnswerClient{event.client, Refused{ErrorCode::kUsage, what}});
    return;
  }
  Turn turn = this->turn(now, actions);
  jobs_.at(*id)->save(turn, event.client);
}

void Cluster::on(Instant now, const FolderDone& event, Actions& actions) {
  const auto job = jobs_.find(event.job);
  if (job == jobs_.end()) return;
  Turn turn = this->turn(now, actions);
  job->second->on_folder(turn, event);
}

void Cluster::on(Instant now, const Persisted& event, Actions& actions) {
  if (term_ticket_ == event.ticket) {
    term_ticket_.reset();
    actions.push_back(Listen{});
  }
  for (auto answer = answers_.extract(event.ticket); !answer.empty(); answer = answers_.extract(event.ticket))
    actions.push_back(std::move(answer.mapped()));
  Turn turn = this->turn(now, actions);
  for (auto& [id, job] : jobs_) job->on_persisted(turn, event.ticket);
}

void Cluster::on(Instant now, const Tick&, Actions& actions) {
  Findings findings;
  tasks_.tick(now, findings, actions);
  tell_job(now, findings, actions);
  Turn turn = this->turn(now, actions);
  if (Job* job = current()) job->on_tick(turn);
}

void Cluster::advance_queue(Instant now, Actions& actions) {
  while (true) {
    if (Job* job = current()) {
      if (job->is_closing()) freeze_tasks(now);
      if (!job->is_released()) return;
      current_.reset();
    }
    if (term_ticket_) return;
    // A job that isn't durable yet has no business to begin.
    const auto next = std::find_if(jobs_.begin(), jobs_.end(), [this](const auto& entry) {
      return entry.second->state() == JobState::kQueued && !ticket_of(entry.first);
    });
    if (next == jobs_.end()) return;
    current_ = next->first;
    Turn turn = this->turn(now, actions);
    next->second->begin(turn);
  }
}

std::optional<Ticket> Cluster::ticket_of(JobId id) const {
  const auto found = std::find_if(answers_.begin(), answers_.end(), [id](const auto& entry) {
    const JobSubmitted* submitted = std::get_if<JobSubmitted>(&entry.second.answer);
    return submitted != nullptr && submitted->job == id;
  });
  return found == answers_.end() ? std::nullopt : std::optional(found->first);
}

void Cluster::forget_old_jobs() {
  std::size_t ended = 0;
  for (const auto& [id, job] : jobs_) ended += is_final(job->state()) ? 1 : 0;
  for (auto it = jobs_.begin(); it != jobs_.end() && ended > kMaxEndedJobs;) {
    if (!is_final(it->second->state()) || current_ == it->first) {
      ++it;
      continue;
    }
    frozen_.erase(it->first);
    it = jobs_.erase(it);
    --ended;
  }
}

std::optional<JobId> Cluster::current_or_last() const {
  if (current_) return current_;
  std::optional<JobId> last;
  for (const auto& [id, job] : jobs_)
    if (is_final(job->state())) last = id;
  if (!last && !jobs_.empty()) last = jobs_.begin()->first;
  return last;
}

std::optional<JobId> Cluster::find(const std::string& job) const {
  if (job.empty()) return current_or_last();
  std::optional<JobId> found;
  for (const auto& [id, entry] : jobs_) {
    // A number is one job's alone; a name may be all digits.
    if (std::to_string(id.value) == job) return id;
    if (entry->name() == job) found = id;
  }
  return found;
}

std::vector<JobId> Cluster::jobs() const {
  std::vector<JobId> ids;
  for (const auto& [id, job] : jobs_) ids.push_back(id);
  return ids;
}

std::size_t Cluster::queued() const {
  return static_cast<std::size_t>(std::count_if(
      jobs_.begin(), jobs_.end(), [](const auto& entry) { return entry.second->state() == JobState::kQueued; }));
}

bool Cluster::has_ended(JobId job) const {
  return jobs_.at(job)->is_end_durable();
}

TaskStatus Cluster::task_status(const Task& task, Instant now) const {
  TaskStatus status;
  status.task = task.member.task;
  status.is_listed = task.is_listed;
  status.pid = task.hello.pid;
  status.address = task.hello.address;
  status.host = task.hello.host;
  status.metrics = task.hello.metrics;
  status.state = task.state;
  status.reason = task.reason;
  status.losses = task.losses;
  if (task.member.incarnation.value == 0) return status;
  status.heartbeat_age = now - task.last_heard;
  status.step = task.heartbeat.steps;
  status.phase = task.heartbeat.phase;
  status.in_phase = task.heartbeat.in_phase;
  status.phase_times = task.heartbeat.phase_times;
  if (task.heartbeat.pacer) status.step = task.heartbeat.pacer->global_step.value;
  if (current_) {
    const Job& job = *jobs_.at(*current_);
    status.phase_times = job.measured_times(task.member, status.phase_times);
    // A short job may end between two heartbeats; what the worker said when it finished is newer.
    if (task.member.task.role == Role::kWorker) status.step = std::max(status.step, job.steps_of(task.member));
  }
  if (!current_ || task.state != TaskState::kReady) return status;
  if (status.reason.empty()) status.reason = jobs_.at(*current_)->why_kept_out(task.member.task);
  const std::vector<Member> members = jobs_.at(*current_)->members();
  if (std::find(members.begin(), members.end(), task.member) != members.end() && task.heartbeat.job == *current_)
    status.state = TaskState::kRunning;
  return status;
}

std::vector<TaskStatus> Cluster::tasks(Instant now) const {
  std::vector<TaskStatus> statuses;
  for (const auto& [id, task] : tasks_.all()) statuses.push_back(task_status(task, now - slept_));
  return statuses;
}

JobStatus Cluster::status(JobId id, Instant now) const {
  const Job& job = *jobs_.at(id);
  JobStatus status = job.status(now - slept_);
  const auto frozen = frozen_.find(id);
  if (frozen != frozen_.end())
    status.tasks = frozen->second;
  else if (!is_final(job.state()))
    status.tasks = tasks(now);
  return status;
}

// The tasks forget the job's figures as soon as they close it, but those who ask later want them.
void Cluster::freeze_tasks(Instant now) {
  frozen_.try_emplace(*current_, tasks(now + slept_));
}

}  // namespace disttrain::chiefd
