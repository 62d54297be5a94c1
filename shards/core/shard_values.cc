// The first values of a model that brings its own (ModelSpec::brings_values), such as a network that was trained
// before. The shards begin without values. A pull waits, and the shard asks the worker with the lowest rank for its
// values. When the shard has values for all its buckets, it answers all pulls that wait. After a restore from a
// checkpoint, or with checkpoint.init_from, the shards have values from the start.
//
// Example, workers A (rank 0) and B (rank 1), and a shard with three buckets:
// 1. B pulls. Its pull waits. A pulls. The shard asks A for its values.
// 2. A sends two buckets and dies. The chief fences A and sets a roster in which B has rank 0.
// 3. The shard asks B. It drops A's two buckets, so that all its values come from one worker.
// 4. B sends three buckets. The shard answers B's pull.
#include "shards/core/shard_core.h"

namespace disttrain::shards {

void ShardCore::ask_for_values(Actions& actions) {
  if (lacking_ == 0 || members_.active().empty()) return;
  MemberState& giver = *members_.active().front();
  if (!giver.pull || giver.channel == asked_) return;
  if (giver.member != giver_) {
    lacks_.assign(buckets_.size(), true);
    lacking_ = buckets_.size();
  }
  giver_ = giver.member;
  asked_ = giver.channel;
  giver.acknowledged = giver.last;
  actions.push_back(SendAcknowledge{giver.channel, Acknowledge{giver.last, PushOutcome::kNone, false, true}});
}

// A frame of another worker than the giver changes nothing. That worker was asked before, and has a higher rank now.
void ShardCore::take_values(MemberState& member, const PushArrived& event, Actions& actions) {
  const std::uint32_t bucket = *own_index(event.push.bucket);
  const bool is_wanted = lacking_ > 0 && member.member == giver_;
  if (is_wanted && event.nonfinite)
    return fail_job(ErrorCode::kData,
                    to_string(member.member.task) + " sent first values for bucket " +
                        std::to_string(event.push.bucket.value) +
                        " that have a NaN or an infinity: correct the model's initial parameters",
                    actions);
  if (is_wanted) {
    const auto kind = train_.mode == Mode::kSync ? Landing::Kind::kSpare : Landing::Kind::kFrame;
    actions.push_back(SetParameters{Landing{kind, member.place, 0}, event.push.bucket});
    lacking_ -= lacks_[bucket] ? 1 : 0;
    lacks_[bucket] = false;
  }
  if (event.push.last)
    acknowledge(member, PushOutcome::kNone, actions);
  else
    acknowledge_some(member, actions);
  if (!is_wanted || lacking_ > 0) return;
  for (MemberState* waiting : members_.active())
    if (const std::optional<Pull> pull = std::exchange(waiting->pull, std::nullopt))
      answer_pull(*waiting, *pull, actions);
}

}  // namespace disttrain::shards
