// The inputs of a job, and what follows from them alone. All are constant except the timeouts, which the operator may
// change while the chief runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "chiefd/core/events.h"
#include "common/config/job_config.h"
#include "common/timeouts.h"

namespace disttrain::chiefd {

struct JobSetup {
  JobId id;
  Submission submission;
  const Timeouts& timeouts;  // the cluster's; they outlive the job
  std::uint32_t credits = 4;
  std::uint32_t listed_workers = 0;  // in the cluster file: the shards get memory for that many
  bool takes_unlisted = false;       // workers not in the file may join: memory for some more
  std::uint64_t seed = 0;            // for the channels' secrets
  JournalId journal{};               // for the marks in checkpoint folders

  const JobConfig& config() const { return submission.config; }
  // For a worker that is asked to describe the job. Once it is described, tasks get resolved_config() of
  // step_targets.h.
  SharedJobConfig shared_config() const { return std::make_shared<const JobConfig>(config()); }
  const std::string& name() const { return config().job.name; }
  bool takes_checkpoints() const { return !config().checkpoint.directory.empty(); }
  bool has_init() const { return !config().checkpoint.init_from.empty(); }
  bool waits_for_lost() const { return config().job.on_worker_loss == OnWorkerLoss::kWait; }
  bool is_sync() const { return config().train.mode == Mode::kSync; }
  std::size_t least_workers() const { return std::max<std::size_t>(config().job.min_workers, 1); }

  // The limit for an answer that costs a ps no time. A task that doesn't hear the chief for Timeouts::silent_ps
  // reconnects and is asked again. So an answer that is still missing after the limit isn't the connection's fault.
  Duration answer_limit() const { return timeouts.silent_ps + timeouts.silent; }
};

// How the loss of a task counts.
enum class Loss {
  kCounts,  // for job.max_restarts
  kLeft,    // it was told to end
  kLink,    // the task lives, but can't reach another task
};

}  // namespace disttrain::chiefd
