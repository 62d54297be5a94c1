// What a job is made with, and what follows from that alone. Constant but for the timeouts, which the operator may
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
  const Timeouts& timeouts;  // the cluster's, which outlive the job
  std::uint32_t credits = 4;
  std::uint32_t listed_workers = 0;  // of the cluster file: the shards' memory is made for so many
  bool takes_unlisted = false;       // and for some more
  std::uint64_t seed = 0;            // of the channels' secrets
  JournalId journal{};               // of the marks in checkpoint folders

  const JobConfig& config() const { return submission.config; }
  // For a worker that is asked what the job is; later tasks get resolved_config() of step_targets.h.
  SharedJobConfig shared_config() const { return std::make_shared<const JobConfig>(config()); }
  const std::string& name() const { return config().job.name; }
  bool takes_checkpoints() const { return !config().checkpoint.directory.empty(); }
  bool has_init() const { return !config().checkpoint.init_from.empty(); }
  bool waits_for_lost() const { return config().job.on_worker_loss == OnWorkerLoss::kWait; }
  bool is_sync() const { return config().train.mode == Mode::kSync; }
  std::size_t least_workers() const { return std::max<std::size_t>(config().job.min_workers, 1); }

  // The limit for an answer that costs a ps no time. A task that hears nothing of the chief for Timeouts::silent_ps
  // opens its connection anew and is asked again. An answer that is still missing then has another cause than the
  // connection.
  Duration answer_limit() const { return timeouts.silent_ps + timeouts.silent; }
};

// What a task's going counts as.
enum class Loss {
  kCounts,  // for job.max_restarts
  kLeft,    // it was told to end
  kLink,    // it lives, but can't reach another task
};

}  // namespace disttrain::chiefd
