// The chief writes the file, and not the tasks: only the chief needs to see the folder of the event files, and somebody
// has to put the events of all tasks on one time axis. A client that follows a job hears of the job's end only when the
// trace is written, because `disttrain up` ends the chief at that moment. It waits at most 4 seconds longer.
#include "chiefd/traces/job_traces.h"

#include <algorithm>
#include <asio/post.hpp>
#include <string>
#include <utility>
#include <variant>

#include "chiefd/curves/curves.h"
#include "chiefd/traces/trace_report.h"
#include "common/daemon/clock.h"

namespace disttrain::chiefd {
namespace {

// How long a trace may be written before the clients that wait for its job's end are answered without it.
constexpr Duration kLongestWrite = std::chrono::minutes(1);

}  // namespace

JobTraces::JobTraces(asio::io_context& loop, std::function<void(const TraceWritten&)> on_written)
    : loop_(loop),
      on_written_(std::move(on_written)),
      writer_([this](const TraceBook& book, const Result<std::string>& path) { post(trace_report(book, path)); }) {}

JobTraces::~JobTraces() = default;

void JobTraces::look(const Cluster& cluster) {
  watch(cluster);
  take();
}

// Tells the collector which tasks train. Asks for the status of a job without a profile only once, because the status
// of a large job takes long.
void JobTraces::watch(const Cluster& cluster) {
  const std::optional<JobId> job = cluster.current_or_last();
  if (!job || cluster.has_ended(*job) || (watched_ == job && !is_profiled_)) return;
  const JobStatus status = cluster.status(*job, daemon::now());
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
  for (const Member& member : cluster.members_of(*job)) running.members.insert(member.task);
  for (const TaskStatus& task : status.tasks) {
    const bool lives =
        task.state == TaskState::kReady || task.state == TaskState::kRunning || task.state == TaskState::kSilent;
    if (lives && running.members.contains(task.task)) running.living.insert(task.task);
  }
  collector_.watch(running);
}

// A task's first piece may come before the next tick. Its further pieces don't need the status again.
void JobTraces::hear(const Cluster& cluster, const Member& from, const TraceEvents& piece) {
  if (piece.piece == 0) watch(cluster);
  collector_.hear(daemon::now(), from.task, piece);
  take();
}

void JobTraces::end(JobId job) {
  collector_.end(daemon::now(), job);
  take();
}

void JobTraces::note(const EventRecord& event) {
  const Instant now = daemon::now();
  collector_.note({now, now, event.kind, event.text, event.step});
}

void JobTraces::note(const Member& from, const Evaluated& evaluated) {
  const Instant now = daemon::now();
  collector_.note(
      {now, now, "evaluated", to_string(from.task) + ": loss " + std::to_string(evaluated.loss), evaluated.step.value});
}

void JobTraces::note(const FolderWork& work) {
  if (std::holds_alternative<BeginAttempt>(work.work)) attempt_began_ = daemon::now();
  if (std::holds_alternative<CommitAttempt>(work.work)) commit_ticket_ = work.ticket;
}

void JobTraces::note(const FolderDone& done) {
  if (done.ticket != commit_ticket_ || commit_ticket_ == Ticket()) return;
  commit_ticket_ = Ticket();
  const std::string text = done.answer ? done.answer->path : done.answer.error().message;
  collector_.note({attempt_began_, daemon::now(), done.answer ? "checkpoint" : "failed checkpoint", text, 0});
}

void JobTraces::take() {
  std::optional<TraceBook> book = collector_.take(daemon::now());
  if (!book) return;
  written_.push_back({book->job, daemon::now() + kLongestWrite});
  if (book->has_events()) return writer_.write(std::move(*book));
  post(empty_trace_report(*book));
}

void JobTraces::post(TraceWritten written) {
  asio::post(loop_, [this, alive = std::weak_ptr<bool>(is_alive_), written = std::move(written)] {
    if (alive.expired()) return;
    const auto is_it = [&written](const Written& trace) { return trace.job == written.job; };
    if (const auto one = std::ranges::find_if(written_, is_it); one != written_.end()) written_.erase(one);
    on_written_(written);
  });
}

bool JobTraces::awaits(JobId job) const {
  const Instant now = daemon::now();
  return collector_.is_collecting(job) ||
         std::ranges::any_of(written_, [&](const Written& trace) { return trace.job == job && now < trace.deadline; });
}

}  // namespace disttrain::chiefd
