#include "chiefd/core/cluster.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "common/check.h"
#include "common/mutant.h"

namespace disttrain::chiefd {

Cluster::Cluster(Setup setup)
    : config_(std::move(setup.config)),
      seed_(setup.seed),
      timeouts_(derive_timeouts(config_.heartbeat.timeout,
                                config_.ps.size() + config_.workers.size() + config_.evaluators.size())),
      term_(setup.journal.term.next()),
      journal_(setup.journal.journal),
      self_(setup.self),
      tasks_(config_, timeouts_),
      last_job_(setup.journal.last_job),
      past_events_(std::move(setup.journal.events)),
      begun_at_(setup.clocks),
      crashes_(std::move(setup.crashes)) {
  DISTTRAIN_CHECK_NE(journal_.value, 0u);
  const auto& chiefs = setup.journal.chiefs;
  for (Term term = setup.journal.term; chiefs.count(term) != 0 && former_chiefs_.size() < kMaxFormerChiefs;
       term = Term(term.value - 1))
    former_chiefs_.push_back(chiefs.at(term));
  for (const auto& [id, recovered] : setup.jobs) {
    Submission submission;
    submission.toml = recovered.journaled.submitted.toml;
    submission.warmup_steps = recovered.journaled.submitted.warmup_steps;
    submission.awaited_workers = recovered.journaled.submitted.awaited_workers;
    submission.resubmit_of = recovered.journaled.submitted.resubmit_of;
    submission.resubmits = recovered.journaled.submitted.resubmits;
    if (recovered.config) submission.config = *recovered.config;
    submission.config.job.name = recovered.journaled.submitted.name;
    let_go_on(submission);
    jobs_[id] = std::make_unique<Job>(setup_of(id, std::move(submission)));
    const JobState state = recovered.journaled.state;
    const bool was_running = !is_final(state) && state != JobState::kQueued;
    if (was_running && recovered.config && !crashes_the_chief(id))
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
  term_ticket_ = turn.persist(TermRecord{journal_, term_, self_});
  turn.persist(
      EventRecord{0, JobId(), "chief_started", "chief/0", 0, "the chief begins, term " + std::to_string(term_.value)});
  for (const auto& [id, journaled] : left_running_) {
    current_ = id;  // only one job runs at a time
    jobs_.at(id)->recall(now, past_events_, begun_at_);
    jobs_.at(id)->take_up(turn, journaled);
  }
  left_running_.clear();
  past_events_.clear();
  for (auto& [id, job] : jobs_) {
    if (is_final(job->state())) continue;
    if (const auto problem = unreadable_.find(id); problem != unreadable_.end()) {
      job->fail(turn, Error{ErrorCode::kConfig, "this version of chiefd can't read the job's file: " + problem->second},
                std::nullopt);
    } else if (crashes_the_chief(id)) {
      job->fail(
          turn,
          Error{
              ErrorCode::kSoftware,
              "the chief has crashed " + std::to_string(crashes_.at(id)) +
                  " times while it worked for this job, so it goes on without the job: the line \"crashed\" in the "
                  "chief's log has the reason. To try it again: " +
                  (job->submission().config.checkpoint.directory.empty() ? "submit its file"
                                                                         : "`disttrain resubmit " + job->name() + "`")},
          std::nullopt);
    }
  }
  // The former chief may have died after it wrote that a job has failed, and before it wrote the next submission.
  for (const JobId id : jobs()) resubmit_failed(now, id, actions);
  if (DISTTRAIN_MUTANT(kTermNotDurable)) actions.push_back(Listen{});
  return actions;
}

Actions Cluster::step(Instant now, const Event& event) {
  now = awake(now);
  Actions actions;
  std::visit([&](const auto& e) { on(now, e, actions); }, event);
  if (current_) resubmit_failed(now, *current_, actions);
  let_leavers_go(now, actions);
  advance_queue(now, actions);
#ifdef DISTTRAIN_CHECK_EACH_STEP
  DISTTRAIN_CHECK_EQ(broken_invariant().value_or(""), "");
#endif
  return actions;
}

std::optional<std::string> Cluster::broken_invariant() const {
  for (const auto& [id, job] : jobs_)
    if (auto broken = job->broken_invariant()) return broken;
  return std::nullopt;
}

// A tick comes at least once per heartbeat interval. So if there was no event for more than two heartbeat intervals,
// the chief's process was stopped or its host was suspended.
Instant Cluster::awake(Instant now) {
  const Duration since = last_step_ ? now - *last_step_ : Duration::zero();
  last_step_ = now;
  if (term_ticket_)
    slept_ += since;  // the chief doesn't listen yet, so no task can be blamed for its silence in this time
  else if (since > 2 * timeouts_.interval)
    slept_ += since - timeouts_.interval;
  return now - slept_;
}

Job::Setup Cluster::setup_of(JobId id, Submission submission) const {
  return Job::Setup{id,
                    std::move(submission),
                    timeouts_,
                    config_.transport.credits,
                    static_cast<std::uint32_t>(config_.workers.size()),
                    config_.allow_unlisted_workers,
                    seed_,
                    journal_,
                    static_cast<std::uint32_t>(config_.evaluators.size())};
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

std::string Cluster::why_disobeyed(const TaskHello& hello) const {
  const bool is_newer = hello.term > term_;
  const bool is_rival = hello.term == term_ && hello.chief != self_ && hello.chief.value != 0 && self_.value != 0;
  if (hello.journal != journal_ || (!is_newer && !is_rival)) return "";
  return to_string(hello.member.task) + " obeys another chief, which has the same journal and term " +
         std::to_string(hello.term.value) + "; this chief has term " + std::to_string(term_.value) +
         ": this chief's state directory is an old copy, or the other chief runs on a copy of this directory. Stop "
         "this chief, and start the chief that has the newest state directory. If that directory is lost, restart all "
         "ps and workers; they then obey this chief";
}

void Cluster::on(Instant now, const TaskJoined& event, Actions& actions) {
  if (const std::string why = why_disobeyed(event.hello); !why.empty())
    return tasks_.turn_away(event.hello, why, actions);
  Findings findings;
  tasks_.join(now, event.hello, event.peer_host, findings, actions);
  timeouts_.heartbeat = heartbeat_pause(timeouts_.silent, tasks_.all().size());  // more workers may have joined
  // If the task still holds a job that this chief doesn't run any more, tell the task to release that job.
  const bool is_admitted = tasks_.is_current(event.hello.member);
  if (is_admitted && event.hello.job.value != 0 && event.hello.job != current_) {
    tasks_.note_unreleased(event.hello.member, event.hello.job);
    tasks_.send(Send{event.hello.member.task,
                     CloseJob{event.hello.job, event.hello.generation, "the chief doesn't run this job any more"}},
                actions);
  }
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
    tasks_.send(
        Send{event.from.task, HeartbeatAnswer{term_, timeouts_.silent, heartbeat->clock, {}, timeouts_.heartbeat}},
        actions);
  }
  const JobId id = std::visit(JobOf{}, event.message);
  if (heartbeat != nullptr) tasks_.note_holds(event.from, id, findings);
  if (std::holds_alternative<JobClosed>(event.message)) tasks_.note_released(event.from, id, findings);
  tell_job(now, findings, actions);
  if (current_ == id) {
    Turn turn = this->turn(now, actions);
    current()->on_message(turn, event.from, event.message);
  } else if (heartbeat != nullptr && id.value != 0) {
    tasks_.note_unreleased(event.from, id);
    tasks_.send(Send{event.from.task, CloseJob{id, heartbeat->generation, "the chief doesn't run this job any more"}},
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
  const Timeouts before = std::exchange(timeouts_, derive_timeouts(event.heartbeat_timeout, tasks_.all().size()));
  tasks_.forgive_change(now, before);
}

void Cluster::on(Instant now, const ProbeDone& event, Actions& actions) {
  Findings findings;
  tasks_.finish_probe(event, findings, actions);
  tell_job(now, findings, actions);
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
  std::erase_if(unwritten_jobs_, [&event](const auto& entry) { return entry.second == event.ticket; });
  for (auto answer = answers_.extract(event.ticket); !answer.empty(); answer = answers_.extract(event.ticket))
    actions.push_back(std::move(answer.mapped()));
  Turn turn = this->turn(now, actions);
  for (auto& [id, job] : jobs_) job->on_persisted(turn, event.ticket);
}

void Cluster::on(Instant now, const TraceWritten& event, Actions& actions) {
  const auto job = jobs_.find(event.job);
  if (job == jobs_.end()) return;
  if (!event.path.empty()) traces_[event.job] = event.path;
  const char* const kind = event.path.empty() ? "trace_failed" : "trace_written";
  const std::uint64_t step = job->second->reached().value;
  const std::uint8_t level = event.path.empty() || !event.is_whole ? 2 : 1;
  actions.push_back(Note{level,
                         "job " + job->second->name() + " (" + std::to_string(event.job.value) + "): " + event.text,
                         kind, job->second->name(), step});
  Turn turn = this->turn(now, actions);
  turn.persist(EventRecord{0, event.job, kind, "", step, event.text});
}

void Cluster::on(Instant now, const Tick&, Actions& actions) {
  Findings findings;
  tasks_.tick(now, findings, actions);
  tell_job(now, findings, actions);
  Turn turn = this->turn(now, actions);
  if (Job* job = current()) job->on_tick(turn);
}

}  // namespace disttrain::chiefd
