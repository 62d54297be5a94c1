// A whole shard: its rules (ShardCore) and its bytes (ShardStore). The shell or the simulator passes events in. The
// shard changes its bytes itself; the shell or the simulator carries out all other actions, which concern connections.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "common/layout.h"
#include "common/time.h"
#include "shards/core/shard_core.h"
#include "shards/store/shard_store.h"

namespace disttrain::shards {

// Carries out, in order, the actions that the store doesn't carry out. For a Reply, `act` must copy or send
// Shard::values() before it returns, because a later action may change them.
class Outside {
 public:
  virtual ~Outside() = default;
  virtual void act(const Action& action) = 0;
  // sync: the bucket is about to change to the next step's values. If an answer with the present values isn't sent yet,
  // copy the values now.
  virtual void before_update(BucketId bucket) = 0;
  // sync: the next bucket of a pass over them begins. In a long step, these calls show that the shard is alive.
  virtual void goes_on() = 0;
  // The store updates a bucket between these two calls.
  virtual void update_begins() = 0;
  virtual void update_ended() = 0;
};

class Shard {
 public:
  // `is_cancelled` goes to the constructor of ShardStore. Throws std::bad_alloc.
  Shard(const Layout& layout, const ShardOptions& options, const StoreOptions& memory,
        const std::function<bool()>& is_cancelled)
      : core_(layout, options), store_(layout, options.shard, memory, is_cancelled) {}

  // The memory for a push frame's payload, or the error for which its channel must be closed. See ShardCore::landing.
  Result<std::span<float>> landing(ChannelId channel, Sequence sequence, const Push& push, std::uint64_t payload_bytes);

  // The same for a payload in memory of the worker: the store reads it there while the channel is open. Returns where
  // it will read it.
  Result<std::span<const float>> lend(ChannelId channel, Sequence sequence, const Push& push,
                                      std::span<const float> payload, std::shared_ptr<const void> keeps);

  // `outside` may not call handle().
  void handle(Instant now, const Event& event, Outside& outside);
  // Handles a push frame without copying the event. `payload` is in the memory that landing() returned, or
  // was lent. Sets event.largest, and event.nonfinite if the payload has a NaN or an infinity, or if the update would
  // give one.
  void handle_push(Instant now, PushArrived& event, std::span<const float> payload, Outside& outside);

  std::span<const float> parameters(BucketId bucket) const { return store_.parameters(bucket); }
  // The payload of an answer.
  std::span<const float> values(const Parameters& answer) const {
    return answer.averages ? store_.averages(answer.bucket) : store_.parameters(answer.bucket);
  }
  const ShardCore& core() const { return core_; }
  // Before the first event the caller may fill the store with values. After it, the caller may only take copies.
  ShardStore& store() { return store_; }
  std::uint64_t bytes() const { return store_.bytes(); }
  const Arena& arena() const { return store_.arena(); }

 private:
  template <typename AnyEvent>
  void step(Instant now, const AnyEvent& event, Outside& outside);
  // Fails the job, because the update of action number `at` has given numbers that aren't finite.
  void fail_update(Instant now, BucketId bucket, std::size_t at);

  ShardCore core_;
  ShardStore store_;
  Actions actions_;  // the actions of the event that is being handled; a member so that its memory is reused
  bool is_handling_ = false;
};

}  // namespace disttrain::shards
