#include "shards/core/staging.h"

#include <algorithm>
#include <string>

namespace disttrain::shards {

Staging::Staging(std::uint32_t places, std::uint32_t pushes, std::uint32_t buckets)
    : in_flight_(pushes), buckets_(buckets), pushes_(std::size_t{places} * pushes), complete_(pushes, 0) {
  for (StagedPush& push : pushes_) push.has.assign(buckets, false);
}

Landing Staging::landing(Place place, Step clock) const {
  return Landing{Landing::Kind::kStaging, place, static_cast<std::uint32_t>(clock.value % in_flight_)};
}

Status Staging::add(Place place, const Push& push, std::uint32_t bucket, bool has_payload, bool nonfinite,
                    double largest) {
  StagedPush& staged = at(place, push.clock);
  const auto refuse = [&push](const std::string& what) {
    return fail(ErrorCode::kData, "the push for step " + std::to_string(push.clock.value) + what);
  };
  if (staged.clock != push.clock) {
    if (staged.clock.value != 0)
      return refuse(" came before the push for step " + std::to_string(staged.clock.value) + " was answered");
    staged.clock = push.clock;
    staged.roster = push.roster;
  }
  if (staged.complete) return refuse(" has another frame after its last one");
  if (has_payload) {
    if (staged.has[bucket]) return refuse(" has bucket " + std::to_string(bucket) + " twice");
    staged.has[bucket] = true;
    ++staged.buckets;
  }
  staged.nonfinite = staged.nonfinite || nonfinite || push.skipped;
  staged.largest = std::max(staged.largest, largest);
  if (!push.last) return {};
  if (staged.buckets != buckets_ && !push.skipped && push.examples > 0)
    return refuse(" ended after " + std::to_string(staged.buckets) + " of the shard's " + std::to_string(buckets_) +
                  " buckets");
  staged.complete = true;
  ++complete_[push.clock.value % in_flight_];
  staged.last = push;
  return {};
}

const StagedPush* Staging::find(Place place, Step clock) const {
  const StagedPush& staged = pushes_[index(place, clock)];
  return staged.clock == clock && clock.value != 0 ? &staged : nullptr;
}

void Staging::drop(Place place, Step clock) {
  StagedPush& staged = at(place, clock);
  if (staged.clock != clock) return;
  if (staged.complete) --complete_[clock.value % in_flight_];
  staged.clock = {};
  staged.complete = staged.nonfinite = false;
  staged.largest = 0.0;
  staged.buckets = 0;
  staged.has.assign(buckets_, false);
}

void Staging::drop_all(Place place) {
  for (std::uint32_t push = 0; push < in_flight_; ++push) drop(place, pushes_[index(place, Step(push))].clock);
}

bool Staging::drop_older(Place place, RosterVersion roster) {
  bool any = false;
  for (std::uint32_t push = 0; push < in_flight_; ++push) {
    const StagedPush& staged = pushes_[index(place, Step(push))];
    if (staged.clock.value == 0 || staged.roster.value == 0 || staged.roster >= roster) continue;
    drop(place, staged.clock);
    any = true;
  }
  return any;
}

}  // namespace disttrain::shards
