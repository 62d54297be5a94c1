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
  if (!values_.are_missing() || members_.active().empty()) return;
  MemberState& giver = *members_.active().front();
  if (!giver.pull || !values_.ask(giver.member, giver.channel)) return;
  giver.acknowledged = giver.last;
  actions.push_back(SendAcknowledge{giver.channel, Acknowledge{giver.last, PushOutcome::kNone, false, true}});
}

// A frame of another worker than the giver changes nothing. That worker was asked before, and has a higher rank now.
void ShardCore::take_values(MemberState& member, const PushArrived& event, Actions& actions) {
  const std::uint32_t bucket = *buckets_.number_of(event.push.bucket);
  const bool is_wanted = values_.are_wanted_of(member.member);
  if (is_wanted && event.nonfinite)
    return fail_job(ErrorCode::kData,
                    to_string(member.member.task) + " sent first values for bucket " +
                        std::to_string(event.push.bucket.value) +
                        " that have a NaN or an infinity: correct the model's initial parameters",
                    actions);
  if (is_wanted) {
    const auto kind = train_.mode == Mode::kSync ? Landing::Kind::kSpare : Landing::Kind::kFrame;
    actions.push_back(SetParameters{Landing{kind, member.place, 0}, event.push.bucket});
    values_.take(bucket);
  }
  if (event.push.last)
    acknowledge(member, PushOutcome::kNone, actions);
  else
    acknowledge_some(member, actions);
  if (!is_wanted || values_.are_missing()) return;
  for (MemberState* waiting : members_.active())
    if (const std::optional<Pull> pull = std::exchange(waiting->pull, std::nullopt))
      answer_pull(*waiting, *pull, actions);
}

}  // namespace disttrain::shards
