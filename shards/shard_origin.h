// Where the first parameters of a job's shards come from: a checkpoint that is restored, the file or checkpoint that
// checkpoint.init_from names, or the model's initial values. It reads files, which takes time. So only the thread of a
// shard that isn't in service yet may call it.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "common/checkpoint/files.h"
#include "common/checkpoint/job_folder.h"
#include "common/messages/control.h"
#include "common/result.h"
#include "shards/shard_job.h"
#include "shards/store/shard_store.h"

namespace disttrain::shards {

class ShardOrigin {
 public:
  // Opens the checkpoint, and checks that this process and the chief see the same checkpoint folder. kConfig: they see
  // different folders, or the checkpoint is of another model or update rule. kData: they see the same folder, but the
  // checkpoint is damaged.
  static Result<ShardOrigin> open(checkpoint::Files& files, const ShardJob& job);

  // The pacer's report in the restored checkpoint; without a checkpoint, the report at step 0.
  PacerReport report() const;
  // ShardOptions::own_orders.
  std::optional<std::map<TaskId, Step>> own_orders(const ShardJob& job) const;
  // Returns true if fill() sets all values from a checkpoint. Then the store needn't draw initial values.
  bool fills() const { return checkpoint_.has_value(); }
  // Returns true if the job's workers bring the first values, so fill() sets none.
  bool awaits_values(const ShardJob& job) const {
    return job.layout.model.brings_values && !checkpoint_ && job.init_path.empty();
  }
  // The lock on the checkpoint that checkpoint.init_from names; null if it names none. Keep it as long as the shard
  // lives, because the next generation may need that checkpoint again.
  std::unique_ptr<checkpoint::InputFile> take_init_lock() { return std::move(init_lock_); }
  // Reads the shard's values into `store`. Returns the errors of open(), or kTemporary if `is_cancelled` returned true
  // while it read or checked them. After that, the last passes over the values are left undone if it returns true.
  Status fill(checkpoint::Files& files, const ShardJob& job, ShardId shard, ShardStore& store,
              const checkpoint::IsCancelled& is_cancelled) const;

 private:
  std::optional<checkpoint::OpenCheckpoint> checkpoint_;
  std::unique_ptr<checkpoint::InputFile> init_lock_;
};

}  // namespace disttrain::shards
