// Every metric family that a daemon exports, with its labels and meaning. A family without the label `job` exists from
// the daemon's start, with the value 0. A family with `job` exists from the daemon's first job on, and then describes
// the newest job. The label `task` names the exporting daemon. Only in the chief's task_* and restarts_total, `task`
// names the task that the value describes.
#pragma once

#include "common/metrics/page.h"

namespace disttrain::metrics {

// Every daemon.
inline constexpr Family<2> kBuildInfo{
    "build_info", Kind::kGauge, {"task", "version"}, "Always 1; the daemon's version"};
inline constexpr Family<2> kConfigInfo{
    "config_info", Kind::kGauge, {"task", "hash"}, "Always 1; labelled with the hash of the task's cluster file"};
inline constexpr Family<1> kStartTime{
    "start_time_seconds", Kind::kGauge, {"task"}, "When the process was started, Unix time"};
inline constexpr Family<1> kConfigReloaded{"config_last_reload_success_timestamp_seconds",
                                           Kind::kGauge,
                                           {"task"},
                                           "When it last read its cluster file, Unix time"};
inline constexpr Family<3> kRpcRequests{"rpc_requests_total",
                                        Kind::kCounter,
                                        {"task", "op", "code"},
                                        "Messages received; code: ok, refused (with a reason), error (malformed)"};
inline constexpr Family<2> kRpcDuration{"rpc_duration_seconds",
                                        Kind::kHistogram,
                                        {"task", "op"},
                                        "Time from a received message to the end of its handling"};
inline constexpr Family<3> kTransportBytes{"transport_bytes_total",
                                           Kind::kCounter,
                                           {"task", "direction", "transport"},
                                           "Bytes of frames received (in) and sent (out)"};
inline constexpr Family<2> kLogMessages{
    "log_messages_total", Kind::kCounter, {"task", "level"}, "Log lines, including those dropped by the rate limit"};

// The chief: the cluster.
inline constexpr Family<0> kLeader{"leader", Kind::kGauge, {}, "1 at the chief in charge"};
inline constexpr Family<1> kTaskUp{"task_up", Kind::kGauge, {"task"}, "1 while the task is ready or runs a job"};
inline constexpr Family<1> kTaskHeartbeat{
    "task_heartbeat_timestamp_seconds",
    Kind::kGauge,
    {"task"},
    "When all parts of the task were last known to be alive, Unix time; 0: never"};
inline constexpr Family<2> kTaskConfigInfo{"task_config_info",
                                           Kind::kGauge,
                                           {"task", "hash"},
                                           "Always 1; labelled with the hash of the cluster file in the task's hello"};
inline constexpr Family<1> kTasksExpected{"tasks_expected", Kind::kGauge, {"role"}, "Tasks in the cluster file"};
inline constexpr Family<1> kTasksReady{
    "tasks_ready", Kind::kGauge, {"role"}, "Tasks in the cluster file that are ready or in a job"};
inline constexpr Family<0> kUnlistedReady{
    "unlisted_workers_ready", Kind::kGauge, {}, "Workers not in the cluster file that are ready or in a job"};
inline constexpr Family<0> kJobsQueued{"jobs_queued", Kind::kGauge, {}, "Jobs in the queue"};
inline constexpr Family<1> kJobsEnded{"jobs_ended_total",
                                      Kind::kCounter,
                                      {"state"},
                                      "Jobs that ended under this chief; state: finished, failed, stopped"};
inline constexpr Family<2> kRestarts{
    "restarts_total",
    Kind::kCounter,
    {"task", "reason"},
    "Lost processes that have or need a successor: crash: gone while in a "
    "job; silent: silent before; left: gone while in no job, or told to end; replaced: by another process"};
// Exported by the chief, about the running or last job.
inline constexpr Family<1> kGlobalStep{"global_step", Kind::kGauge, {"job"}, "Steps applied"};
inline constexpr Family<1> kStepsTarget{"steps_target", Kind::kGauge, {"job"}, "Steps to be made; 0: no limit"};
inline constexpr Family<1> kGeneration{"generation",
                                       Kind::kGauge,
                                       {"job"},
                                       "Grows by 1 with each rollback; begins at 1, or 1 above its checkpoint folder"};
inline constexpr Family<1> kExamples{"examples_total", Kind::kCounter, {"job"}, "Examples applied, lost ones too"};
inline constexpr Family<1> kLearningRate{
    "learning_rate", Kind::kGauge, {"job"}, "Learning rate of the next update; none before the first step"};
inline constexpr Family<1> kLoss{
    "loss", Kind::kGauge, {"job"}, "Mean loss over the last steps; none before the first step"};
inline constexpr Family<1> kEvaluationLoss{
    "evaluation_loss", Kind::kGauge, {"job"}, "Loss of the newest evaluation; none before the first"};
inline constexpr Family<1> kEvaluationAccuracy{
    "evaluation_accuracy", Kind::kGauge, {"job"}, "Accuracy of the newest evaluation; none without labels"};
inline constexpr Family<1> kEvaluationsWaiting{
    "evaluations_waiting", Kind::kGauge, {"job"}, "Checkpoints that wait for an evaluator"};
// A job has at most kMaxMetrics (common/model_metric.h) names of metrics.
inline constexpr Family<2> kEvaluationMetric{
    "evaluation_metric", Kind::kGauge, {"job", "name"}, "A metric of the model in the newest evaluation"};
inline constexpr Family<2> kTrainMetric{
    "train_metric", Kind::kGauge, {"job", "name"}, "A metric of the model in training, mean over the workers"};
inline constexpr Family<1> kLastProgress{
    "last_progress_timestamp_seconds",
    Kind::kGauge,
    {"job"},
    "When the chief heard of the newest step, or restarted the wait for one, Unix time; 0: never"};
inline constexpr Family<2> kJobState{
    "job_state", Kind::kGauge, {"job", "state"}, "1 for the job's state, 0 for the others"};
inline constexpr Family<2> kJobAbsence{
    "job_absence_seconds",
    Kind::kGauge,
    {"job", "role"},
    "How long the job has waited for tasks of this role that are away; 0: it doesn't"};
inline constexpr Family<2> kJobAbsenceLimit{
    "job_absence_limit_seconds", Kind::kGauge, {"job", "role"}, "After this wait the job fails; 0: never"};
inline constexpr Family<2> kGoodput{"goodput_seconds_total",
                                    Kind::kCounter,
                                    {"job", "state"},
                                    "Seconds since the job began, by what they were used for"};
inline constexpr Family<1> kRecoveries{"recoveries_total", Kind::kCounter, {"job"}, "Rollbacks"};
inline constexpr Family<1> kStepsLost{
    "steps_lost_total", Kind::kCounter, {"job"}, "Steps that rollbacks threw away, as far as known"};
inline constexpr Family<2> kCheckpointSeconds{"checkpoint_seconds",
                                              Kind::kHistogram,
                                              {"job", "op"},
                                              "Of each checkpoint, the slowest shard: cut: longest stop for the copy; "
                                              "park: first mark to cut; write; commit: by the chief; restore"};
inline constexpr Family<1> kCheckpointBytes{
    "checkpoint_bytes", Kind::kGauge, {"job"}, "Size of the newest checkpoint; 0: none yet"};
inline constexpr Family<1> kCheckpointLastSuccess{"checkpoint_last_success_timestamp_seconds",
                                                  Kind::kGauge,
                                                  {"job"},
                                                  "When this chief last committed a checkpoint, Unix time; 0: never"};
inline constexpr Family<1> kCheckpointFailures{
    "checkpoint_failures_total", Kind::kCounter, {"job"}, "Failed checkpoint attempts"};
inline constexpr Family<1> kCheckpointInterval{
    "checkpoint_expected_interval_seconds", Kind::kGauge, {"job"}, "checkpoint.every; 0: none are taken by time"};

// Exported by the chief for its state folder, and by the chief and the ps tasks for the job's folder of checkpoints
// once they know that folder.
inline constexpr Family<2> kDiskFreeBytes{
    "disk_free_bytes", Kind::kGauge, {"task", "folder"}, "Free space for it on the file system of this folder"};
inline constexpr Family<2> kDiskSizeBytes{
    "disk_size_bytes", Kind::kGauge, {"task", "folder"}, "Size of the file system of this folder"};

// The evaluators.
inline constexpr Family<2> kEvaluatorEvaluations{"evaluator_evaluations_total",
                                                 Kind::kCounter,
                                                 {"task", "result"},
                                                 "Evaluations of checkpoints; result: evaluated, failed"};

// Workers.
inline constexpr Family<2> kWorkerSteps{"worker_steps_total", Kind::kCounter, {"task", "job"}, "Its own steps"};
inline constexpr Family<2> kWorkerExamples{
    "worker_examples_total", Kind::kCounter, {"task", "job"}, "Examples in its steps"};
inline constexpr Family<3> kWorkerStepSeconds{
    "worker_step_seconds", Kind::kHistogram, {"task", "job", "phase"}, "Seconds of each step, by phase"};
inline constexpr Family<2> kWorkerLoss{
    "worker_loss", Kind::kGauge, {"task", "job"}, "Loss of its newest batch; none before the first"};
inline constexpr Family<2> kWorkerNonfinite{
    "worker_nonfinite_total", Kind::kCounter, {"task", "job"}, "Steps whose loss or gradient wasn't finite"};
inline constexpr Family<2> kDataRecords{
    "data_records_total", Kind::kCounter, {"task", "job"}, "Records put into batches"};
inline constexpr Family<2> kDataReadBytes{
    "data_read_bytes_total", Kind::kCounter, {"task", "job"}, "Bytes read from files, compressed as stored"};
inline constexpr Family<3> kDataErrors{"data_errors_total",
                                       Kind::kCounter,
                                       {"task", "job", "reason"},
                                       "Loads of training or evaluation data that failed, by reason"};
inline constexpr Family<2> kDataPrefetchDepth{
    "data_prefetch_depth", Kind::kGauge, {"task", "job"}, "Batches ready for the next steps"};
inline constexpr Family<3> kDataStage{"data_stage_seconds_total",
                                      Kind::kCounter,
                                      {"task", "job", "stage"},
                                      "Seconds of the input threads, by stage: read, decode, transform, batch"};
inline constexpr Family<2> kDataStall{
    "data_stall_seconds_total", Kind::kCounter, {"task", "job"}, "Seconds that steps waited for a batch"};

// Ps.
inline constexpr Family<2> kPsParametersBytes{
    "ps_parameters_bytes", Kind::kGauge, {"task", "job"}, "Bytes of parameters in the ps's shards"};
inline constexpr Family<3> kPsPullBytes{
    "ps_pull_bytes_total", Kind::kCounter, {"task", "job", "shard"}, "Bytes of parameters sent to workers"};
inline constexpr Family<3> kPsPushBytes{
    "ps_push_bytes_total", Kind::kCounter, {"task", "job", "shard"}, "Bytes of gradients received from workers"};
inline constexpr Family<2> kPsApply{
    "ps_apply_seconds", Kind::kHistogram, {"task", "job"}, "Time to update one bucket of parameters"};
inline constexpr Family<3> kPsQueueDepth{
    "ps_queue_depth", Kind::kGauge, {"task", "job", "shard"}, "Answers that workers wait for"};
inline constexpr Family<3> kPsShardVersion{
    "ps_shard_version", Kind::kGauge, {"task", "job", "shard"}, "Updates applied to the shard"};
inline constexpr Family<2> kSyncDropped{"sync_dropped_gradients_total",
                                        Kind::kCounter,
                                        {"task", "job"},
                                        "Gradients whose step was committed without them; at the ps of shard 0"};
inline constexpr Family<2> kGradientStaleness{"gradient_staleness_steps",
                                              Kind::kHistogram,
                                              {"task", "job"},
                                              "Steps between a gradient's pull and its use; at the ps of shard 0"};

}  // namespace disttrain::metrics
