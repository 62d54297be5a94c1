// How a job's shards on this process take part in a checkpoint: the chief's orders, and the answers of the shards and
// of the checkpoint writer. See held_job.h.
#include "shards/held_job.h"

namespace disttrain::shards {

// Returns true if this attempt is the current one and isn't abandoned.
bool HeldJob::is_at(JobId job, Generation generation, std::uint64_t attempt) const {
  return is_open(job, generation) && attempt_.number == attempt && !attempt_.is_over;
}

// Sends a report to the chief, and keeps a copy. If the connection breaks, the report may be lost, so the holder sends
// its copies again when it registers again.
void HeldJob::say(wire::ControlMessage report) {
  host_.tell(report);
  attempt_.said.push_back(std::move(report));
}

void HeldJob::fail_checkpoint(std::uint64_t attempt, const Error& error) {
  host_.log.error("job " + std::to_string(job_->job.value) + ", checkpoint attempt " + std::to_string(attempt) + ": " +
                  error.message);
  say(CheckpointFailed{job_->job, job_->generation, attempt, error.code, error.message});
}

// Begins an attempt. If it is known already, the chief has repeated the order, which is then ignored. The
// chief gets the attempt's reports anyway: they are sent when they are ready, and again whenever the holder registers.
void HeldJob::prepare(const PrepareCheckpoint& order) {
  if (!is_open(order.job, order.generation) || order.attempt <= attempt_.number) return;
  attempt_ = Attempt{.number = order.attempt};
  if (is_writing())
    return fail_checkpoint(
        order.attempt,
        Error{ErrorCode::kTemporary, to_string(job_->self.task) + " is still writing an earlier checkpoint: its "
                                                                  "disk is too slow for such frequent checkpoints"});
  writer_->prepare(job_, order.attempt, order.folder, shards(), [this, alive = alive_, order](Status prepared) {
    if (!*alive || !is_at(order.job, order.generation, order.attempt)) return;
    if (!prepared) return fail_checkpoint(order.attempt, prepared.error());
    for (const auto& [shard, thread] : threads_) {
      attempt_.unprepared.insert(shard);
      on_shard(shard, [attempt = order.attempt, holds = order.holds](ShardService& service) {
        service.prepare_cut(attempt, holds);
      });
    }
  });
}

// Reports to the chief only when all shards of this process are prepared. Until then no worker sends a mark. Suppose
// that a mark came before its shard was prepared. The shard wouldn't know the attempt and would answer the mark at
// once. Then the workers whose marks come later would wait for this mark in vain.
void HeldJob::take(const ShardPrepared& prepared) {
  if (!is_at(job_->job, job_->generation, prepared.attempt)) return;
  if (attempt_.unprepared.erase(prepared.shard) == 0 || !attempt_.unprepared.empty()) return;
  say(CheckpointPrepared{job_->job, job_->generation, prepared.attempt});
}

// The chief repeats this order when it doesn't know whether the holder got it. An order to abandon an older attempt
// doesn't end the current one.
void HeldJob::abandon(const AbandonCheckpoint& order) {
  if (!is_open(order.job, order.generation)) return;
  if (order.attempt >= attempt_.number) {
    attempt_ = Attempt{.number = order.attempt, .is_over = true};
    writer_->cancel();
  }
  for (const auto& [shard, thread] : threads_)
    on_shard(shard, [attempt = order.attempt](ShardService& service) { service.abandon_cut(attempt); });
}

void HeldJob::take_cut(const TakeCut& order) {
  if (!is_open(order.job, order.generation) || !threads_.contains(ShardId(0))) return;
  on_shard(ShardId(0), [order](ShardService& pacer) { pacer.order_cut(order.attempt, order.at); });
}

void HeldJob::take(const ShardCopied& copied) {
  if (!is_at(job_->job, job_->generation, copied.attempt)) return;
  if (!copied.copy)
    return fail_checkpoint(copied.attempt, Error{ErrorCode::kTemporary, "shard " + std::to_string(copied.shard.value) +
                                                                            "'s previous copy is still being written"});
  ShardWritten written;
  written.job = job_->job;
  written.generation = job_->generation;
  written.attempt = copied.attempt;
  written.shard = copied.shard;
  written.entry = copied.entry;
  written.pacer = copied.pacer;
  written.cut = copied.cut;
  written.parked = copied.parked;
  writer_->write(copied.attempt, copied.shard, copied.copy,
                 [this, alive = alive_, written](Result<WrittenShard> done) mutable {
                   if (!*alive || !is_at(written.job, written.generation, written.attempt)) return;
                   if (!done) return fail_checkpoint(written.attempt, done.error());
                   written.file = std::move(done->file);
                   written.writing = done->took;
                   say(written);
                 });
}

}  // namespace disttrain::shards
