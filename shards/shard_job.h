// The chief's description of a job, which all shards of the job on this process share. It never changes.
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

namespace disttrain::shards {

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
  std::string visited_folder;  // the folder of VisitedLog; "": the job keeps no such log

  // This ps.
  Member self;
  std::string cluster;
  std::uint64_t cluster_hash = 0;
  std::uint32_t credits = 4;
  Timeouts timeouts;
};

// The main thread and the shard threads share the job, because any of them may be the last one that uses it.
using ShardJobPtr = std::shared_ptr<const ShardJob>;

}  // namespace disttrain::shards
