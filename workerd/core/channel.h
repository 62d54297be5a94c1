// Channel: the worker's side of (job, worker, shard): frame numbers and credits of the current push, what to send again
// after a lost connection, and which answers are due. At most one push and one pull are under way.
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
  const std::vector<BucketId>& buckets() const { return buckets_; }  // ascending: the order in which they become ready
  bool connected() const { return connected_; }

  // The shard has taken frames up to `last`: sends the missing ones again and asks for lost answers again. Error: the
  // shard claims frames that were never sent.
  Status connect(Sequence last, Actions& out);
  void disconnect() { connected_ = false; }

  // A push must be complete before the next one begins. Give its frames in order, the last one with Push::last; they
  // leave as credits allow.
  void begin_push();
  void add_frame(Push push, std::uint32_t gradients, bool payload, Actions& out);
  // Number of buckets of the current push that were given so far.
  std::size_t frames() const { return frames_.size(); }

  // pull.id > 0.
  void begin_pull(Pull pull, Actions& out);

  // A checkpoint's boundary: sent after the frames given so far; all later frames wait until release(). Replaces an
  // older mark.
  void mark(std::uint64_t attempt, Actions& out);
  void release(std::uint64_t attempt, Actions& out);

  // Errors: an answer to no request, an acknowledgement of frames that were never sent.
  Status take(const Parameters& parameters, Actions& out);
  Status take(const Acknowledge& acknowledge, Actions& out);

  bool push_sent() const { return sent_ == frames_.size(); }
  // Every frame is acknowledged and every answer is here.
  bool push_complete() const;
  bool pull_complete() const { return pull_.id == 0; }
  // Version of the newest answer.
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
    Sequence after;     // the last frame before it
    bool sent = false;  // on the open connection
  };

  Status acknowledge(Sequence upto);
  void flush(Actions& out);

  const ShardId shard_;
  const std::vector<BucketId> buckets_;
  const std::uint32_t credits_;

  bool connected_ = false;
  Sequence base_;              // number of the frame before frames_[0]
  std::vector<Frame> frames_;  // of the current push or the last one
  std::size_t sent_ = 0;
  std::size_t acknowledged_ = 0;
  std::uint64_t buckets_due_ = 0;  // answers to Want::kBucket
  bool all_due_ = false;           // the answer to Want::kAll
  bool ask_for_all_ = false;       // answers were lost: the last frame must ask for everything
  Pull pull_;                      // the current pull; id 0 = none
  std::optional<PendingMark> mark_;
  Step version_;
};

}  // namespace disttrain::workerd
