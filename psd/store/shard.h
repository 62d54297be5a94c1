// A whole shard: its rules and its bytes. The owner of the network (the shell or the simulator) tells it what happened
// and carries out the remaining actions, those that concern connections.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "common/layout.h"
#include "common/time.h"
#include "psd/core/shard_core.h"
#include "psd/store/shard_store.h"

namespace disttrain::psd {

// Takes the actions that remain, in order. A Reply's parameters are Shard::parameters(bucket) at that moment: they must
// be copied or sent before `act` returns.
class Outside {
 public:
  virtual ~Outside() = default;
  virtual void act(const Action& action) = 0;
  // sync: the bucket is about to change to the next step's values. Answers that still wait to send the present values
  // must copy them now. In a long step the call also shows that the shard is alive.
  virtual void before_update(BucketId bucket) = 0;
  // The store updates a bucket between these two calls.
  virtual void update_begins() = 0;
  virtual void update_ended() = 0;
};

class Shard {
 public:
  // `is_cancelled` as of ShardStore. Throws std::bad_alloc.
  Shard(const Layout& layout, const ShardOptions& options, const StoreOptions& memory,
        const std::function<bool()>& is_cancelled)
      : core_(layout, options), store_(layout, options.shard, memory, is_cancelled) {}

  // Where a push frame's payload goes, or why its channel is to be closed: ShardCore::landing.
  Result<std::span<float>> landing(ChannelId channel, Sequence sequence, const Push& push, std::uint64_t payload_bytes);

  // `outside` may not call handle().
  void handle(Instant now, const Event& event, Outside& outside);
  // The same for a push frame, without a copy of the event. Reads the payload, which lies where landing() said, and
  // sets event.nonfinite.
  void handle_push(Instant now, PushArrived& event, std::span<const float> payload, Outside& outside);

  std::span<const float> parameters(BucketId bucket) const { return store_.parameters(bucket); }
  const ShardCore& core() const { return core_; }
  // May be filled before the first event; after it, only copied.
  ShardStore& store() { return store_; }
  std::uint64_t bytes() const { return store_.bytes(); }

 private:
  template <typename AnyEvent>
  void step(Instant now, const AnyEvent& event, Outside& outside);

  ShardCore core_;
  ShardStore store_;
  Actions actions_;  // of the event being handled; kept so that its memory is reused
  bool is_handling_ = false;
};

}  // namespace disttrain::psd
