// async and ssp: the shard applies each frame when it arrives. The two modes differ only in when they answer: async
// answers at once; ssp answers when the worker is at most train.staleness steps ahead of the slowest worker. Pushes
// that arrive after the last step are still applied and counted. Otherwise the shards would end with different pushes,
// because they hear of the job's end at different times.
#include <algorithm>

#include "common/mutant.h"
#include "shards/core/shard_core.h"

namespace disttrain::shards {

void ShardCore::push_async(Instant now, MemberState& member, const PushArrived& event, Actions& actions) {
  const Push& push = event.push;
  const bool has_gradient = event.payload_bytes > 0 && !push.skipped;
  if (has_gradient && !event.nonfinite) actions.push_back(apply_of(member, push.bucket));
  member.push_nonfinite = member.push_nonfinite || push.skipped || (has_gradient && event.nonfinite);
  member.push_wants = member.push_wants || push.want != Want::kNothing;

  PushOutcome outcome = PushOutcome::kNone;
  if (push.last) {
    outcome = member.push_nonfinite ? PushOutcome::kSkipped : PushOutcome::kApplied;
    const bool trained = push.examples > 0 || push.skipped;
    if (trained) count_async(now, member, push, actions);
    if (trained && own_order_) own_order_->pushed(member.member.task, push);
    if (failed_) return;
    member.last_clock = push.clock;
    clocks_.pushed(member.member, push.clock);
    if (push.final) clocks_.leave(member.member);
  }
  answer_async(member, event, outcome, actions);
  if (push.last) {
    member.push_nonfinite = false;
    member.push_wants = false;
    answer_within_bound(actions);
  }
}

Apply ShardCore::apply_of(const MemberState& member, BucketId bucket) const {
  UpdateAt at = update_at();
  at.state_weight = state_weight(member);
  return Apply{Landing{Landing::Kind::kFrame, member.place, 0}, bucket, at};
}

std::optional<Apply> ShardCore::update_by(const PushArrived& event) const {
  const MemberState* member = members_.find(event.channel);
  const bool has_gradient = event.payload_bytes > 0 && !event.push.skipped && !event.push.initial;
  if (train_.mode == Mode::kSync || event.channel.value == 0 || member == nullptr || !has_gradient) return std::nullopt;
  if (event.sequence <= member->last || !buckets_.number_of(event.push.bucket)) return std::nullopt;
  return apply_of(*member, event.push.bucket);
}

// Returns the weight of the state that this member pushes. With "mean" each worker's value counts for one of the
// roster's workers. So the state follows the mean of the workers' values, as a moving average.
double ShardCore::state_weight(const MemberState& member) const {
  if (train_.state == StateRule::kLowestRank)
    return member.rank.value == 0 || DISTTRAIN_MUTANT(kStateOfAnyRank) ? 1.0 : 0.0;
  return 1.0 / static_cast<double>(std::max<std::size_t>(1, members_.roster().members.size()));
}

// Counts a push as one step of this shard, when its last frame has come.
void ShardCore::count_async(Instant now, const MemberState& member, const Push& push, Actions& actions) {
  const std::uint64_t behind = version_ > push.pull_version ? version_.value - push.pull_version.value : 0;
  version_ = version_.next();
  if (!is_pacer()) return;
  if (tells_visits_) actions.push_back(StepCounted{version_, {Visit{member.member.task, push.epoch, push.visited}}});
  pacer_.note_staleness(behind);
  pacer_.step_done(now, StepDone{push.examples, push.loss, static_cast<double>(behind), member.push_nonfinite});
  const bool epoch_done = push.lease.value != 0 && pacer_.ledger().visit(push.epoch, push.visited);
  counted(actions, epoch_done);
  if (!failed_ && finished()) tell_news(actions);
}

void ShardCore::answer_async(MemberState& member, const PushArrived& event, PushOutcome outcome, Actions& actions) {
  const Push& push = event.push;
  if (train_.mode == Mode::kSsp) {
    if (!push.last) return acknowledge_some(member, actions);
    member.parked = ParkedReply{true, member.push_wants, push.clock, outcome};
    return;  // push_async() calls answer_within_bound() next
  }
  const bool whole = push.want == Want::kAll || (push.want == Want::kBucket && event.payload_bytes == 0);
  if (whole) return answer_all(member, outcome, Pull{}, actions);
  if (push.want == Want::kBucket) return answer_bucket(member, push.bucket, outcome, push.last, Pull{}, actions);
  if (push.last) return acknowledge(member, outcome, actions);
  acknowledge_some(member, actions);
}

// ssp: sends the waiting answers of all workers that aren't too far ahead any more. One push of the slowest worker can
// release several answers.
void ShardCore::answer_within_bound(Actions& actions) {
  if (train_.mode != Mode::kSsp) return;
  const std::optional<Step> slowest = clocks_.slowest();
  for (MemberState* member : members_.active()) {
    if (!member->parked.waiting) continue;
    // An acknowledgement needn't wait for slower workers, because it brings no parameters.
    const bool free =
        !member->parked.wants_parameters || finished() || clocks_.may_go_on(member->parked.clock, slowest);
    if (free) answer_parked(*member, actions);
  }
}

}  // namespace disttrain::shards
