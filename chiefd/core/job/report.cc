#include "chiefd/core/job/report.h"

#include <algorithm>

#include "chiefd/core/job/absent.h"
#include "chiefd/core/job/parts.h"
#include "chiefd/core/job/step_targets.h"

namespace disttrain::chiefd {

JobReport::JobReport(const JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      events_(parts.events),
      progress_(parts.progress),
      rollbacks_(parts.rollbacks),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      worker_figures_(parts.worker_figures),
      pauses_(parts.pauses),
      absences_(parts.absences),
      members_(parts.members),
      reachability_(parts.reachability),
      gathering_(parts.gathering),
      regathering_(parts.regathering),
      reclaim_(parts.reclaim),
      folder_(parts.folder),
      schedule_(parts.schedule),
      stats_(parts.stats),
      checkpointing_(parts.checkpointing),
      quorum_(parts.quorum),
      leaving_(parts.leaving),
      evaluators_(parts.evaluators) {}

Step JobReport::reached() const {
  return events_.reached();
}

JobStatus JobReport::status(Instant now) const {
  JobStatus status;
  status.as_of = now;
  status.job = setup_.id;
  status.name = setup_.name();
  status.mode = setup_.config().train.mode;
  status.state = condition_.state();
  const bool trains = condition_.state() == JobState::kRunning && stage_.is(Stage::kTrain);
  status.reason = trains ? training_reason(now) : condition_.reason();
  if (!condition_.has_ended()) status.absences = absences_.current();
  const bool is_long = !status.absences.empty() && now - status.absences.front().since > setup_.timeouts.silent_ps;
  if (is_long) status.reason += "; " + absences_.limit_text();
  status.generation = generation_.number();
  status.recoveries = rollbacks_.count();
  if (folder_.newest()) status.checkpoint = folder_.newest()->path;
  status.code = condition_.code();
  status.root_cause = condition_.root_cause();
  status.warnings = events_.warnings();
  status.part = part();
  status.checkpoints = stats_.figures(now);
  status.checkpoint_directory = setup_.config().checkpoint.directory;
  status.checkpoint_every = setup_.config().checkpoint.every;
  status.stall_timeout = setup_.config().job.stall_timeout;
  status.profile_steps = setup_.config().train.profile_steps;
  add_progress(status, now);
  return status;
}

void JobReport::add_progress(JobStatus& status, Instant now) const {
  const PacerReport& report = progress_.report();
  status.global_step = reached().value;
  status.steps_target =
      progress_.steps_at_end() ? *progress_.steps_at_end() : steps_target(setup_, generation_, progress_, workers_);
  // In async, pushes that were under way may take the job beyond its target.
  if (status.steps_target != 0) status.steps_target = std::max(status.steps_target, status.global_step);
  status.seconds = progress_.training_seconds();
  if (status.seconds > 0.0) {
    const Training& before = progress_.before();
    status.steps_per_second = static_cast<double>(before.steps + report.measured_steps) / status.seconds;
    status.examples_per_second = static_cast<double>(before.examples + report.measured_examples) / status.seconds;
  }
  status.examples = report.examples;
  status.loss = progress_.loss();
  status.metrics = progress_.metrics_at_end() ? *progress_.metrics_at_end()
                                              : worker_figures_.mean_metrics(workers_.roster().members);
  if (report.learning_rate > 0.0) status.learning_rate = report.learning_rate;
  status.epoch = report.complete_epochs;
  status.wires = workers_.wires();
  status.late = report.late;
  status.skipped = report.skipped;
  status.staleness = report.staleness;
  status.evaluation = progress_.evaluation();
  status.best = evaluators_.book().record().best;
  status.evaluations_waiting = evaluators_.waiting();
  // progress_age stays empty if this chief hasn't seen the job make a step.
  if (progress_.has_stepped(generation_.first_step()) && progress_.moved_at().time_since_epoch().count())
    status.progress_age = now - progress_.moved_at();
  status.steps_lost = rollbacks_.steps_lost();
  status.examples_heard = progress_.examples_heard();
}

std::string JobReport::training_reason(Instant now) const {
  const auto count =
      std::count_if(workers_.roster().members.begin(), workers_.roster().members.end(),
                    [this](const Member& member) { return !workers_.is_lost(member) && !workers_.is_joining(member); });
  std::string reason = "trains with " + std::to_string(count) + (count == 1 ? " worker" : " workers");
  for (const auto& [task, why] : candidates_.kept_out()) reason += "; " + to_string(task) + " " + why;
  const std::string links = reachability_.broken_links_text(now);
  if (!links.empty()) reason += "; " + links;
  const std::string& problem = !folder_.error().empty() ? folder_.error() : schedule_.error();
  if (!problem.empty()) reason += "; no checkpoint can be taken: " + problem;
  return reason;
}

std::string JobReport::why_kept_out(TaskId task, Instant now) const {
  const auto found = candidates_.kept_out().find(task);
  return found == candidates_.kept_out().end() ? reachability_.links_of(now, task) : found->second;
}

std::optional<std::uint64_t> JobReport::reached_by(const Member& member, const Heartbeat& heartbeat) const {
  if (!members_.uses(member) || heartbeat.job != setup_.id || heartbeat.generation != generation_.number())
    return std::nullopt;
  const std::uint64_t steps = std::max(heartbeat.steps, worker_figures_.steps_of(member));
  if (steps == 0) return std::nullopt;
  return steps;
}

JobPart JobReport::part() const {
  switch (stage_.at()) {
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
  if (rollbacks_.current()) return JobPart::kRestore;
  if (checkpointing_.is_holding()) return JobPart::kCheckpoint;
  const bool trains = stage_.is(Stage::kTrain) || stage_.is(Stage::kSettle);
  if (trains && (progress_.has_stepped(generation_.first_step()) || stage_.is(Stage::kSettle))) return JobPart::kTrain;
  return rollbacks_.count() > 0 ? JobPart::kRestore : JobPart::kInit;
}

// The answer that the chief waits for in this stage.
AwaitedFor JobReport::expected_answer() const {
  switch (stage_.at()) {
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

std::vector<Awaited> JobReport::waits_for(const Tasks& tasks, Instant now) const {
  std::vector<Awaited> all;
  const auto add = [&all](const std::vector<Awaited>& some) { all.insert(all.end(), some.begin(), some.end()); };
  if (stage_.is(Stage::kGather)) add(gathering_.missing(tasks));
  if (stage_.is(Stage::kRegather)) {
    add(regathering_.missing_ps(tasks));
    add(regathering_.missing_workers(tasks, now));
  }
  if (stage_.is(Stage::kReclaim) && !stage_.awaits_anyone())
    for (const Member& member : members_.all())
      if (!reclaim_.is_back(member)) all.push_back(absent(member.task, tasks.find(member.task), progress_.moved_at()));
  for (const Member& member : evaluators_.awaited(tasks))
    if (evaluators_.has_order(member)) all.push_back({member.task, AwaitedFor::kEvaluation, stage_.since()});
  for (const Member& member : stage_.awaited()) all.push_back({member.task, expected_answer(), stage_.since()});
  for (const auto& [task, silence] : pauses_.silent_ps())
    all.push_back({task, silence.is_link ? AwaitedFor::kLink : AwaitedFor::kHeartbeat, silence.since});
  if (!stage_.is(Stage::kTrain)) return all;
  if (pauses_.is_short()) add(quorum_.missing(tasks));
  if (const std::optional<TaskId> ps = leaving_.owner(tasks); ps && !schedule_.is_saved())
    all.push_back({*ps, AwaitedFor::kCheckpoint, stage_.since()});
  if (condition_.is_stopping())
    for (const Member& worker : workers_.unfinished())
      all.push_back({worker.task, AwaitedFor::kStepEnd, stage_.since()});
  return all;
}

}  // namespace disttrain::chiefd
