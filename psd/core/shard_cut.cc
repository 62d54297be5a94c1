// Checkpoints: when a shard takes its copy, so that all shards' copies hold the same pushes of every living worker.
// sync: between two commits, at a place that the pacer names in the stream of its commits. async, ssp: when each worker
// has sent its mark, after which it sends nothing before the cut (Chandy & Lamport, "Distributed Snapshots", 1985, with
// the senders held instead of recorded channels). An attempt that holds is the last that is seen of a generation: the
// senders stay held, and the pacer commits nothing.
#include <algorithm>

#include "psd/core/shard_core.h"

#include "common/mutant.h"

namespace disttrain::psd {

void ShardCore::on(Instant, const AttemptPrepared& event, Actions& actions) {
  if (event.attempt <= settled_) return;
  end_hold(actions);
  let_marked_go(attempt_, actions);
  attempt_ = event.attempt;
  holds_ = event.holds;
  cut_at_.reset();
  if (members_.active().empty()) cut_if_all_marked(actions);
}

void ShardCore::on(Instant now, const AttemptAbandoned& event, Actions& actions) {
  if (held_ != 0 && event.attempt >= held_) {
    end_hold(actions);
    if (train_.mode == Mode::kSync) advance_sync(now, actions);
  }
  if (attempt_ == 0 || event.attempt < attempt_) return;
  let_marked_go(attempt_, actions);
  settled_ = attempt_;
  attempt_ = 0;
  cut_at_.reset();
}

void ShardCore::end_hold(Actions& actions) {
  if (held_ == 0) return;
  let_marked_go(held_, actions);
  held_ = 0;
}

void ShardCore::on(Instant, const CutOrdered& event, Actions& actions) {
  if (!is_pacer() || event.attempt != attempt_ || attempt_ == 0) return;
  cut_at_ = event.at;
  cut_if_ordered(actions);
}

void ShardCore::on(Instant, const CutArrived& event, Actions& actions) {
  if (event.cut.attempt == attempt_ && attempt_ != 0) cut(actions);
}

void ShardCore::on(Instant, const MarkArrived& event, Actions& actions) {
  MemberState* member = members_.find(event.channel);
  if (event.channel.value == 0 || member == nullptr) return;
  const std::uint64_t attempt = event.mark.attempt;
  if (held_ != 0 && attempt == held_) {  // once more, over another connection
    member->marked = attempt;
    return;
  }
  // One that is over, or that we know nothing of, holds nobody.
  if (attempt != attempt_) return actions.push_back(SendMarkTaken{member->channel, MarkTaken{attempt}});
  member->marked = attempt;
  cut_if_all_marked(actions);
}

void ShardCore::cut_if_ordered(Actions& actions) {
  if (!cut_at_ || (version_ < *cut_at_ && !finished())) return;
  actions.push_back(SendCut{Cut{attempt_}});
  cut(actions);
}

void ShardCore::cut_if_all_marked(Actions& actions) {
  if (attempt_ == 0 || train_.mode == Mode::kSync) return;
  const auto& active = members_.active();
  if (DISTTRAIN_MUTANT(kCutAtFirstMark) &&
      std::any_of(active.begin(), active.end(), [this](const MemberState* m) { return m->marked == attempt_; }))
    return cut(actions);
  if (std::all_of(active.begin(), active.end(), [this](const MemberState* m) { return m->marked == attempt_; }))
    cut(actions);
}

void ShardCore::cut(Actions& actions) {
  CopyForCheckpoint copy;
  copy.attempt = attempt_;
  copy.entry.version = version_;
  for (const OwnBucket& bucket : buckets_) copy.entry.elements += bucket.bytes / sizeof(float);
  for (const MemberState* member : members_.active()) {
    // sync: what is staged isn't applied, and what is applied is the same everywhere.
    Step clock = train_.mode == Mode::kSync ? version_ : member->last_clock;
    // Else the chief would see it.
    if (DISTTRAIN_MUTANT(kCutAtFirstMark) || DISTTRAIN_MUTANT(kCutBeforeCommitCounts)) clock = Step(1);
    copy.entry.workers.push_back(WorkerEntry{member->member, member->last, clock});
  }
  std::sort(copy.entry.workers.begin(), copy.entry.workers.end(),
            [](const WorkerEntry& a, const WorkerEntry& b) { return a.worker < b.worker; });
  if (is_pacer()) copy.pacer = report();
  actions.push_back(std::move(copy));
  if (holds_ && !DISTTRAIN_MUTANT(kHoldForgotten))
    held_ = attempt_;
  else
    let_marked_go(attempt_, actions);
  settled_ = attempt_;
  attempt_ = 0;
  cut_at_.reset();
}

void ShardCore::let_marked_go(std::uint64_t attempt, Actions& actions) {
  for (MemberState* member : members_.active())
    if (attempt != 0 && member->marked == attempt && member->channel.value != 0)
      actions.push_back(SendMarkTaken{member->channel, MarkTaken{attempt}});
}

}  // namespace disttrain::psd
