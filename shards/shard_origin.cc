#include "shards/shard_origin.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/checkpoint/shard_file.h"
#include "common/checkpoint/warm_start.h"
#include "common/mutant.h"
#include "common/printable.h"
#include "common/update/update_rule.h"
#include "shards/store/nonfinite.h"

namespace disttrain::shards {
namespace {

Status check_fits(const checkpoint::Manifest& manifest, const std::string& path, const ShardJob& job) {
  const update::UpdateRule rule(job.config.train);
  const std::uint32_t slots = manifest.slots - (manifest.has_average ? 1 : 0);
  const Rule wanted = job.config.train.optimizer.rule;
  const std::string was_made = path + " was made with the update rule " + printable(manifest.rule) + ", which keeps ";
  const std::string advice =
      ". Use the old rule again, or submit the job under another name with checkpoint.init_from set to this checkpoint";
  if (slots != rule.slots())
    return fail(ErrorCode::kConfig, was_made + std::to_string(slots) + " slots; the job's rule keeps " +
                                        std::to_string(rule.slots()) + advice);
  if (slots > 0 && !update::has_slots_of(wanted, manifest.rule))
    return fail(ErrorCode::kConfig,
                was_made + "other values in its slots than the job's rule " + update::name_of(wanted) + advice);
  return {};
}

// Refuses a path to a folder of several checkpoints. The shards would look for the newest one at different times, and
// so could find different ones. If the chief sees the folder, the chief has already chosen one checkpoint for all
// shards.
Status check_init(checkpoint::Files& files, const std::string& path) {
  const auto found = checkpoint::list_checkpoints(files, path);
  if (!found || found->empty()) return {};
  return fail(ErrorCode::kConfig, "checkpoint.init_from = \"" + path +
                                      "\" is the folder of a job's checkpoints, and the chief doesn't see this folder; "
                                      "name one of the checkpoints in it, such as " +
                                      found->front().path);
}

// Returns the error to report when a checkpoint can't be read. If the job's checkpoint folder has gone away meanwhile,
// the checkpoint may be undamaged. Then the error says that the folder is gone, so that the chief doesn't count the
// checkpoint as damaged.
Error judged(checkpoint::Files& files, const ShardJob& job, Error error) {
  if (error.code != ErrorCode::kData || job.checkpoint_folder.empty()) return error;
  const Status shared = checkpoint::check_token(files, job.checkpoint_folder, job.checkpoint_mark);
  return shared ? error : shared.error();
}

}  // namespace

Result<ShardOrigin> ShardOrigin::open(checkpoint::Files& files, const ShardJob& job) {
  ShardOrigin origin;
  if (!job.checkpoint_folder.empty())
    if (Status shared = checkpoint::check_token(files, job.checkpoint_folder, job.checkpoint_mark); !shared)
      return tl::unexpected(shared.error());
  if (job.restore_path.empty()) {
    if (job.init_path.empty()) return origin;
    if (Status one = check_init(files, job.init_path); !one) return tl::unexpected(one.error());
    // Locks a checkpoint, so that retention doesn't remove it. Other files need no lock, because retention removes only
    // checkpoints.
    if (auto init = checkpoint::open_checkpoint(files, job.init_path)) origin.init_lock_ = std::move(init->lock);
    return origin;
  }
  Result<checkpoint::OpenCheckpoint> open = checkpoint::open_checkpoint(files, job.restore_path);
  // If the checkpoint that the chief found is gone now, it counts as damaged, so that the chief tries the one before
  // it.
  if (!open && open.error().code == ErrorCode::kNoInput) open.error().code = ErrorCode::kData;
  if (!open) return tl::unexpected(judged(files, job, open.error()));
  if (Status fits = check_fits(open->manifest, job.restore_path, job); !fits) return tl::unexpected(fits.error());
  origin.checkpoint_ = std::move(*open);
  return origin;
}

PacerReport ShardOrigin::report() const {
  return checkpoint_ ? checkpoint::report_of(checkpoint_->manifest) : PacerReport();
}

std::optional<std::map<TaskId, Step>> ShardOrigin::own_orders(const ShardJob& job) const {
  if (job.config.data.sharding != Sharding::kNone) return std::nullopt;
  std::map<TaskId, Step> batches;
  if (checkpoint_)
    for (const WorkerEntry& worker : checkpoint_->manifest.shards.front().workers)
      batches[worker.worker.task] = worker.batches;
  return batches;
}

Status ShardOrigin::fill(checkpoint::Files& files, const ShardJob& job, ShardId shard, ShardStore& store,
                         const checkpoint::IsCancelled& is_cancelled) const {
  if (!checkpoint_ && (job.init_path.empty() || DISTTRAIN_MUTANT(kInitIgnored))) return {};
  if (!checkpoint_) {
    const Status read = checkpoint::read_parameters(files, job.init_path, job.config.checkpoint.init_map, job.layout,
                                                    shard, store.parameters(), is_cancelled);
    if (!read) return fail(read.error().code, "checkpoint.init_from: " + read.error().message);
    store.keep_bounds(is_cancelled);
    store.begin_averages(is_cancelled);
    return {};
  }
  // The job may have got evaluate.average after this checkpoint was made, or lost it.
  const checkpoint::Manifest& manifest = checkpoint_->manifest;
  const bool has_average = store.has_average() && manifest.has_average;
  const std::size_t wanted = update::UpdateRule(job.config.train).slots() + (has_average ? 1 : 0);
  std::vector<std::span<float>> slots;
  for (std::size_t i = 0; i < wanted && !DISTTRAIN_MUTANT(kSlotsNotRestored); ++i) slots.push_back(store.slot(i));
  const Status read = checkpoint::read_shard(files, checkpoint_->path, manifest, job.layout, shard, store.parameters(),
                                             slots, is_cancelled);
  if (!read) return tl::unexpected(judged(files, job, read.error()));
  // Training never recovers from a NaN or an infinity.
  std::vector<std::span<const float>> arrays = {store.parameters()};
  arrays.insert(arrays.end(), slots.begin(), slots.end());
  if (Status finite = check_finite(job.layout, shard, arrays, is_cancelled); !finite)
    return fail(finite.error().code, checkpoint_->path + ": " + finite.error().message);
  if (!has_average) store.begin_averages(is_cancelled);
  store.keep_bounds(is_cancelled);  // the checkpoint may be from a job without these bounds
  return {};
}

}  // namespace disttrain::shards
