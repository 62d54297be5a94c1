// What every shard of one job knows of the job, as the chief sent it. Never changes once made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/ids.h"
#include "common/layout.h"
#include "common/messages/control.h"
#include "common/timeouts.h"

namespace disttrain::psd {

struct ShardJob {
  JobId job;
  Generation generation;
  std::uint64_t token = 0;
  JobConfig config;
  Layout layout;
  std::vector<Owner> owners;  // by shard
  Roster roster;
  std::uint64_t warmup_steps = 0;
  std::uint64_t train_records = 0;
  std::uint32_t places = 0;
  std::string checkpoint_folder;  // "": the job takes no checkpoints
  std::uint64_t checkpoint_mark = 0;
  std::string restore_path;    // "": none
  std::string init_path;       // "": none
  std::string visited_folder;  // see VisitedLog; "": none is kept

  // This ps.
  Member self;
  std::string cluster;
  std::uint64_t cluster_hash = 0;
  std::uint32_t credits = 4;
  Timeouts timeouts;
};

// Shared by the main thread and the threads of the shards, which end at different times.
using ShardJobPtr = std::shared_ptr<const ShardJob>;

}  // namespace disttrain::psd
