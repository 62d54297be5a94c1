// ShardTrace: what a shard records for train.profile_steps. Each place of recording writes:
//
//   const Instant begin = trace_.begin();
//   ...                                             // the work
//   if (begin != Instant()) trace_.add(begin, {...});
//
// begin() is one comparison if the job has no profile. Make all calls on the shard's thread.
#pragma once

#include <optional>

#include "common/config/job_config.h"
#include "common/daemon/clock.h"
#include "common/messages/data.h"
#include "common/trace/recorder.h"

namespace disttrain::shards {

class ShardTrace {
 public:
  // May throw std::bad_alloc.
  ShardTrace(ShardId shard, const TrainSection& train) : shard_(shard) {
    if (train.has_profile()) recorder_.emplace(train.profile_steps);
  }

  bool has_profile() const { return recorder_.has_value(); }
  bool is_on() const { return recorder_ && recorder_->is_on(); }
  // The time if the shard records now, else Instant().
  Instant begin() const { return is_on() ? daemon::now() : Instant(); }
  // Adds a span from `begin` until now. Fills in the fields begin, end and shard of `event`.
  void add(Instant begin, TraceEvent event) {
    event.begin = begin;
    event.end = daemon::now();
    event.shard = shard_;
    recorder_->add(event);
  }

  // The shard handles this push frame from now on, so its updates belong to the frame.
  void enter_frame(const Member& worker, Sequence sequence, const Push& push, std::uint64_t bytes) {
    frame_ = {.step = push.clock.value,
              .incarnation = worker.incarnation,
              .sequence = sequence,
              .bytes = bytes,
              .bucket = push.bucket,
              .worker = worker.task.index};
    updated_ = push.bucket;
  }
  void leave_frame(Instant begin) {
    frame_.kind = TraceKind::kHandle;
    add(begin, frame_);
  }
  // sync: this bucket is the next one that is updated.
  void enter_bucket(BucketId bucket) {
    updated_ = bucket;
    sums_ = true;
  }
  // An update has ended. In async and ssp it applied the frame; in sync it summed up a bucket, or computed norms.
  void update_ended(Instant begin, bool is_sync, Step version) {
    if (!is_sync) {
      frame_.kind = TraceKind::kApply;
      return add(begin, frame_);
    }
    const bool is_sum = std::exchange(sums_, false);
    add(begin, {.step = version.value,
                .bucket = is_sum ? updated_ : BucketId(),
                .kind = is_sum ? TraceKind::kSum : TraceKind::kPrepare});
  }

  // The shard has this version. The pacer records a moment for each step. Returns the events once the last step is
  // done.
  std::optional<TraceTake> reach(Step version, bool is_pacer) {
    if (!recorder_) return std::nullopt;
    if (is_pacer && version != version_)
      if (const Instant now = begin(); now != Instant())
        recorder_->add(
            {.begin = now, .end = now, .step = version.value, .shard = shard_, .kind = TraceKind::kCommitted});
    version_ = version;
    recorder_->reach(version);
    return recorder_->is_due() ? std::optional(recorder_->take()) : std::nullopt;
  }
  // The shard ends. Returns the events that it hasn't returned yet; none without a profile.
  std::optional<TraceTake> end() {
    if (!recorder_ || recorder_->is_taken()) return std::nullopt;
    return recorder_->take();
  }

 private:
  const ShardId shard_;
  std::optional<TraceRecorder> recorder_;  // none: the job has no profile
  TraceEvent frame_;                       // the fields of the frame that is being handled
  BucketId updated_;                       // the bucket of the next update
  bool sums_ = false;                      // sync: enter_bucket() was called for the next update
  Step version_;
};

}  // namespace disttrain::shards
