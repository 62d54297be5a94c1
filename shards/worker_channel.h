// The shell of one channel. It receives a worker's frames into the store's memory, and sends the shard's answers as
// fast as the socket takes them. Belongs to the loop of its shard.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/fifo.h"
#include "common/messages/data.h"
#include "common/messages/session.h"
#include "shards/core/events.h"
#include "shards/shard_job.h"
#include "shards/shard_trace.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::shards {

// The shard that a channel belongs to.
class ChannelOwner {
 public:
  virtual ~ChannelOwner() = default;
  virtual Result<std::span<float>> landing(ChannelId channel, Sequence sequence, const Push& push,
                                           std::uint64_t payload_bytes) = 0;
  // The same for a payload that is in memory of the worker. Returns where the owner will read it.
  virtual Result<std::span<const float>> lend(ChannelId channel, Sequence sequence, const Push& push,
                                              std::span<const float> payload, std::shared_ptr<const void> keeps) = 0;
  // `event` is a member of the channel, so that its memory is reused. `payload` is in the memory that landing()
  // returned.
  virtual void on_push(PushArrived& event, std::span<const float> payload) = 0;
  virtual void on_pull(const PullArrived& event) = 0;
  virtual void on_mark(const MarkArrived& event) = 0;
  // The channel has ended and makes no call after this one. Destroy it only after the call has returned to the loop.
  virtual void on_channel_lost(ChannelId channel, const std::string& why) = 0;
  // The current values of the answer's bucket, which the channel sends to its worker.
  virtual std::span<const float> values(const Parameters& answer) = 0;
  // Memory for encoding messages. All channels of a shard share it.
  virtual wire::ScratchBuffer& scratch() = 0;
  virtual ShardTrace& trace() = 0;
};

class WorkerChannel final : public transport::ConnectionHandler {
 public:
  // The owner, which has this shard, outlives the channel.
  WorkerChannel(ChannelOwner& owner, ShardJobPtr job, ShardId shard, ChannelId id, Member worker,
                std::unique_ptr<transport::Connection> connection);

  ChannelId id() const { return id_; }
  TaskId worker() const { return worker_.task; }
  const Member& member() const { return worker_; }
  // Number of answers that wait for room in the socket.
  std::size_t waiting() const { return waiting_.size(); }

  void start() { connection_->start(*this); }
  void welcome(const Welcome& welcome);
  void refuse(const Refused& refused);
  void close() { connection_->close(); }

  // Sends one bucket of parameters. If the socket is full, the channel sends the bucket later, with the values that the
  // bucket has then.
  void answer(const Parameters& message);
  void acknowledge(const Acknowledge& message);
  void let_go(const MarkTaken& message);
  // Call it at least once within each Timeouts::heartbeat. If nothing else was sent since the last call, it sends a
  // frame that shows the worker that the channel works.
  void keep_alive();

  // Call it before the bucket changes to another step's values. If answers with this bucket wait for room in the
  // socket, the channel copies the present values now and sends the copies.
  void settle(BucketId bucket);

  // ConnectionHandler
  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, transport::Bytes control) override;
  Result<transport::Bytes> payload_lent(const wire::FrameHeader& header, transport::Bytes control,
                                        const transport::LentPayload& lent) override;
  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) override;
  void on_sent(std::uint64_t cookie) override;
  void on_closed(const Error& why) override;

 private:
  wire::FrameHeader header(wire::FrameType type) const;
  bool belongs(const wire::FrameHeader& header) const;
  Status expect_push(const wire::FrameHeader& header, transport::Bytes control);
  void send_parameters(const Parameters& message);
  void send_acknowledge(const Acknowledge& message, transport::Payload lifetime);
  void send_waiting();
  void give_up(const std::string& why);
  bool is_flooded() const;

  // Constant.
  ChannelOwner& owner_;
  const ShardJobPtr job_;
  const ChannelId id_;
  const Member worker_;
  const std::size_t buckets_;  // of the shard
  const std::size_t bytes_;    // of its parameters

  // Owned by the loop.
  std::unique_ptr<transport::Connection> connection_;
  PushArrived arriving_;      // the push frame that is being received
  Instant arriving_since_;    // when its payload began to arrive; Instant() unless the shard records a trace
  Fifo<Parameters> waiting_;  // the answers that wait for room in the socket; they answer at most one push and one pull
  bool full_ = false;         // true: the socket is full; on_sent() comes when it has room again
  bool is_welcome_ = false;   // true: the hello is answered with Welcome
  bool has_sent_ = false;     // true: a frame was sent since the last keep_alive()
};

}  // namespace disttrain::shards
