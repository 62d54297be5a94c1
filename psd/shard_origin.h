// What the shards of a job begin with: a checkpoint, or initial values (and the parameters that checkpoint.init_from
// names). Reads files: for the thread of a shard that isn't at work yet.
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
  // Also finds out whether the job's checkpoint folder is the one that the chief sees. kConfig: it isn't, or the
  // checkpoint is of another model or rule. kData: it is damaged, and the folder is there.
  static Result<ShardOrigin> open(checkpoint::Files& files, const ShardJob& job);

  // Of the checkpoint that is restored; as at the beginning without one.
  PacerReport report() const;
  // It brings all values, so that none need be drawn.
  bool fills() const { return checkpoint_.has_value(); }
  // Keeps the checkpoint that the first parameters are from, for the next generation: held as long as the shard lives.
  std::unique_ptr<checkpoint::InputFile> take_init_lock() { return std::move(init_lock_); }
  // Reads the shard's values. Errors as of open(). kTemporary: it was cancelled.
  Status fill(checkpoint::Files& files, const ShardJob& job, ShardId shard, ShardStore& store,
              const checkpoint::IsCancelled& is_cancelled) const;

 private:
  std::optional<checkpoint::OpenCheckpoint> checkpoint_;
  std::unique_ptr<checkpoint::InputFile> init_lock_;
};

}  // namespace disttrain::psd
