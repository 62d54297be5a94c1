#include "chiefd/chief_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/metrics/families.h"
#include "common/metrics/process.h"

namespace disttrain::chiefd {

using metrics::Page;

namespace {

const std::string kSelf = "chief/0";

double unix_time(double unix_now, const std::optional<Duration>& age) {
  return age ? unix_now - to_seconds(*age) : 0.0;
}

void collect_evaluation(const std::string& job, const EvaluationStatus& evaluation, Page& page) {
  page.set(metrics::kEvaluationLoss, {job}, evaluation.loss);
  const std::optional<double> accuracy = value_of(evaluation.metrics, "accuracy");
  if (accuracy) page.set(metrics::kEvaluationAccuracy, {job}, *accuracy);
  for (const MetricValue& metric : evaluation.metrics)
    page.set(metrics::kEvaluationMetric, {job, metric.name}, metric.value);
}

}  // namespace

bool is_up(const TaskStatus& task) {
  return task.state == TaskState::kReady || task.state == TaskState::kRunning || task.state == TaskState::kBusy;
}

ChiefMetrics::ChiefMetrics(const ClusterConfig& config, const Cluster& cluster)
    : config_(config),
      cluster_(cluster),
      requests_({"Hello",         "JobDescribed",     "ShardsCreated", "JobOpened",
                 "RosterApplied", "WorkerFenced",     "LeaseRequest",  "WorkerFinished",
                 "Evaluated",     "EvaluationFailed", "JobClosed",     "TaskFailed",
                 "Accusation",    "Heartbeat",        "LogLines",      "CheckpointPrepared",
                 "ShardWritten",  "CheckpointFailed", "LeaveRequest",  "CheckpointRequest",
                 "TraceEvents",   "SubmitJob",        "StatusRequest", "StopRequest",
                 "LogsRequest",   "SaveRequest",      "EventsRequest", "ResubmitRequest"}) {
  for (const JobState state : {JobState::kFinished, JobState::kFailed, JobState::kStopped})
    ended_[to_string(state)] = 0;
}

void ChiefMetrics::hear(const EventRecord& event) {
  const auto ended = ended_.find(event.kind);
  if (ended != ended_.end()) ++ended->second;
}

void ChiefMetrics::look(Instant now) {
  const std::optional<JobId> job = cluster_.current_or_last();
  if (!job) return;
  if (job != job_) goodput_ = Goodput();
  job_ = job;
  goodput_.look(now, cluster_.status(*job, now), config_.heartbeat.timeout);
}

void ChiefMetrics::collect(Instant now, std::int64_t wall_nanoseconds, Page& page) const {
  const double unix_now = static_cast<double>(wall_nanoseconds) * 1e-9;
  page.set(metrics::kLeader, 1);
  page.set(metrics::kJobsQueued, static_cast<double>(cluster_.queued()));
  for (const auto& [state, count] : ended_) page.set(metrics::kJobsEnded, {state}, static_cast<double>(count));
  collect_tasks(now, unix_now, page);
  requests_.collect(page, kSelf);
  page.add_folder(kSelf, "state", config_.chief.state_directory);
  if (const std::optional<JobId> job = cluster_.current_or_last())
    collect_job(cluster_.status(*job, now), unix_now, page);
}

void ChiefMetrics::collect_tasks(Instant now, double unix_now, Page& page) const {
  double ps_up = 0;
  double workers_up = 0;
  double evaluators_up = 0;
  double unlisted_up = 0;
  for (const TaskStatus& task : cluster_.tasks(now)) {
    const std::string name = to_string(task.task);
    if (task.is_listed) page.set(metrics::kTaskUp, {name}, is_up(task) ? 1 : 0);
    page.set(metrics::kTaskHeartbeat, {name}, unix_time(unix_now, task.heartbeat_age));
    const auto hash = hashes_.find(task.task);
    if (hash != hashes_.end()) page.set(metrics::kTaskConfigInfo, {name, metrics::hash_text(hash->second)}, 1);
    const std::array<std::pair<const char*, std::uint64_t>, 4> losses = {{{"crash", task.losses.crash},
                                                                          {"silent", task.losses.silent},
                                                                          {"left", task.losses.left},
                                                                          {"replaced", task.losses.replaced}}};
    for (const auto& [reason, count] : losses) page.set(metrics::kRestarts, {name, reason}, static_cast<double>(count));
    if (!is_up(task)) continue;
    if (!task.is_listed)
      ++unlisted_up;
    else
      ++(task.task.role == Role::kPs ? ps_up : task.task.role == Role::kWorker ? workers_up : evaluators_up);
  }
  page.set(metrics::kTasksExpected, {"ps"}, static_cast<double>(config_.ps.size()));
  page.set(metrics::kTasksExpected, {"worker"}, static_cast<double>(config_.workers.size()));
  page.set(metrics::kTasksExpected, {"evaluator"}, static_cast<double>(config_.evaluators.size()));
  page.set(metrics::kTasksReady, {"ps"}, ps_up);
  page.set(metrics::kTasksReady, {"evaluator"}, evaluators_up);
  page.set(metrics::kTasksReady, {"worker"}, workers_up);
  page.set(metrics::kUnlistedReady, unlisted_up);
}

void ChiefMetrics::collect_job(const JobStatus& status, double unix_now, Page& page) const {
  const std::string& job = status.name;
  const auto count = [](auto number) { return static_cast<double>(number); };
  page.set(metrics::kGlobalStep, {job}, count(status.global_step));
  page.set(metrics::kStepsTarget, {job}, count(status.steps_target));
  page.set(metrics::kGeneration, {job}, count(status.generation.value));
  page.set(metrics::kExamples, {job}, count(status.examples_heard));
  if (status.learning_rate) page.set(metrics::kLearningRate, {job}, *status.learning_rate);
  if (status.loss) page.set(metrics::kLoss, {job}, *status.loss);
  for (const MetricValue& metric : status.metrics) page.set(metrics::kTrainMetric, {job, metric.name}, metric.value);
  if (status.evaluation) collect_evaluation(job, *status.evaluation, page);
  page.set(metrics::kEvaluationsWaiting, {job}, count(status.evaluations_waiting));
  page.set(metrics::kLastProgress, {job}, unix_time(unix_now, status.progress_age));
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(JobState::kStopped); ++i) {
    const auto state = static_cast<JobState>(i);
    page.set(metrics::kJobState, {job, to_string(state)}, state == status.state ? 1 : 0);
  }
  for (const auto& [role, name] : {std::pair(Role::kPs, "ps"), std::pair(Role::kWorker, "worker")}) {
    const auto is_it = [role = role](const Absence& absence) { return absence.role == role; };
    const auto absence = std::find_if(status.absences.begin(), status.absences.end(), is_it);
    const bool is_one = absence != status.absences.end();
    page.set(metrics::kJobAbsence, {job, name}, is_one ? to_seconds(status.as_of - absence->since) : 0.0);
    page.set(metrics::kJobAbsenceLimit, {job, name},
             is_one ? to_seconds(absence->limit.value_or(Duration::zero())) : 0.0);
  }
  for (std::uint8_t i = 0; i < kUses; ++i)
    page.set(metrics::kGoodput, {job, to_string(static_cast<Use>(i))},
             status.job == job_ ? to_seconds(goodput_.of(static_cast<Use>(i))) : 0.0);
  page.set(metrics::kRecoveries, {job}, count(status.recoveries));
  page.set(metrics::kStepsLost, {job}, count(status.steps_lost));
  collect_checkpoints(status, unix_now, page);
}

void ChiefMetrics::collect_checkpoints(const JobStatus& status, double unix_now, Page& page) const {
  const std::string& job = status.name;
  const CheckpointFigures& figures = status.checkpoints;
  page.set(metrics::kCheckpointSeconds, {job, "cut"}, figures.cut);
  page.set(metrics::kCheckpointSeconds, {job, "park"}, figures.park);
  page.set(metrics::kCheckpointSeconds, {job, "write"}, figures.write);
  page.set(metrics::kCheckpointSeconds, {job, "commit"}, figures.commit);
  page.set(metrics::kCheckpointSeconds, {job, "restore"}, figures.restore);
  page.set(metrics::kCheckpointBytes, {job}, static_cast<double>(figures.bytes));
  page.set(metrics::kCheckpointLastSuccess, {job}, unix_time(unix_now, figures.age));
  page.set(metrics::kCheckpointFailures, {job}, static_cast<double>(figures.failures));
  page.set(metrics::kCheckpointInterval, {job}, to_seconds(status.checkpoint_every));
  if (!status.checkpoint_directory.empty()) page.add_folder(kSelf, "checkpoints", status.checkpoint_directory);
}

}  // namespace disttrain::chiefd
