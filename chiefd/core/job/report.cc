#include "chiefd/core/job/report.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/job/absent.h"
#include "chiefd/core/job/step_targets.h"
#include "chiefd/core/job/views/absences.h"
#include "chiefd/core/job/views/end.h"
#include "chiefd/core/job/views/evaluations.h"
#include "chiefd/core/job/views/links.h"
#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/recovery.h"
#include "chiefd/core/job/views/start.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::report {
namespace {

void add_progress(const JobFacts& job, JobStatus& status, Instant now) {
  const PacerReport& report = job.progress.report();
  status.global_step = views::reached(job).value;
  status.steps_target = job.progress.steps_at_end()
                            ? *job.progress.steps_at_end()
                            : steps_target(job.setup, job.generation, job.progress, job.workers);
  // In async, pushes that were under way may take the job beyond its target.
  if (status.steps_target != 0) status.steps_target = std::max(status.steps_target, status.global_step);
  status.seconds = job.progress.training_seconds();
  if (status.seconds > 0.0) {
    const Training& before = job.progress.before();
    status.steps_per_second = static_cast<double>(before.steps + report.measured_steps) / status.seconds;
    status.examples_per_second = static_cast<double>(before.examples + report.measured_examples) / status.seconds;
  }
  status.examples = report.examples;
  status.loss = job.progress.loss();
  status.metrics = job.progress.metrics_at_end() ? *job.progress.metrics_at_end()
                                                 : job.worker_figures.mean_metrics(job.workers.roster().members);
  if (report.learning_rate > 0.0) status.learning_rate = report.learning_rate;
  status.epoch = report.complete_epochs;
  status.wires = job.workers.wires();
  status.late = report.late;
  status.skipped = report.skipped;
  status.staleness = report.staleness;
  status.evaluation = job.progress.evaluation();
  status.best = job.evaluations.book.record().best;
  status.evaluations_waiting = views::waiting(job);
  // progress_age stays empty if this chief hasn't seen the job make a step.
  if (job.progress.has_stepped(job.generation.first_step()) && job.progress.moved_at().time_since_epoch().count())
    status.progress_age = now - job.progress.moved_at();
  status.steps_lost = job.rollbacks.steps_lost();
  status.examples_heard = job.progress.examples_heard();
}

JobPart part(const JobFacts& job) {
  switch (job.stage.at()) {
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
    case Stage::kGather:
    case Stage::kDescribe:
    case Stage::kFolder:
    case Stage::kInit:
    case Stage::kRegather:
    case Stage::kFind:
    case Stage::kGeneration:
    case Stage::kCreate:
    case Stage::kOpen:
    case Stage::kRoster:
    case Stage::kTrain:
    case Stage::kSettle:
      break;
  }
  if (job.rollbacks.current()) return JobPart::kRestore;
  if (job.attempts.is_holding()) return JobPart::kCheckpoint;
  const bool trains = job.stage.is(Stage::kTrain) || job.stage.is(Stage::kSettle);
  if (trains && (job.progress.has_stepped(job.generation.first_step()) || job.stage.is(Stage::kSettle)))
    return JobPart::kTrain;
  return job.rollbacks.count() > 0 ? JobPart::kRestore : JobPart::kInit;
}

// The answer that the chief waits for in this stage.
AwaitedFor expected_answer(const JobFacts& job) {
  switch (job.stage.at()) {
    case Stage::kDescribe:
      return AwaitedFor::kDescription;
    case Stage::kCreate:
      return AwaitedFor::kShards;
    case Stage::kOpen:
      return AwaitedFor::kOpen;
    case Stage::kRoster:
      return AwaitedFor::kRoster;
    case Stage::kEvaluate:
      return AwaitedFor::kEvaluation;
    case Stage::kClose:
      return AwaitedFor::kClose;
    default:  // kReclaim, kSettle
      return AwaitedFor::kReport;
  }
}

}  // namespace

JobStatus status(const JobFacts& job, Instant now) {
  JobStatus status;
  status.as_of = now;
  status.job = job.setup.id;
  status.name = job.setup.name();
  status.mode = job.setup.config().train.mode;
  status.state = job.condition.state();
  const bool trains = job.condition.state() == JobState::kRunning && job.stage.is(Stage::kTrain);
  status.reason = trains ? training_reason(job, now) : job.condition.reason();
  if (!job.condition.has_ended()) status.absences = job.absences.current;
  const bool is_long = !status.absences.empty() && now - status.absences.front().since > job.setup.timeouts.silent_ps;
  if (is_long) status.reason += "; " + views::absence_limit_text(job);
  status.generation = job.generation.number();
  status.recoveries = job.rollbacks.count();
  if (job.folder.newest) status.checkpoint = job.folder.newest->path;
  status.code = job.condition.code();
  status.root_cause = job.condition.root_cause();
  status.warnings = job.warnings.all();
  status.part = part(job);
  status.checkpoints = job.stats.figures(now);
  status.checkpoint_directory = job.setup.config().checkpoint.directory;
  status.checkpoint_every = job.setup.config().checkpoint.every;
  status.stall_timeout = job.setup.config().job.stall_timeout;
  status.profile_steps = job.setup.config().train.profile_steps;
  add_progress(job, status, now);
  return status;
}

std::string training_reason(const JobFacts& job, Instant now) {
  const auto count = std::count_if(
      job.workers.roster().members.begin(), job.workers.roster().members.end(),
      [&job](const Member& member) { return !job.workers.is_lost(member) && !job.workers.is_joining(member); });
  std::string reason = "trains with " + std::to_string(count) + (count == 1 ? " worker" : " workers");
  for (const auto& [task, why] : job.candidates.kept_out()) reason += "; " + to_string(task) + " " + why;
  const std::string links = views::broken_links_text(job, now);
  if (!links.empty()) reason += "; " + links;
  const std::string& problem = !job.folder.error.empty() ? job.folder.error : job.schedule.error();
  if (!problem.empty()) reason += "; no checkpoint can be taken: " + problem;
  return reason;
}

std::string why_kept_out(const JobFacts& job, TaskId task, Instant now) {
  const auto found = job.candidates.kept_out().find(task);
  return found == job.candidates.kept_out().end() ? views::links_of(job, now, task) : found->second;
}

std::optional<std::uint64_t> reached_by(const JobFacts& job, const Member& member, const Heartbeat& heartbeat) {
  if (!views::uses(job, member) || heartbeat.job != job.setup.id || heartbeat.generation != job.generation.number())
    return std::nullopt;
  const std::uint64_t steps = std::max(heartbeat.steps, job.worker_figures.steps_of(member));
  if (steps == 0) return std::nullopt;
  return steps;
}

std::vector<Awaited> waits_for(const JobFacts& job, const Tasks& tasks, Instant now) {
  std::vector<Awaited> all;
  const auto add = [&all](const std::vector<Awaited>& some) { all.insert(all.end(), some.begin(), some.end()); };
  if (job.stage.is(Stage::kGather)) add(views::missing_at_start(job, tasks));
  if (job.stage.is(Stage::kRegather)) {
    add(views::missing_ps(job, tasks));
    add(views::missing_workers(job, tasks, now));
  }
  if (job.stage.is(Stage::kReclaim) && !job.stage.awaits_anyone())
    for (const Member& member : views::all_members(job))
      if (!job.reclaim.is_back(member))
        all.push_back(absent(member.task, tasks.find(member.task), job.progress.moved_at()));
  for (const Member& member : views::awaited_evaluators(job, tasks))
    if (job.evaluations.has_order(member)) all.push_back({member.task, AwaitedFor::kEvaluation, job.stage.since()});
  for (const Member& member : job.stage.awaited())
    all.push_back({member.task, expected_answer(job), job.stage.since()});
  for (const auto& [task, silence] : job.pauses.silent_ps())
    all.push_back({task, silence.is_link ? AwaitedFor::kLink : AwaitedFor::kHeartbeat, silence.since});
  if (!job.stage.is(Stage::kTrain)) return all;
  if (job.pauses.is_short()) add(views::missing_in_training(job, tasks));
  if (const std::optional<TaskId> ps = views::leaving_owner(job, tasks); ps && !job.schedule.is_saved())
    all.push_back({*ps, AwaitedFor::kCheckpoint, job.stage.since()});
  if (job.condition.is_stopping())
    for (const Member& worker : job.workers.unfinished())
      all.push_back({worker.task, AwaitedFor::kStepEnd, job.stage.since()});
  return all;
}

}  // namespace disttrain::chiefd::report
