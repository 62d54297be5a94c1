// What the shards of a job begin with: a checkpoint, or initial values (and the parameters that checkpoint.init_from
// names). Reads files, so call it from the thread of a shard that isn't in service yet.
#pragma once

#include <memory>
#include <optional>

#include "common/checkpoint/files.h"
#include "common/checkpoint/job_folder.h"
#include "common/messages/control.h"
#include "common/result.h"
#include "psd/shard_job.h"
#include "psd/store/shard_store.h"

namespace disttrain::psd {

class ShardOrigin {
 public:
  // Also checks that the job's checkpoint folder is the one that the chief sees. kConfig: it isn't, or the checkpoint
  // is of another model or rule. kData: the checkpoint is damaged, and the folder is there.
  static Result<ShardOrigin> open(checkpoint::Files& files, const ShardJob& job);

  // State of the restored checkpoint; without one, the state at step 0.
  PacerReport report() const;
  // Whether the checkpoint brings all values, so that no initial values need to be drawn.
  bool fills() const { return checkpoint_.has_value(); }
  // The lock of the checkpoint that the first parameters are from. Hold it as long as the shard lives: the next
  // generation may need that checkpoint.
  std::unique_ptr<checkpoint::InputFile> take_init_lock() { return std::move(init_lock_); }
  // Reads the shard's values. Errors are those of open(); kTemporary: reading was cancelled.
  Status fill(checkpoint::Files& files, const ShardJob& job, ShardId shard, ShardStore& store,
              const checkpoint::IsCancelled& is_cancelled) const;

 private:
  std::optional<checkpoint::OpenCheckpoint> checkpoint_;
  std::unique_ptr<checkpoint::InputFile> init_lock_;
};

}  // namespace disttrain::psd
