// Checkpoints: when a shard takes its copy (the cut). The copies of all shards must hold the same pushes of every
// living worker.
//
// sync: the pacer sends the order to cut between two commits, so that all shards cut after the same step.
//
// async, ssp: each worker sends a mark to every shard between two of its pushes, and then sends nothing until the shard
// answers the mark. A shard cuts when it has the marks of all workers. (Chandy & Lamport describe such marks in
// "Distributed Snapshots", 1985. They record the messages that are on a channel; here the senders wait instead.)
//
// Some attempts hold: after the cut nothing is applied until the chief abandons the attempt. In async and ssp the
// shards don't answer the marks, so the workers keep waiting. In sync the pacer commits nothing.
//
// Example, async, workers A and B and two shards:
// 1. Both shards have prepared attempt 7. A sends push 40 to both shards, then its mark on both channels, and waits.
// 2. Shard 0 has A's mark but not B's, so it still applies B's pushes.
// 3. B sends push 52 to both shards, then its mark on both channels, and waits.
// 4. Each shard has both marks now and takes its copy. Both copies hold A's pushes up to 40 and B's pushes up to 52.
// 5. Each shard answers both marks with MarkTaken, so A and B push again.
#include <algorithm>

#include "shards/core/shard_core.h"

#include "common/bounds.h"
#include "common/mutant.h"

namespace disttrain::shards {

void ShardCore::on(Instant now, const AttemptPrepared& event, Actions& actions) {
  if (attempts_.is_known(event.attempt)) return;
  end_hold(actions);
  give_up_attempt(actions);
  // Without values there is nothing to save.
  if (values_.are_missing()) {
    attempts_.settle_up_to(event.attempt);
    actions.push_back(MarksGivenUp{event.attempt, true});
    return;
  }
  attempts_.prepare(event.attempt, event.holds);
  if (members_.active().empty()) cut_if_all_marked(now, actions);
}

void ShardCore::on(Instant now, const AttemptAbandoned& event, Actions& actions) {
  if (attempts_.held() != 0 && event.attempt >= attempts_.held()) {
    end_hold(actions);
    if (train_.mode == Mode::kSync) advance_sync(now, actions);
  }
  // The order to prepare this attempt may arrive after this order to abandon it, and is then ignored.
  attempts_.settle_up_to(event.attempt);
  if (event.attempt >= attempts_.current()) give_up_attempt(actions);
}

// Ends the current attempt without a cut, if there is one.
void ShardCore::give_up_attempt(Actions& actions) {
  let_marked_go(attempts_.current(), actions);
  attempts_.settle();
}

void ShardCore::end_hold(Actions& actions) {
  let_marked_go(attempts_.held(), actions);
  attempts_.end_hold();
}

void ShardCore::on(Instant now, const CutOrdered& event, Actions& actions) {
  if (!is_pacer() || !attempts_.is_current(event.attempt)) return;
  attempts_.set_cut_at(event.at);
  cut_if_ordered(now, actions);
}

void ShardCore::on(Instant now, const CutArrived& event, Actions& actions) {
  if (attempts_.is_current(event.cut.attempt)) cut(now, actions);
}

void ShardCore::on(Instant now, const MarkArrived& event, Actions& actions) {
  MemberState* member = members_.find(event.channel);
  if (event.channel.value == 0 || member == nullptr) return;
  const std::uint64_t attempt = event.mark.attempt;
  if (attempts_.is_held(attempt)) {  // the worker has reconnected and sends its mark again
    member->marked = attempt;
    return;
  }
  // If the attempt of this mark is over or unknown, the shard answers at once, so that the worker doesn't wait.
  if (!attempts_.is_current(attempt)) return actions.push_back(SendMarkTaken{member->channel, MarkTaken{attempt}});
  member->marked = attempt;
  attempts_.note_mark(now);
  cut_if_all_marked(now, actions);
}

// Gives the attempt up only before its cut. After the cut no worker waits for the marks of others. If the attempt
// holds, only the chief lets the workers go on.
void ShardCore::on(Instant now, const MarksAwaited& event, Actions& actions) {
  if (!attempts_.first_mark() || now - *attempts_.first_mark() < event.longest) return;
  actions.push_back(MarksGivenUp{attempts_.current(), false});
  give_up_attempt(actions);
}

void ShardCore::cut_if_ordered(Instant now, Actions& actions) {
  if (!attempts_.cut_at() || (version_ < *attempts_.cut_at() && !finished())) return;
  attempts_.note_ordered();
  actions.push_back(SendCut{Cut{attempts_.current()}});
  cut(now, actions);
}

void ShardCore::cut_if_all_marked(Instant now, Actions& actions) {
  if (attempts_.current() == 0 || train_.mode == Mode::kSync) return;
  const auto& active = members_.active();
  const auto is_marked = [this](const MemberState* member) { return attempts_.is_current(member->marked); };
  if (DISTTRAIN_MUTANT(kCutAtFirstMark) && std::any_of(active.begin(), active.end(), is_marked))
    return cut(now, actions);
  if (std::all_of(active.begin(), active.end(), is_marked)) cut(now, actions);
}

void ShardCore::cut(Instant now, Actions& actions) {
  CopyForCheckpoint copy;
  copy.attempt = attempts_.current();
  if (attempts_.first_mark()) copy.parked = now - *attempts_.first_mark();
  copy.entry.version = version_;
  for (const OwnBucket& bucket : buckets_) copy.entry.words += bucket.bytes / sizeof(float);
  for (const MemberState* member : members_.active()) {
    // In sync every shard has applied the same steps, so each worker's clock is the version. last_clock may be too
    // high, because it also counts a push that is only staged.
    Step clock = train_.mode == Mode::kSync ? version_ : member->last_clock;
    // These mutants (bugs planted for tests) cut at the wrong moment. They also report wrong clocks, because the chief
    // compares the clocks in the shards' copies. With the true clocks it would notice the mutant.
    if (DISTTRAIN_MUTANT(kCutAtFirstMark) || DISTTRAIN_MUTANT(kCutBeforeCommitCounts)) clock = Step(1);
    // In sync each step has one batch of each worker. With leases nobody has an order of its own.
    const Step batches = own_order_                   ? own_order_->batches_of(member->member.task)
                         : train_.mode == Mode::kSync ? version_
                                                      : Step();
    copy.entry.workers.push_back(WorkerEntry{member->member, member->last, clock, batches});
  }
  // Workers that aren't in the roster now may come back.
  for (const OwnBatches& away : own_order_ ? own_order_->all() : std::vector<OwnBatches>()) {
    const auto is_its = [&away](const WorkerEntry& entry) { return entry.worker.task == away.worker; };
    const bool is_there = std::any_of(copy.entry.workers.begin(), copy.entry.workers.end(), is_its);
    if (!is_there && copy.entry.workers.size() < kMaxMembers)
      copy.entry.workers.push_back(WorkerEntry{Member{away.worker, Incarnation()}, Sequence(), Step(), away.batches});
  }
  std::sort(copy.entry.workers.begin(), copy.entry.workers.end(),
            [](const WorkerEntry& a, const WorkerEntry& b) { return a.worker < b.worker; });
  if (is_pacer()) copy.pacer = report();
  actions.push_back(std::move(copy));
  if (attempts_.holds() && !DISTTRAIN_MUTANT(kHoldForgotten))
    attempts_.hold();
  else
    let_marked_go(attempts_.current(), actions);
  attempts_.settle();
}

void ShardCore::let_marked_go(std::uint64_t attempt, Actions& actions) {
  for (MemberState* member : members_.active())
    if (attempt != 0 && member->marked == attempt && member->channel.value != 0)
      actions.push_back(SendMarkTaken{member->channel, MarkTaken{attempt}});
}

}  // namespace disttrain::shards
