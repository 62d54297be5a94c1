// sync: notes which buckets of the workers' pushes have arrived and wait for a commit. Each worker has a memory area
// (Place) for 1 + train.pipeline pushes. This class keeps one StagedPush for each of these pushes, and the store keeps
// their bytes in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/messages/data.h"
#include "common/result.h"
#include "shards/core/events.h"

namespace disttrain::shards {

// The part of one worker's push that has arrived.
struct StagedPush {
  Step clock;  // 0 = empty
  RosterVersion roster;
  bool complete = false;
  bool nonfinite = false;
  double largest = 0.0;       // the largest magnitude in its payloads
  std::uint32_t buckets = 0;  // received
  std::vector<bool> has;      // by the bucket's number within the shard; true: the bucket has arrived
  Push last;                  // the push's last frame; valid once `complete` is true
  // Returns true if the worker had no records for this step. A push with a non-finite loss or gradient isn't empty,
  // because its worker had records.
  bool is_empty() const { return complete && !nonfinite && last.examples == 0 && !last.skipped; }
  bool contributes() const { return complete && !nonfinite && last.examples > 0; }
};

class Staging {
 public:
  // `pushes`: how many pushes of a worker may wait for a commit, 1 + train.pipeline. `buckets`: how many buckets the
  // shard has.
  Staging(std::uint32_t places, std::uint32_t pushes, std::uint32_t buckets);

  Landing landing(Place place, Step clock) const;

  // Notes a frame of a push whose step isn't committed yet. kData: the frame contradicts earlier frames. For example, a
  // bucket came twice, or the last frame came before all buckets. `largest`: the largest magnitude in the payload.
  Status add(Place place, const Push& push, std::uint32_t bucket, bool has_payload, bool nonfinite,
             double largest = 0.0);

  // The worker's push for step `clock`; nullptr if no frame of it has arrived.
  const StagedPush* find(Place place, Step clock) const;

  // Returns how many pushes for step `clock` are complete, of all workers. The step must not be committed yet.
  std::size_t complete(Step clock) const { return complete_[clock.value % in_flight_]; }

  // Forgets the worker's push for step `clock`, because the step is committed or the push is invalid.
  void drop(Place place, Step clock);
  void drop_all(Place place);
  // Drops the worker's pushes that name an older roster than `roster`. Returns whether there was such a push.
  bool drop_older(Place place, RosterVersion roster);

 private:
  StagedPush& at(Place place, Step clock) { return pushes_[index(place, clock)]; }
  std::size_t index(Place place, Step clock) const { return place.value * in_flight_ + clock.value % in_flight_; }

  const std::uint32_t in_flight_;
  const std::uint32_t buckets_;
  std::vector<StagedPush> pushes_;
  std::vector<std::size_t> complete_;  // number of complete pushes, by step modulo in_flight_
};

}  // namespace disttrain::shards
