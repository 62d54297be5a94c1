// How a ps handles the chief's orders for a checkpoint, and the answers of its shards and of the checkpoint writer. See
// ps_daemon.h.
#include "psd/ps_daemon.h"

namespace disttrain::psd {

// Returns true if this attempt is the current one and isn't abandoned.
bool PsDaemon::is_at(JobId job, Generation generation, std::uint64_t attempt) const {
  return is_open(job, generation) && job_->attempt.number == attempt && !job_->attempt.is_over;
}

// Sends a report to the chief, and keeps a copy. If the connection breaks, the report may be lost, so the ps sends its
// copies again when it registers again.
void PsDaemon::say(wire::ControlMessage report) {
  membership_.tell(report);
  job_->attempt.said.push_back(std::move(report));
}

void PsDaemon::fail_checkpoint(std::uint64_t attempt, const Error& error) {
  log_.error("job " + std::to_string(job_->facts->job.value) + ", checkpoint attempt " + std::to_string(attempt) +
             ": " + error.message);
  say(CheckpointFailed{job_->facts->job, job_->facts->generation, attempt, error.code, error.message});
}

// Begins an attempt. If the ps already has this attempt, the chief has repeated the order, and the ps ignores it. The
// chief gets the attempt's reports anyway: the ps sends them when they are ready, and again whenever it registers.
void PsDaemon::take(const PrepareCheckpoint& order) {
  if (!is_open(order.job, order.generation) || order.attempt <= job_->attempt.number) return;
  job_->attempt = Attempt{.number = order.attempt};
  if (writer_.is_busy())
    return fail_checkpoint(
        order.attempt,
        Error{ErrorCode::kTemporary, to_string(startup_.task) + " is still writing an earlier checkpoint: its "
                                                                "disk is too slow for such frequent checkpoints"});
  std::vector<ShardId> shards;
  for (const auto& [shard, thread] : job_->threads) shards.push_back(shard);
  writer_.prepare(job_->facts, order.attempt, order.folder, shards, [this, order](Status prepared) {
    if (!is_at(order.job, order.generation, order.attempt)) return;
    if (!prepared) return fail_checkpoint(order.attempt, prepared.error());
    for (const auto& [shard, thread] : job_->threads) {
      job_->attempt.unprepared.insert(shard);
      on_shard(shard, [attempt = order.attempt, holds = order.holds](ShardService& service) {
        service.prepare_cut(attempt, holds);
      });
    }
  });
}

// Reports to the chief only when all shards of this ps are prepared. Until then no worker sends a mark. Suppose that a
// mark came before its shard was prepared. The shard wouldn't know the attempt and would answer the mark at once. Then
// the workers whose marks come later would wait for this mark in vain.
void PsDaemon::hear(const ShardPrepared& prepared) {
  if (!is_at(job_->facts->job, job_->facts->generation, prepared.attempt)) return;
  Attempt& attempt = job_->attempt;
  if (attempt.unprepared.erase(prepared.shard) == 0 || !attempt.unprepared.empty()) return;
  say(CheckpointPrepared{job_->facts->job, job_->facts->generation, prepared.attempt});
}

// The chief repeats this order when it doesn't know whether the ps got it. An order to abandon an older attempt doesn't
// end the current one.
void PsDaemon::take(const AbandonCheckpoint& order) {
  if (!is_open(order.job, order.generation)) return;
  if (order.attempt >= job_->attempt.number) {
    job_->attempt = Attempt{.number = order.attempt, .is_over = true};
    writer_.cancel();
  }
  for (const auto& [shard, thread] : job_->threads)
    on_shard(shard, [attempt = order.attempt](ShardService& service) { service.abandon_cut(attempt); });
}

void PsDaemon::take(const TakeCut& order) {
  if (!is_open(order.job, order.generation) || !job_->threads.contains(ShardId(0))) return;
  on_shard(ShardId(0), [order](ShardService& pacer) { pacer.order_cut(order.attempt, order.at); });
}

void PsDaemon::hear(const ShardCopied& copied) {
  if (!is_at(job_->facts->job, job_->facts->generation, copied.attempt)) return;
  if (!copied.copy)
    return fail_checkpoint(copied.attempt, Error{ErrorCode::kTemporary, "shard " + std::to_string(copied.shard.value) +
                                                                            "'s previous copy is still being written"});
  ShardWritten written;
  written.job = job_->facts->job;
  written.generation = job_->facts->generation;
  written.attempt = copied.attempt;
  written.shard = copied.shard;
  written.entry = copied.entry;
  written.pacer = copied.pacer;
  written.cut = copied.cut;
  written.parked = copied.parked;
  writer_.write(copied.attempt, copied.shard, copied.copy, [this, written](Result<WrittenShard> done) mutable {
    if (!is_at(written.job, written.generation, written.attempt)) return;
    if (!done) return fail_checkpoint(written.attempt, done.error());
    written.file = std::move(done->file);
    written.writing = done->took;
    say(written);
  });
}

}  // namespace disttrain::psd
