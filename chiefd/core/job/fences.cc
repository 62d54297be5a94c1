#include "chiefd/core/job/fences.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "common/mutant.h"

namespace disttrain::chiefd {

Fences::Fences(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      held_(parts.held),
      generation_(parts.generation),
      workers_(parts.workers),
      loans_(parts.loans) {}

bool Fences::is_fencing(const Member& worker) const {
  return std::any_of(fences_.begin(), fences_.end(), [&](const Fence& fence) { return fence.worker == worker; });
}

void Fences::fence(Turn& turn, const Member& worker, std::optional<Ticket> after) {
  Fence fence{worker, {}, workers_.roster().version, !after, after, turn.now + setup_.answer_limit()};
  for (std::uint32_t s = 0; s < generation_.owners().size(); ++s) fence.owed.insert(ShardId(s));
  fences_.push_back(std::move(fence));
  for (const Member& ps : generation_.holders()) {
    if (after)
      held_.hold(*after, Send{ps.task, FenceWorker{setup_.id, generation_.number(), worker}});
    else
      turn.send(ps.task, FenceWorker{setup_.id, generation_.number(), worker});
  }
}

// The deadline counts from the time when the shards are asked. So a slow disk of the chief, which delays the request,
// doesn't shorten the time that the shards have.
void Fences::on_persisted(Turn& turn, Ticket persisted) {
  for (Fence& fence : fences_) {
    if (fence.held != persisted) continue;
    fence.held.reset();
    fence.deadline = turn.now + setup_.answer_limit();
  }
}

// A faulty peer could name tasks that don't exist. So the chief notes the last step of a worker only if it knows the
// task or has asked about this worker.
void Fences::on_fenced(Turn& turn, const WorkerFenced& fenced) {
  bool is_asked = false;
  for (Fence& fence : fences_) {
    if (fence.worker != fenced.worker) continue;
    fence.owed.erase(fenced.shard);
    is_asked = true;
  }
  if (!is_asked && turn.tasks.find(fenced.worker.task) == nullptr) return;
  workers_.note_lost_clock(fenced.worker.task, fenced.last_clock);
  advance(turn);
}

void Fences::on_roster_applied(Turn& turn, RosterVersion version) {
  for (Fence& fence : fences_)
    if (fence.roster <= version) fence.roster_applied = true;
  advance(turn);
}

void Fences::advance(Turn& turn) {
  if (stage_.is(Stage::kReclaim)) return;  // the leases aren't known yet
  const auto is_done = [](const Fence& fence) {
    return DISTTRAIN_MUTANT(kLentBeforeFence) || (fence.owed.empty() && fence.roster_applied);
  };
  bool any = false;
  for (const Fence& fence : fences_) {
    if (!is_done(fence)) continue;
    loans_.give_back(fence.worker);
    any = true;
  }
  std::erase_if(fences_, is_done);
  // The chief journals the open leases before it lends the lost worker's records to others. Otherwise a restarted chief
  // would think that the lost worker still holds the records.
  if (any && !setup_.is_sync()) loans_.persist_open(turn);
  if (any && stage_.is(Stage::kTrain)) loans_.lend(turn);
}

void Fences::repeat(Turn& turn, const Member& ps) {
  for (Fence& fence : fences_) {
    const bool owes =
        std::any_of(fence.owed.begin(), fence.owed.end(), [&](ShardId shard) { return generation_.owns(ps, shard); });
    if (owes || ps == generation_.pacer()) fence.deadline = turn.now + setup_.answer_limit();
    if (owes) turn.send(ps.task, FenceWorker{setup_.id, generation_.number(), fence.worker});
  }
}

std::optional<Fences::Late> Fences::find_late(const Turn& turn) {
  for (Fence& fence : fences_) {
    if (fence.held) continue;
    const Member& debtor =
        fence.owed.empty() ? generation_.pacer() : generation_.owners()[fence.owed.begin()->value].ps;
    if (!turn.tasks.hears_both_ways(debtor)) fence.deadline = turn.now + setup_.answer_limit();
    if (turn.now >= fence.deadline) return Late{fence.worker, debtor};
  }
  return std::nullopt;
}

void Fences::give_time(Instant now) {
  for (Fence& fence : fences_) fence.deadline = now + setup_.answer_limit();
}

}  // namespace disttrain::chiefd
