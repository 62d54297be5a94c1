// What a job tells of itself. See job.h and status.h.
#include <algorithm>

#include "chiefd/core/job.h"

namespace disttrain::chiefd {

std::uint64_t Job::steps_of(const Member& worker) const {
  const auto steps = worker_steps_.find(worker);
  return steps == worker_steps_.end() ? 0 : steps->second;
}

std::optional<std::uint64_t> Job::reached_by(const Member& member, const Heartbeat& heartbeat) const {
  if (!uses(member) || heartbeat.job != id() || heartbeat.generation != generation_) return std::nullopt;
  const std::uint64_t steps = std::max(heartbeat.steps, steps_of(member));
  if (steps == 0) return std::nullopt;
  return steps;
}

PhaseTimes Job::measured_times(const Member& worker, PhaseTimes times) const {
  const auto before = warmup_times_.find(worker);
  if (before == warmup_times_.end()) return times;
  for (std::size_t i = 0; i < std::min(times.size(), before->second.size()); ++i) times[i] -= before->second[i];
  return times;
}

Step Job::reached() const {
  return recovery_ ? recovery_->step : pacer_report_.global_step;
}

// Who trains it now, who may not, and what fails beside it.
std::string Job::training_reason(Instant now) const {
  const auto count = std::count_if(roster_.members.begin(), roster_.members.end(), [this](const Member& member) {
    return lost_.count(member) == 0 && joining_.count(member) == 0;
  });
  std::string reason = "trains with " + std::to_string(count) + (count == 1 ? " worker" : " workers");
  for (const auto& [task, why] : kept_out_) reason += "; " + to_string(task) + " " + why;
  const std::string links = broken_links_text(now);
  if (!links.empty()) reason += "; " + links;
  const std::string& problem = !folder_error_.empty() ? folder_error_ : attempt_error_;
  if (!problem.empty()) reason += "; no checkpoint can be taken: " + problem;
  return reason;
}

std::string Job::why_kept_out(TaskId task, Instant now) const {
  const auto found = kept_out_.find(task);
  return found == kept_out_.end() ? links_of(now, task) : found->second;
}

// In this generation.
bool Job::has_stepped() const {
  return pacer_report_.global_step > (restore_ ? restore_->step : Step());
}

JobPart Job::part() const {
  switch (stage_) {
    case Stage::kQueued:
    case Stage::kClose:
    case Stage::kReleased:
      return JobPart::kNone;
    case Stage::kReclaim:
      return JobPart::kRestore;
    case Stage::kFinalCut:
      return JobPart::kCheckpoint;
    case Stage::kEvaluate:
      return JobPart::kEvaluate;
    default:
      break;
  }
  if (recovery_) return JobPart::kRestore;
  if (attempt_ && attempt_->holds) return JobPart::kCheckpoint;
  const bool trains = stage_ == Stage::kTrain || stage_ == Stage::kSettle;
  if (trains && (has_stepped() || stage_ == Stage::kSettle)) return JobPart::kTrain;
  return recoveries_ > 0 ? JobPart::kRestore : JobPart::kInit;
}

JobStatus Job::status(Instant now) const {
  JobStatus status;
  status.as_of = now;
  status.job = id();
  status.name = name();
  status.mode = config().train.mode;
  status.state = state_;
  status.reason = state_ == JobState::kRunning && stage_ == Stage::kTrain ? training_reason(now) : reason_;
  status.generation = generation_;
  status.recoveries = recoveries_;
  if (newest_) status.checkpoint = newest_->path;
  status.global_step = reached().value;
  status.steps_target = steps_at_end_ ? *steps_at_end_ : steps_target();
  // In async pushes that were under way may go beyond it.
  if (status.steps_target != 0) status.steps_target = std::max(status.steps_target, status.global_step);
  status.seconds = std::max(0.0, to_seconds(before_.time + pacer_report_.training) - evaluation_seconds_);
  if (status.seconds > 0.0) {
    status.steps_per_second = static_cast<double>(before_.steps + pacer_report_.measured_steps) / status.seconds;
    status.examples_per_second =
        static_cast<double>(before_.examples + pacer_report_.measured_examples) / status.seconds;
  }
  status.examples = pacer_report_.examples;
  status.loss = loss_;
  if (pacer_report_.learning_rate > 0.0) status.learning_rate = pacer_report_.learning_rate;
  status.epoch = pacer_report_.complete_epochs;
  status.late = pacer_report_.late;
  status.skipped = pacer_report_.skipped;
  status.staleness = pacer_report_.staleness;
  status.evaluation = evaluation_;
  status.code = code_;
  status.root_cause = root_cause_;
  status.warnings = warnings_;
  status.part = part();
  // None where it was another chief that heard of the last.
  if (has_stepped() && progress_at_.time_since_epoch().count()) status.progress_age = now - progress_at_;
  status.steps_lost = steps_lost_;
  status.examples_heard = examples_heard_;
  status.checkpoints = figures_;
  if (committed_at_) status.checkpoints.age = now - *committed_at_;
  status.checkpoint_directory = config().checkpoint.directory;
  status.checkpoint_every = config().checkpoint.every;
  return status;
}

}  // namespace disttrain::chiefd
