#include "psd/ps_metrics.h"

#include "common/metrics/families.h"

namespace disttrain::psd {

PsMetrics::PsMetrics(TaskId task)
    : task_(to_string(task)),
      requests_({"Hello", "CreateShards", "SetRoster", "FenceWorker", "CloseJob", "PrepareCheckpoint", "TakeCut",
                 "AbandonCheckpoint", "HeartbeatAnswer", "LeaveGranted"}) {}

void PsMetrics::begin(const std::string& job, const std::string& checkpoint_folder,
                      const std::vector<ShardId>& shards) {
  for (const auto& [shard, figures] : shards_) {
    before_.push.add(figures.push);
    before_.pull.add(figures.pull);
    before_.mark.add(figures.mark);
  }
  shards_.clear();
  for (const ShardId shard : shards) shards_[shard];
  job_ = job;
  checkpoint_folder_ = checkpoint_folder;
}

void PsMetrics::collect(metrics::Page& page) const {
  shards::ShardFigures all = before_;
  for (const auto& [shard, figures] : shards_) {
    all.push.add(figures.push);
    all.pull.add(figures.pull);
    all.mark.add(figures.mark);
  }
  all.push.collect(page, task_, "push");
  all.pull.collect(page, task_, "pull");
  all.mark.collect(page, task_, "mark");
  requests_.collect(page, task_);
  if (!job_.empty()) collect_job(page);
}

void PsMetrics::collect_job(metrics::Page& page) const {
  const auto count = [](std::uint64_t number) { return static_cast<double>(number); };
  shards::ShardFigures all;
  for (const auto& [shard, figures] : shards_) {
    const std::string number = std::to_string(shard.value);
    page.set(metrics::kPsPullBytes, {task_, job_, number}, count(figures.pull_bytes));
    page.set(metrics::kPsPushBytes, {task_, job_, number}, count(figures.push_bytes));
    page.set(metrics::kPsQueueDepth, {task_, job_, number}, count(figures.queue_depth));
    page.set(metrics::kPsShardVersion, {task_, job_, number}, count(figures.version.value));
    all.parameters_bytes += figures.parameters_bytes;
    all.late += figures.late;
    all.apply.add(figures.apply);
    all.staleness.add(figures.staleness);
  }
  page.set(metrics::kPsParametersBytes, {task_, job_}, count(all.parameters_bytes));
  page.set(metrics::kPsApply, {task_, job_}, all.apply);
  page.set(metrics::kSyncDropped, {task_, job_}, count(all.late));
  page.set(metrics::kGradientStaleness, {task_, job_}, all.staleness);
  if (!checkpoint_folder_.empty()) page.add_folder(task_, "checkpoints", checkpoint_folder_);
}

}  // namespace disttrain::psd
