// Channel: the worker's state for one shard of a job. It counts the frames and credits of the current push, and knows
// which answers the shard still owes. After a lost connection it knows which frames must be sent again. At most one
// push and one pull are under way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/result.h"
#include "workerd/core/events.h"

namespace disttrain::workerd {

// A bucket of the channel's shard, and its rank among all buckets of the job. If several frames wait for a credit, the
// frame whose bucket has the lowest rank is sent first.
struct RankedBucket {
  BucketId bucket;
  std::uint32_t rank = 0;
};

class Channel {
 public:
  // `buckets` is in the order in which the buckets become ready.
  Channel(ShardId shard, std::vector<RankedBucket> buckets, std::uint32_t credits)
      : shard_(shard), buckets_(std::move(buckets)), credits_(credits), answered_(buckets_.size()) {}

  ShardId shard() const { return shard_; }
  std::size_t buckets() const { return buckets_.size(); }
  // The bucket of the next frame to add: number frames() of the buckets.
  BucketId next_bucket() const { return buckets_.at(frames()).bucket; }
  bool connected() const { return connected_; }

  // The channel was opened, and the shard says that `last` is the last frame that it has taken. Sends the later frames
  // again, and asks again for answers that were lost. Returns an error if `last` was never sent or is older than an
  // acknowledged frame.
  Status connect(Sequence last, Actions& out);
  void disconnect() { connected_ = false; }

  // The previous push must be complete. After begin_push(), call add_frame() for each frame of the push, and set
  // Push::last in the last one. The frame is for next_bucket(). A frame is sent as soon as there is a credit for it. If
  // several frames wait, they exchange their buckets, so that the one with the lowest rank is sent first.
  void begin_push();
  void add_frame(Push push, std::uint32_t gradients, bool payload, Actions& out);
  // Number of frames that were added to the current push.
  std::size_t frames() const { return frames_.size(); }

  // pull.id > 0.
  void begin_pull(Pull pull, Actions& out);

  // Adds the mark of a checkpoint attempt. The mark is sent after the frames that were added so far. Frames that are
  // added later aren't sent before release(). A new mark replaces an older one.
  void mark(std::uint64_t attempt, Actions& out);
  void release(std::uint64_t attempt, Actions& out);

  // These two functions take what the shard sends. They return an error if the shard answers a request that is not
  // under way, sends a bucket twice, leaves one out, or acknowledges a frame that was never sent.
  Status take(const Parameters& parameters, Actions& out);
  Status take(const Acknowledge& acknowledge, Actions& out);

  bool push_sent() const { return sent_ == frames_.size(); }
  // True if the shard has acknowledged every frame of the push and sent every answer to it.
  bool push_complete() const;
  // Whether every bucket that add_awaited() names will come exactly once. It isn't so if a frame has asked for a bucket
  // and the last frame asks for all, or if the channel must first be opened again.
  bool answers_once() const;
  // Appends the buckets whose parameters the shard will still send in answer to the current push. The push's last frame
  // must have been added.
  void add_awaited(std::vector<BucketId>& awaited) const;
  bool pull_complete() const { return pull_.id == 0; }
  // The version of the parameters in the shard's newest answer.
  Step version() const { return version_; }

 private:
  struct Frame {
    Push push;
    std::uint32_t gradients = 0;
    bool payload = false;
  };

  // A mark that isn't released yet.
  struct PendingMark {
    std::uint64_t attempt = 0;
    Sequence after;     // the last frame that is sent before the mark
    bool sent = false;  // the mark was sent on the connection that is open now
  };

  Status acknowledge(Sequence upto);
  Status note_answer(BucketId bucket);
  void forget_answers() { answered_.assign(buckets_.size(), false); }
  void flush(Actions& out);

  const ShardId shard_;
  const std::vector<RankedBucket> buckets_;
  const std::uint32_t credits_;

  bool connected_ = false;
  Sequence base_;              // sequence of the frame before frames_[0]
  std::vector<Frame> frames_;  // frames of the newest push, also after it is complete
  std::size_t sent_ = 0;       // number of frames_ that were sent
  std::size_t chosen_ = 0;     // number of frames_ whose buckets are chosen, because they were sent at least once
  std::vector<RankedBucket> waiting_;  // a heap of the buckets of the other frames, with the lowest rank on top
  std::size_t acknowledged_ = 0;       // number of frames_ that are acknowledged
  std::uint64_t buckets_due_ = 0;      // number of answers to Want::kBucket that haven't arrived
  // For each of buckets_: the shard has sent it in answer to the push and won't send it again.
  std::vector<bool> answered_;
  bool all_due_ = false;      // the answer to Want::kAll hasn't arrived
  bool ask_for_all_ = false;  // answers were lost, so the last frame must ask for all buckets
  Pull pull_;                 // the current pull; id 0 = none
  std::optional<PendingMark> mark_;
  Step version_;
};

}  // namespace disttrain::workerd
