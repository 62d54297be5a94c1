// The shell of one channel: takes a worker's frames where the store wants them, and sends answers at the pace of the
// socket. Belongs to the loop of its shard.
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
  // `event`: the channel's own, whose memory it uses again; payload: where landing() said.
  virtual void on_push(PushArrived& event, std::span<const float> payload) = 0;
  virtual void on_pull(const PullArrived& event) = 0;
  virtual void on_mark(const MarkArrived& event) = 0;
  // The last call for this channel; it may be destroyed once the loop has come out of it.
  virtual void on_channel_lost(ChannelId channel, const std::string& why) = 0;
  // To be sent to a worker.
  virtual std::span<const float> parameters(BucketId bucket) = 0;
  // For encoding; one per thread.
  virtual wire::ScratchBuffer& scratch() = 0;
};

class WorkerChannel final : public transport::ConnectionHandler {
 public:
  // The owner outlives it.
  WorkerChannel(ChannelOwner& owner, ShardJobPtr job, ChannelId id, TaskId worker,
                std::unique_ptr<transport::Connection> connection);

  ChannelId id() const { return id_; }
  TaskId worker() const { return worker_; }
  // Answers that wait for room in the socket.
  std::size_t waiting() const { return waiting_.size(); }

  void start() { connection_->start(*this); }
  void welcome(const Welcome& welcome);
  void refuse(const Refused& refused);
  void close() { connection_->close(); }

  // One bucket of parameters: at once if the socket takes it, else when it does, with the values of that moment.
  void answer(const Parameters& message);
  void acknowledge(const Acknowledge& message);
  void let_go(const MarkTaken& message);
  // To be called within each Timeouts::interval: shows the worker that the channel carries, where nothing else does.
  void keep_alive();

  // The bucket is about to become another step's: what waits with the values of this one leaves now, by copy.
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
  PushArrived arriving_;      // the push frame under way
  Fifo<Parameters> waiting_;  // answers that the socket hasn't room for: at most one push's and one pull's
  bool full_ = false;         // on_sent will come
  bool is_welcome_ = false;   // the hello is answered
  bool has_sent_ = false;     // since keep_alive()
};

}  // namespace disttrain::psd
