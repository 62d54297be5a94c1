// Channel: one worker's side of (job, worker, shard): numbers and credits of the push under way, what of it must be
// sent again after a lost connection, and which answers are due. At most one push and one pull are under way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/result.h"
#include "workerd/core/events.h"

namespace disttrain::workerd {

class Channel {
 public:
  Channel(ShardId shard, std::vector<BucketId> buckets, std::uint32_t credits)
      : shard_(shard), buckets_(std::move(buckets)), credits_(credits) {}

  ShardId shard() const { return shard_; }
  const std::vector<BucketId>& buckets() const { return buckets_; }  // ascending: in the order in which they get ready
  bool connected() const { return connected_; }

  // The shard has taken frames up to `last`: what it lacks is sent again, and lost answers are asked for again.
  // Error: it claims frames that were never sent.
  Status connect(Sequence last, Actions& out);
  void disconnect() { connected_ = false; }

  // A push under way must be complete before the next one begins. Its frames are given in order, the last with
  // Push::last; they leave as credits allow.
  void begin_push();
  void add_frame(Push push, std::uint32_t gradients, bool payload, Actions& out);
  // Buckets of the push under way that were given so far.
  std::size_t frames() const { return frames_.size(); }

  // pull.id > 0.
  void begin_pull(Pull pull, Actions& out);

  // The boundary of a checkpoint: after the frames that were given so far, and before all others, which are held back
  // until release(). Takes the place of an older mark.
  void mark(std::uint64_t attempt, Actions& out);
  void release(std::uint64_t attempt, Actions& out);

  // Errors: an answer to nothing, an acknowledgement of frames that were never sent.
  Status take(const Parameters& parameters, Actions& out);
  Status take(const Acknowledge& acknowledge, Actions& out);

  bool push_sent() const { return sent_ == frames_.size(); }
  // Every frame acknowledged, every answer here.
  bool push_complete() const;
  bool pull_complete() const { return pull_.id == 0; }
  // Of the newest answer.
  Step version() const { return version_; }

 private:
  struct Frame {
    Push push;
    std::uint32_t gradients = 0;
    bool payload = false;
  };

  // A mark that isn't released.
  struct PendingMark {
    std::uint64_t attempt = 0;
    Sequence after;     // the last frame before it
    bool sent = false;  // on the connection that is open
  };

  Status acknowledge(Sequence upto);
  void flush(Actions& out);

  const ShardId shard_;
  const std::vector<BucketId> buckets_;
  const std::uint32_t credits_;

  bool connected_ = false;
  Sequence base_;              // of the frame before frames_[0]
  std::vector<Frame> frames_;  // of the push under way, or of the last one
  std::size_t sent_ = 0;
  std::size_t acknowledged_ = 0;
  std::uint64_t buckets_due_ = 0;  // answers to Want::kBucket
  bool all_due_ = false;           // the answer to Want::kAll
  bool ask_for_all_ = false;       // answers were lost: the last frame asks for everything
  Pull pull_;                      // under way; id 0 = none
  std::optional<PendingMark> mark_;
  Step version_;
};

}  // namespace disttrain::workerd
