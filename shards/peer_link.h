// One end of the connection between the pacer and another shard of the job. The connection carries small messages, in
// order. The other shard dials the pacer, and retries until the pacer answers.
//
// If the connection breaks, messages may be lost. So the link isn't re-opened, and the chief decides what happens to
// the job. There is one exception: if the link has carried nothing but the pacer's news (PacerNews), the other shard
// dials again, because the pacer sends its news on each new link.
//
// A PeerLink belongs to the loop of its shard.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/messages/data.h"
#include "common/time.h"
#include "shards/shard_job.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"

namespace disttrain::shards {

class PeerOwner {
 public:
  virtual ~PeerOwner() = default;
  virtual void on_peer_open(ShardId peer) = 0;
  virtual void on_peer_frame(ShardId peer, const wire::FrameHeader& header, transport::Bytes control) = 0;
  // on_peer_unreachable: the link has dialled the peer for the time `lasts` without an answer. on_peer_reached: after
  // that, the peer answered.
  virtual void on_peer_unreachable(ShardId peer, Duration lasts, const std::string& why) = 0;
  virtual void on_peer_reached(ShardId peer) = 0;
  // The link has ended and makes no call after this one. Destroy the link only after the call has returned to the loop.
  // `carried`: messages may be lost; if false, nothing is lost and the peer dials again. `lasts`: the time since the
  // link last heard from the peer.
  virtual void on_peer_lost(ShardId peer, bool carried, Duration lasts, const std::string& why) = 0;
};

class PeerLink final : public transport::ConnectionHandler {
 public:
  // Makes the pacer's end of the link, after the hello of the shard `peer` was accepted. Answers the hello with
  // Welcome.
  PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId peer, std::unique_ptr<transport::Connection> connection);
  // Makes the other end, which dials the pacer. All references must outlive the link.
  PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId self, asio::io_context& loop, transport::Transport& transport);
  ~PeerLink() override;

  void send(wire::FrameType type, transport::Bytes control);
  // Call it at least once within each Timeouts::heartbeat. It shows the peer that the link works, and ends the link if
  // the peer has sent nothing for Timeouts::silent.
  void keep_alive(Instant now);
  // The first half of keep_alive(): shows the peer that this shard lives, and doesn't judge the peer.
  void show_life();
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
  bool carried_ = false;     // true: the link carried a message that a new link wouldn't repeat
  bool has_sent_ = false;    // true: a frame was sent since the last keep_alive()
  std::uint64_t heard_ = 0;  // number of bytes that the link had received at the time heard_at_
  Instant heard_at_;
  Instant kept_at_;  // time of the last keep_alive()
  // False once the link is destroyed. Callbacks share it, because they may run after that.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace disttrain::shards
