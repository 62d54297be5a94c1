// The part of Cluster that keeps the queue of jobs, and carries out what clients ask for. See cluster.h.
#include <algorithm>
#include <string_view>
#include <utility>

#include "chiefd/core/cluster.h"
#include "common/mutant.h"

namespace disttrain::chiefd {

namespace {

bool is_same(const Submission& one, const Submission& other) {
  return one.toml == other.toml && one.warmup_steps == other.warmup_steps;
}

// The first lines in which two job files differ, such as "that job has `epochs = 60`, this file has `epochs = 5`".
// `there` is the file of the job that exists, and `here` is the submitted file.
std::string difference(std::string_view there, std::string_view here) {
  const auto take_line = [](std::string_view& text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line;
  };
  while (!there.empty() || !here.empty()) {
    const std::string_view old_line = take_line(there);
    const std::string_view new_line = take_line(here);
    if (old_line != new_line)
      return "that job has `" + std::string(old_line) + "`, this file has `" + std::string(new_line) + "`";
  }
  return "the number of warm-up steps";
}

}  // namespace

const Job* Cluster::unended(const std::string& name) const {
  for (const auto& [id, job] : jobs_)
    if (!is_final(job->state()) && job->name() == name) return job.get();
  return nullptr;
}

Error Cluster::name_is_taken(const Job& by, const Submission& submission, bool goes_on) const {
  const std::string is_there =
      "job " + by.name() + " (number " + std::to_string(by.id().value) + ") is " + to_string(by.state()) + " already";
  if (!goes_on)
    return Error{ErrorCode::kConfig,
                 is_there + ": wait until it has ended, stop it, or give the new job another name with job.name"};
  return Error{ErrorCode::kConfig,
               is_there + ", and its file differs from this one (" + difference(by.submission().toml, submission.toml) +
                   "): set job.name to start a second job, or submit the unchanged file to go on with the first job. "
                   "To end the first job, submit the unchanged file and then run `disttrain kill " +
                   by.name() + "`. Or, while no chief runs, remove " + config_.chief.state_directory + "/journal and " +
                   config_.chief.state_directory +
                   "/journal.mark: the cluster then forgets all its jobs, but keeps their checkpoints"};
}

Status Cluster::check_submission(const Submission& submission, bool goes_on) const {
  if (const Job* namesake = unended(submission.config.job.name))
    return tl::unexpected(name_is_taken(*namesake, submission, goes_on));
  const auto waiting = static_cast<std::ptrdiff_t>(queued());
  // If no job is running, the first job in the queue begins at once, so the limit doesn't count it.
  const std::ptrdiff_t most = config_.chief.max_queued_jobs + (current_ ? 0 : 1);
  if (waiting >= most)
    return fail(
        ErrorCode::kTemporary,
        std::to_string(waiting) + " jobs already wait, and chief.max_queued_jobs allows no more: try again later");
  if (config_.ps.empty() || config_.workers.empty())
    return fail(ErrorCode::kConfig, "the cluster file lists no ps or no worker: a job needs at least one of each");
  if (submission.config.job.min_workers > config_.workers.size() && !config_.allow_unlisted_workers)
    return fail(ErrorCode::kConfig, "job.min_workers is " + std::to_string(submission.config.job.min_workers) +
                                        ", but the cluster file lists " + std::to_string(config_.workers.size()) +
                                        " workers");
  const EvaluateSection& evaluate = submission.config.evaluate;
  const bool has_evaluators = !config_.evaluators.empty() && !submission.config.checkpoint.directory.empty();
  if (evaluate.stop_after > 0 && evaluate.every_steps == 0 && !has_evaluators)
    return fail(ErrorCode::kConfig,
                "evaluate.stop_after is " + std::to_string(evaluate.stop_after) +
                    ", but nothing evaluates while the job trains: set evaluate.every_steps, or checkpoint.directory "
                    "in a cluster with an [[evaluator]]");
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
  if (Status status = check_submission(event.submission, event.goes_on); !status) {
    actions.push_back(AnswerClient{event.client, Refused{status.error().code, status.error().message}});
    return;
  }
  const std::uint32_t ahead = ahead_of(nullptr);
  const Ticket ticket = enqueue(now, event.submission, actions);
  answers_.emplace(ticket, AnswerClient{event.client, JobSubmitted{last_job_, ahead}});
  if (DISTTRAIN_MUTANT(kAcceptedBeforeDurable))
    actions.push_back(AnswerClient{event.client, JobSubmitted{last_job_, ahead}});
}

Ticket Cluster::enqueue(Instant now, Submission submission, Actions& actions) {
  const JobId id = last_job_ = last_job_.next();
  let_go_on(submission);
  Turn turn = this->turn(now, actions);
  const Ticket ticket =
      turn.persist(SubmittedRecord{id, submission.config.job.name, submission.toml, submission.warmup_steps,
                                   submission.awaited_workers, submission.resubmit_of, submission.resubmits});
  jobs_[id] = std::make_unique<Job>(setup_of(id, std::move(submission)));
  forget_old_jobs();
  return ticket;
}

// ---- jobs that are submitted again

Status Cluster::check_resubmission(const std::string& name, const std::optional<JobId>& id) const {
  if (!id) return fail(ErrorCode::kUsage, name.empty() ? "no job was submitted yet" : "there is no job " + name);
  const Job& job = *jobs_.at(*id);
  const std::string which = "job " + job.name() + " (number " + std::to_string(id->value) + ")";
  if (!is_final(job.state()))
    return fail(ErrorCode::kUsage, which + " is " + to_string(job.state()) +
                                       ": only a job that has failed or was stopped can be submitted again");
  if (job.state() == JobState::kFinished)
    return fail(ErrorCode::kUsage, which +
                                       " has finished, so nothing of it is left to do: to train it further, submit "
                                       "its file with more steps or epochs");
  if (const auto unreadable = unreadable_.find(*id); unreadable != unreadable_.end())
    return fail(ErrorCode::kConfig,
                "this version of chiefd can't read the file of " + which + ": " + unreadable->second);
  if (job.submission().config.checkpoint.directory.empty())
    return fail(ErrorCode::kUsage, which +
                                       " takes no checkpoints, so there is nothing to go on from: to begin anew, "
                                       "submit its file");
  return check_submission(job.submission(), false);
}

void Cluster::on(Instant now, const Resubmit& event, Actions& actions) {
  const std::optional<JobId> id = find(event.job);
  if (const Status status = check_resubmission(event.job, id); !status) {
    actions.push_back(AnswerClient{event.client, Refused{status.error().code, status.error().message}});
    return;
  }
  const std::uint32_t ahead = ahead_of(nullptr);
  Submission submission = jobs_.at(*id)->submission();
  submission.resubmit_of = *id;
  submission.resubmits = 0;
  const Ticket ticket = enqueue(now, std::move(submission), actions);
  answers_.emplace(ticket, AnswerClient{event.client, JobSubmitted{last_job_, ahead}});
}

// checkpoint.restore = "none" says that the folder is empty when a user submits the file. The checkpoints that are
// there now are of the earlier job, unless that job has failed because of them.
void Cluster::let_go_on(Submission& submission) const {
  const auto earlier = jobs_.find(submission.resubmit_of);
  if (earlier == jobs_.end()) return;
  const Job& job = *earlier->second;
  if (job.generation().value != 0 || job.submission().config.checkpoint.restore == Restore::kNewest)
    submission.config.checkpoint.restore = Restore::kNewest;
}

// The job is submitted in the same step in which it fails. So a client that hears of the failure hears of the next job
// too, and no other job can take the name in between.
void Cluster::resubmit_failed(Instant now, JobId id, Actions& actions) {
  const auto failed = jobs_.find(id);
  if (failed == jobs_.end() || crashes_the_chief(id)) return;
  const Job& job = *failed->second;
  const JobSection& rules = job.submission().config.job;
  if (rules.on_failure != OnFailure::kResubmit || job.state() != JobState::kFailed || !job.may_succeed_later()) return;
  // Only the newest job of its name. A user may have submitted the job again already.
  const auto is_later = [&](const auto& entry) { return entry.first > id && entry.second->name() == job.name(); };
  if (std::any_of(jobs_.begin(), jobs_.end(), is_later)) return;
  const std::uint32_t resubmits = job.submission().resubmits;
  if (resubmits >= rules.max_resubmits) return;
  Submission submission = job.submission();
  submission.resubmit_of = id;
  ++submission.resubmits;
  const std::string name = job.name();
  const std::uint64_t step = job.reached().value;
  const std::string bound = std::to_string(rules.max_resubmits);
  const Ticket ticket = enqueue(now, std::move(submission), actions);  // may forget the failed job
  unwritten_jobs_[last_job_] = ticket;
  const std::string text = "the job has failed and is submitted again as job " + std::to_string(last_job_.value) +
                           "; this is number " + std::to_string(resubmits + 1) + " of at most " + bound +
                           " (job.max_resubmits)";
  actions.push_back(Note{2, "job " + name + " (" + std::to_string(id.value) + "): " + text, kResubmitted, name, step});
  Turn turn = this->turn(now, actions);
  turn.persist(EventRecord{0, id, kResubmitted, "", step, text});
}

bool Cluster::crashes_the_chief(JobId id) const {
  const auto crashes = crashes_.find(id);
  return crashes != crashes_.end() && crashes->second >= kMostCrashes;
}

std::optional<JobId> Cluster::successor(JobId id) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [id](const auto& entry) { return entry.second->submission().resubmit_of == id; });
  return found == jobs_.end() ? std::nullopt : std::optional(found->first);
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
  // Answer the client only when the stop is durable. Otherwise a restarted chief could go on with the job, although the
  // client was told that the job ends.
  const AnswerClient answer{event.client, RequestDone{}};
  const auto last = std::find_if(actions.rbegin(), actions.rend(),
                                 [](const Action& action) { return std::holds_alternative<Persist>(action); });
  if (last != actions.rend()) stop_ticket_ = std::get<Persist>(*last).ticket;
  // If a second client stops the same job, its answer waits for the record of the first stop.
  if (last != actions.rend() || answers_.count(stop_ticket_) != 0)
    answers_.emplace(stop_ticket_, answer);
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

// ---- the queue

void Cluster::advance_queue(Instant now, Actions& actions) {
  while (true) {
    if (Job* job = current()) {
      if (job->has_told_to_close()) freeze_figures(now);
      if (!job->is_released()) return;
      current_.reset();
    }
    if (term_ticket_) return;
    // A job begins only when the record of its submission is durable.
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
  if (found != answers_.end()) return found->first;
  const auto unwritten = unwritten_jobs_.find(id);
  return unwritten == unwritten_jobs_.end() ? std::nullopt : std::optional(unwritten->second);
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
    traces_.erase(it->first);
    it = jobs_.erase(it);
    --ended;
  }
}

std::optional<JobId> Cluster::current_or_last() const {
  if (current_) return current_;
  std::optional<JobId> ran;
  std::optional<JobId> ended;
  for (const auto& [id, job] : jobs_) {
    if (!is_final(job->state())) continue;
    ended = id;
    if (job->has_begun()) ran = id;
  }
  if (ran || ended) return ran ? ran : ended;
  return jobs_.empty() ? std::nullopt : std::optional(jobs_.begin()->first);
}

std::optional<JobId> Cluster::find(const std::string& job) const {
  if (job.empty()) return current_or_last();
  std::optional<JobId> found;
  for (const auto& [id, entry] : jobs_) {
    // A number takes precedence over a name that consists of digits, because a number belongs to one job only.
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

}  // namespace disttrain::chiefd
