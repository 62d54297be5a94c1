#include "shards/store/shard.h"

#include <cmath>

#include "common/check.h"

namespace disttrain::shards {

Result<std::span<float>> Shard::landing(ChannelId channel, Sequence sequence, const Push& push,
                                        std::uint64_t payload_bytes) {
  const Result<Landing> where = core_.landing(channel, sequence, push, payload_bytes);
  if (!where) return tl::unexpected(where.error());
  return store_.landing(*where, push.bucket);
}

Result<std::span<const float>> Shard::lend(ChannelId channel, Sequence sequence, const Push& push,
                                           std::span<const float> payload, std::shared_ptr<const void> keeps) {
  const Result<Landing> where = core_.landing(channel, sequence, push, payload.size_bytes());
  if (!where) return tl::unexpected(where.error());
  return store_.lend(*where, push.bucket, channel, payload, std::move(keeps));
}

void Shard::handle_push(Instant now, PushArrived& event, std::span<const float> payload, Outside& outside) {
  event.largest = payload.empty() ? 0.0 : store_.largest(event.push.bucket, payload);
  event.nonfinite = !std::isfinite(event.largest);
  if (!event.nonfinite && !payload.empty() && store_.may_overflow(event.push.bucket, event.largest)) {
    const std::optional<Apply> update = core_.update_by(event);
    event.nonfinite = update && !store_.foresees_finite(*update);
  }
  step(now, event, outside);
}

void Shard::handle(Instant now, const Event& event, Outside& outside) {
  if (const auto* closed = std::get_if<ChannelClosed>(&event)) store_.take_over(closed->channel);
  step(now, event, outside);
}

template <typename AnyEvent>
void Shard::step(Instant now, const AnyEvent& event, Outside& outside) {
  // `outside` must not call handle(): the nested call would clear actions_ and so lose answers of the outer event.
  DISTTRAIN_CHECK(!is_handling_);
  is_handling_ = true;
  actions_.clear();
  const auto goes_on = [&outside] { outside.goes_on(); };
  core_.step(now, event, actions_);
  for (std::size_t i = 0; i < actions_.size(); ++i) {  // StepJudged appends actions
    if (const auto* apply = std::get_if<Apply>(&actions_[i])) {
      const BucketId bucket = apply->bucket;
      outside.update_begins();
      const bool is_finite = store_.apply(*apply);
      outside.update_ended();
      if (!is_finite) fail_update(now, bucket, i);
    } else if (const auto* set = std::get_if<SetParameters>(&actions_[i])) {
      store_.set(*set);
    } else if (const auto* sum = std::get_if<SumAndApply>(&actions_[i])) {
      const BucketId bucket = sum->bucket;
      outside.goes_on();
      outside.before_update(bucket);
      outside.update_begins();
      const bool is_finite = store_.sum_and_apply(*sum);
      outside.update_ended();
      if (!is_finite) fail_update(now, bucket, i);
    } else if (const auto* prepare = std::get_if<PrepareUpdate>(&actions_[i])) {
      outside.update_begins();
      const std::optional<BucketId> bad = store_.prepare(*prepare->plan, goes_on);
      outside.update_ended();
      if (bad) fail_update(now, *bad, i);
    } else if (const auto* judge = std::get_if<JudgeStep>(&actions_[i])) {
      const std::shared_ptr<const SumPlan> plan = judge->plan;
      StepJudged judged;
      if (judge->clips)
        judged.norm2 = store_.norm2(*plan, goes_on);
      else
        judged.finite = store_.foresees_finite(*plan, goes_on);
      core_.step(now, judged, actions_);
    } else {
      if (const auto* close = std::get_if<CloseChannel>(&actions_[i])) store_.take_over(close->channel);
      outside.act(actions_[i]);
    }
  }
  is_handling_ = false;
}

// The actions that follow are dropped, because they would send parameters that aren't finite.
void Shard::fail_update(Instant now, BucketId bucket, std::size_t at) {
  actions_.erase(actions_.begin() + static_cast<std::ptrdiff_t>(at) + 1, actions_.end());
  core_.step(now, UpdateFailed{bucket, store_.has_read_lent()}, actions_);
}

}  // namespace disttrain::shards
