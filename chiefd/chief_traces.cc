// The part of Chief that collects the trace of a job with train.profile_steps and has it written. See chief.h.
#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "chiefd/chief.h"
#include "chiefd/traces/trace_report.h"
#include "common/daemon/clock.h"

namespace disttrain::chiefd {
namespace {

// How long a trace may be written before the clients that wait for its job's end are answered without it.
constexpr Duration kLongestWrite = std::chrono::minutes(1);

}  // namespace

// Tells the collector which tasks train. Asks for the status of a job without a profile only once, because the status
// of a large job takes long.
void Chief::watch_trace() {
  const std::optional<JobId> job = cluster_->current_or_last();
  if (!job || cluster_->has_ended(*job) || (watched_ == job && !is_profiled_)) return;
  const JobStatus status = cluster_->status(*job, daemon::now());
  watched_ = job;
  is_profiled_ = status.profile_steps[1] != 0;
  if (!is_profiled_) return;
  TraceCollector::RunningJob running{.job = *job,
                                     .generation = status.generation,
                                     .name = status.name,
                                     .mode = status.mode,
                                     .steps = status.profile_steps,
                                     .folder = Curves::folder_of(status),
                                     .patience = status.stall_timeout,
                                     .reached = Step(status.global_step)};
  for (const Member& member : cluster_->members_of(*job)) running.members.insert(member.task);
  for (const TaskStatus& task : status.tasks) {
    const bool lives =
        task.state == TaskState::kReady || task.state == TaskState::kRunning || task.state == TaskState::kSilent;
    if (lives && running.members.contains(task.task)) running.living.insert(task.task);
  }
  traces_.watch(running);
}

void Chief::hear_trace(const Member& from, const TraceEvents& piece) {
  // A task's first piece may come before the next tick. Its further pieces don't need the status again.
  if (piece.piece == 0) watch_trace();
  traces_.hear(daemon::now(), from.task, piece);
  take_trace();
}

void Chief::note_evaluation(const Member& from, const Evaluated& evaluated) {
  const Instant now = daemon::now();
  traces_.note(
      {now, now, "evaluated", to_string(from.task) + ": loss " + std::to_string(evaluated.loss), evaluated.step.value});
}

void Chief::note_folder_work(const FolderWork& action) {
  if (std::holds_alternative<BeginAttempt>(action.work)) attempt_began_ = daemon::now();
  if (std::holds_alternative<CommitAttempt>(action.work)) commit_ticket_ = action.ticket;
}

void Chief::note_folder_done(const FolderDone& done) {
  if (done.ticket != commit_ticket_ || commit_ticket_ == Ticket()) return;
  commit_ticket_ = Ticket();
  const std::string text = done.answer ? done.answer->path : done.answer.error().message;
  traces_.note({attempt_began_, daemon::now(), done.answer ? "checkpoint" : "failed checkpoint", text, 0});
}

void Chief::take_trace() {
  std::optional<TraceBook> book = traces_.take(daemon::now());
  if (!book) return;
  written_traces_.push_back({book->job, daemon::now() + kLongestWrite});
  if (book->has_events()) return trace_writer_->write(std::move(*book));
  // The caller may be carrying out actions of the core, which can't take a step meanwhile.
  asio::post(loop_, [this, alive = std::weak_ptr<bool>(is_alive_), written = empty_trace_report(*book)] {
    if (!alive.expired()) finish_trace(written);
  });
}

void Chief::end_trace(JobId job) {
  traces_.end(daemon::now(), job);
  take_trace();
}

JobStatus Chief::job_status(JobId job) const {
  JobStatus status = cluster_->status(job, daemon::now());
  // Before the end is durable, end_trace() hasn't said yet whether a trace is due.
  const bool is_ending = is_final(status.state) && !cluster_->has_ended(job);
  status.is_trace_pending = awaits_trace(job) || (is_ending && status.profile_steps[1] != 0 && status.trace.empty());
  return status;
}

void Chief::finish_trace(const TraceWritten& written) {
  const auto is_it = [&written](const WrittenTrace& trace) { return trace.job == written.job; };
  if (const auto one = std::ranges::find_if(written_traces_, is_it); one != written_traces_.end())
    written_traces_.erase(one);
  step(written);
  if (is_over(written.job)) answer_waiters([&written](const Wait& wait) { return wait.job == written.job; });
}

bool Chief::awaits_trace(JobId job) const {
  const Instant now = daemon::now();
  return traces_.is_collecting(job) || std::ranges::any_of(written_traces_, [&](const WrittenTrace& trace) {
           return trace.job == job && now < trace.deadline;
         });
}

bool Chief::is_over(JobId job) const {
  return !knows(job) || (cluster_->has_ended(job) && !awaits_trace(job));
}

}  // namespace disttrain::chiefd
