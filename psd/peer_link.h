// The connection between a shard and its pacer, at either end: small messages in order. The shard that isn't the pacer
// dials until the pacer answers. A link that has carried messages and is lost isn't opened again: some of them may be
// lost, and the chief decides what happens to the job. A link that has carried only the pacer's news is dialled again:
// the pacer sends its news on each new link. Belongs to the loop of its shard.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/messages/data.h"
#include "common/time.h"
#include "psd/shard_job.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::psd {

class PeerOwner {
 public:
  virtual ~PeerOwner() = default;
  virtual void on_peer_open(ShardId peer) = 0;
  virtual void on_peer_frame(ShardId peer, const wire::FrameHeader& header, transport::Bytes control) = 0;
  // First: the peer has been dialled without an answer for `lasts`. Second: after that, the peer answered.
  virtual void on_peer_unreachable(ShardId peer, Duration lasts, const std::string& why) = 0;
  virtual void on_peer_reached(ShardId peer) = 0;
  // The last call for this link; destroy the link only after the call has returned to the loop. `carried`: the link
  // carried messages, and some may be lost; otherwise the peer dials again. `lasts`: time since the peer was last
  // heard.
  virtual void on_peer_lost(ShardId peer, bool carried, Duration lasts, const std::string& why) = 0;
};

class PeerLink final : public transport::ConnectionHandler {
 public:
  // The pacer's end: `peer`'s hello was accepted. Answers the hello with Welcome.
  PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId peer, std::unique_ptr<transport::Connection> connection);
  // The other end. All references outlive the link.
  PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId self, asio::io_context& loop, transport::Transport& transport);
  ~PeerLink() override;

  void send(wire::FrameType type, transport::Bytes control);
  // Call it at least once within each Timeouts::interval: it shows the peer that the link works, and gives up a peer
  // that has sent nothing for Timeouts::silent.
  void keep_alive(Instant now);
  bool has_carried() const { return carried_; }

  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, transport::Bytes control) override;
  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) override;
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error& why) override;

 private:
  struct Dialler;

  void dial();
  void wait_for_hello_answer();
  void dial_later(const std::string& why, bool answered = false);
  void drop_connection();
  void lose(const std::string& why, Duration lasts);
  void transmit(wire::FrameType type, transport::Bytes control);

  PeerOwner& owner_;
  const ShardJobPtr job_;
  const ShardId peer_;  // the shard at the other end
  std::unique_ptr<Dialler> dialler_;
  std::unique_ptr<transport::Connection> connection_;
  bool open_ = false;
  bool carried_ = false;     // whether the link carried messages that aren't repeated, in either direction
  bool has_sent_ = false;    // since keep_alive()
  std::uint64_t heard_ = 0;  // bytes received until heard_at_
  Instant heard_at_;
  Instant kept_at_;                                             // the last keep_alive()
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with callbacks that may outlive the link
};

}  // namespace disttrain::psd
