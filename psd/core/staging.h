// sync: which buckets of which worker's pushes are staged here. One record per (place, push in flight). The store keeps
// the bytes, in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/messages/data.h"
#include "common/result.h"
#include "psd/core/events.h"

namespace disttrain::psd {

// What has arrived of one worker's push.
struct StagedPush {
  Step clock;  // 0 = empty
  RosterVersion roster;
  bool complete = false;
  bool nonfinite = false;
  std::uint32_t buckets = 0;  // received
  std::vector<bool> has;      // by the bucket's number within the shard
  Push last;                  // the push's last frame, once complete
  // The worker had no records for this step. False for a push that wasn't finite: its worker had records.
  bool is_empty() const { return complete && !nonfinite && last.examples == 0 && !last.skipped; }
  bool contributes() const { return complete && !nonfinite && last.examples > 0; }
};

class Staging {
 public:
  // pushes: in flight per worker, 1 + train.pipeline. buckets: buckets of the shard.
  Staging(std::uint32_t places, std::uint32_t pushes, std::uint32_t buckets);

  Landing landing(Place place, Step clock) const;

  // A frame for a step that isn't committed. kData: the frame contradicts what is staged (a bucket came twice, or the
  // last frame came before all buckets).
  Status add(Place place, const Push& push, std::uint32_t bucket, bool has_payload, bool nonfinite);

  // What has arrived of the push for this step; nullptr if nothing has.
  const StagedPush* find(Place place, Step clock) const;

  // Forgets the push: it was committed, or came too late.
  void drop(Place place, Step clock);
  void drop_all(Place place);
  // Drops the pushes that name a roster before this one. True: there was one.
  bool drop_older(Place place, RosterVersion roster);

 private:
  StagedPush& at(Place place, Step clock) { return pushes_[index(place, clock)]; }
  std::size_t index(Place place, Step clock) const { return place.value * in_flight_ + clock.value % in_flight_; }

  const std::uint32_t in_flight_;
  const std::uint32_t buckets_;
  std::vector<StagedPush> pushes_;
};

}  // namespace disttrain::psd
