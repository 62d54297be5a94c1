// The connection between a shard and its pacer, either end of it: small messages in order. The shard that isn't the
// pacer dials, again and again until the pacer is there; a link that was open and is lost isn't opened again: what it
// carried may be lost, and the chief decides what becomes of the job. Belongs to the loop of its shard.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/messages/data.h"
#include "psd/shard_job.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::psd {

class PeerOwner {
 public:
  virtual ~PeerOwner() = default;
  virtual void on_peer_open(ShardId peer) = 0;
  virtual void on_peer_frame(ShardId peer, const wire::FrameHeader& header, transport::Bytes control) = 0;
  // The last call for this link; it may be destroyed once the loop has come out of it.
  virtual void on_peer_lost(ShardId peer, const std::string& why) = 0;
};

class PeerLink final : public transport::ConnectionHandler {
 public:
  // The pacer's end: a hello of `peer` that was accepted. Answers it with Welcome.
  PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId peer, std::unique_ptr<transport::Connection> connection);
  // The other end. All references outlive it.
  PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId self, asio::io_context& loop, transport::Transport& transport);
  ~PeerLink() override;

  void send(wire::FrameType type, transport::Bytes control);

  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, transport::Bytes control) override;
  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) override;
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error& why) override;

 private:
  struct Dialler;

  void dial();
  void dial_later(const std::string& why);
  wire::FrameHeader header(wire::FrameType type) const;

  PeerOwner& owner_;
  const ShardJobPtr job_;
  const ShardId peer_;  // at the other end
  std::unique_ptr<Dialler> dialler_;
  std::unique_ptr<transport::Connection> connection_;
  bool open_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with callbacks that may come after the end
};

}  // namespace disttrain::psd
