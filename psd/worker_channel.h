// The shell of one channel: receives a worker's frames where the store wants them, and sends answers as fast as the
// socket takes them. Belongs to the loop of its shard.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/fifo.h"
#include "common/messages/data.h"
#include "common/messages/session.h"
#include "psd/core/events.h"
#include "psd/shard_job.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::psd {

// The shard that a channel belongs to.
class ChannelOwner {
 public:
  virtual ~ChannelOwner() = default;
  virtual Result<std::span<float>> landing(ChannelId channel, Sequence sequence, const Push& push,
                                           std::uint64_t payload_bytes) = 0;
  // `event`: the channel's own, whose memory is reused; payload: where landing() said.
  virtual void on_push(PushArrived& event, std::span<const float> payload) = 0;
  virtual void on_pull(const PullArrived& event) = 0;
  virtual void on_mark(const MarkArrived& event) = 0;
  // The last call for this channel; destroy it only after the call has returned to the loop.
  virtual void on_channel_lost(ChannelId channel, const std::string& why) = 0;
  // Current values, to be sent to a worker.
  virtual std::span<const float> parameters(BucketId bucket) = 0;
  // For encoding; one per thread.
  virtual wire::ScratchBuffer& scratch() = 0;
};

class WorkerChannel final : public transport::ConnectionHandler {
 public:
  // The owner outlives the channel.
  WorkerChannel(ChannelOwner& owner, ShardJobPtr job, ChannelId id, TaskId worker,
                std::unique_ptr<transport::Connection> connection);

  ChannelId id() const { return id_; }
  TaskId worker() const { return worker_; }
  // Number of answers that wait for room in the socket.
  std::size_t waiting() const { return waiting_.size(); }

  void start() { connection_->start(*this); }
  void welcome(const Welcome& welcome);
  void refuse(const Refused& refused);
  void close() { connection_->close(); }

  // One bucket of parameters: sent now if the socket has room, else later with the values of that moment.
  void answer(const Parameters& message);
  void acknowledge(const Acknowledge& message);
  void let_go(const MarkTaken& message);
  // Call it at least once within each Timeouts::interval: shows the worker that the channel works, if nothing else was
  // sent.
  void keep_alive();

  // The bucket is about to change to another step's values: sends by copy now what waits with the present ones.
  void settle(BucketId bucket);

  // ConnectionHandler
  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, transport::Bytes control) override;
  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) override;
  void on_sent(std::uint64_t cookie) override;
  void on_closed(const Error& why) override;

 private:
  wire::FrameHeader header(wire::FrameType type) const;
  bool belongs(const wire::FrameHeader& header) const;
  void send_parameters(const Parameters& message);
  void send_acknowledge(const Acknowledge& message, transport::Payload lifetime);
  void send_waiting();
  void give_up(const std::string& why);

  // Constant.
  ChannelOwner& owner_;
  const ShardJobPtr job_;
  const ChannelId id_;
  const TaskId worker_;

  // Owned by the loop.
  std::unique_ptr<transport::Connection> connection_;
  PushArrived arriving_;      // frame being received
  Fifo<Parameters> waiting_;  // answers that wait for room in the socket: at most one push's and one pull's
  bool full_ = false;         // on_sent will come
  bool is_welcome_ = false;   // the hello is answered
  bool has_sent_ = false;     // since keep_alive()
};

}  // namespace disttrain::psd
