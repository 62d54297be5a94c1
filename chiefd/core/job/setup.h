// The inputs of a job, and values that follow from these inputs alone. All are constant except the timeouts, which the
// operator may change while the chief runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "chiefd/core/events.h"
#include "chiefd/core/job/loss.h"
#include "common/config/job_config.h"
#include "common/timeouts.h"

namespace disttrain::chiefd {

struct JobSetup {
  JobId id;
  Submission submission;
  const Timeouts& timeouts;  // of the cluster; must outlive the job
  std::uint32_t credits = 4;
  std::uint32_t listed_workers = 0;  // in the cluster file; the shards get memory for all of them
  bool takes_unlisted = false;       // workers outside the file may join; the shards get memory for some
  std::uint64_t seed = 0;            // the channels' secrets are made from it
  JournalId journal{};               // the numbers in checkpoint folders are made from it
  std::uint32_t evaluators = 0;      // in the cluster file

  const JobConfig& config() const { return submission.config; }
  // The configuration for a worker that is asked to describe the job. The ps tasks and workers of a generation get
  // resolved_config() of step_targets.h instead.
  SharedJobConfig shared_config() const { return std::make_shared<const JobConfig>(config()); }
  const std::string& name() const { return config().job.name; }
  // A trainer may have evaluation data of its own, which the chief doesn't know.
  bool evaluates() const { return !config().evaluate.files.empty() || !config().model.trainer.empty(); }
  bool takes_checkpoints() const { return !config().checkpoint.directory.empty(); }
  // True if evaluators evaluate the job's checkpoints, so that workers don't evaluate while they train.
  bool uses_evaluators() const { return evaluators > 0 && takes_checkpoints() && evaluates(); }
  bool has_init() const { return !config().checkpoint.init_from.empty(); }
  bool waits_for_lost() const { return config().job.on_worker_loss == OnWorkerLoss::kWait; }
  bool is_sync() const { return config().train.mode == Mode::kSync; }
  std::size_t least_workers() const { return std::max<std::size_t>(config().job.min_workers, 1); }

  // The time limit for an answer that a ps can give at once. A task that doesn't hear the chief for Timeouts::silent_ps
  // reconnects, and the chief asks it again. So if an answer is missing after the limit, the reason isn't a lost
  // connection.
  Duration answer_limit() const { return timeouts.silent_ps + timeouts.silent; }
};

}  // namespace disttrain::chiefd
