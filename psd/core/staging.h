// sync: which buckets of which worker's pushes are staged here. One record per (place, push in flight); the bytes lie
// in the store at the same places.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/messages/data.h"
#include "common/result.h"
#include "psd/core/events.h"

namespace disttrain::psd {

// What is known of one worker's push.
struct StagedPush {
  Step clock;  // 0 = empty
  RosterVersion roster;
  bool complete = false;
  bool nonfinite = false;
  std::uint32_t buckets = 0;  // received
  std::vector<bool> has;      // by the shard's bucket number
  Push last;                  // its last frame, once complete
  // It says that a worker had nothing for this step; one that wasn't finite had.
  bool is_empty() const { return complete && !nonfinite && last.examples == 0 && !last.skipped; }
  bool contributes() const { return complete && !nonfinite && last.examples > 0; }
};

class Staging {
 public:
  // pushes: in flight per worker, 1 + train.pipeline. buckets: of the shard.
  Staging(std::uint32_t places, std::uint32_t pushes, std::uint32_t buckets);

  Landing landing(Place place, Step clock) const;

  // A frame for a step that isn't committed. kData: it contradicts what is staged (a bucket twice, a last frame before
  // all buckets are there).
  Status add(Place place, const Push& push, std::uint32_t bucket, bool has_payload, bool nonfinite);

  // The push for this step as far as it is there; nullptr: nothing yet.
  const StagedPush* find(Place place, Step clock) const;

  // Forgets it: committed, or too late.
  void drop(Place place, Step clock);
  void drop_all(Place place);
  // Those that are bound to a roster before this one. True: there was one.
  bool drop_older(Place place, RosterVersion roster);

 private:
  StagedPush& at(Place place, Step clock) { return pushes_[index(place, clock)]; }
  std::size_t index(Place place, Step clock) const { return place.value * in_flight_ + clock.value % in_flight_; }

  const std::uint32_t in_flight_;
  const std::uint32_t buckets_;
  std::vector<StagedPush> pushes_;
};

}  // namespace disttrain::psd
