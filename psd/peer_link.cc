#include "psd/peer_link.h"

#include <algorithm>
#include <asio/post.hpp>

namespace disttrain::psd {

using transport::Bytes;
using transport::MutableBytes;
using transport::OutgoingFrame;
using wire::FrameHeader;
using wire::FrameType;

struct PeerLink::Dialler {
  Dialler(ShardId self_id, asio::io_context& io, transport::Transport& way, const Timeouts& timeouts)
      : self(self_id),
        loop(io),
        transport(way),
        timer(io),
        give_up(asio::steady_timer::clock_type::now() + timeouts.setup),
        pause(timeouts.reconnect_first) {}

  const ShardId self;
  asio::io_context& loop;
  transport::Transport& transport;
  asio::steady_timer timer;
  const asio::steady_timer::time_point give_up;
  Duration pause;
};

PeerLink::PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId peer, std::unique_ptr<transport::Connection> connection)
    : owner_(owner), job_(std::move(job)), peer_(peer), connection_(std::move(connection)), open_(true) {
  connection_->start(*this);
  const std::vector<std::byte> bytes = wire::encode(Welcome{});
  send(FrameType::kWelcome, bytes);
}

PeerLink::PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId self, asio::io_context& loop,
                   transport::Transport& transport)
    : owner_(owner),
      job_(std::move(job)),
      peer_(0),
      dialler_(std::make_unique<Dialler>(self, loop, transport, job_->timeouts)) {
  dial();
}

PeerLink::~PeerLink() {
  *alive_ = false;
  if (connection_) connection_->close();
}

FrameHeader PeerLink::header(FrameType type) const {
  FrameHeader header;
  header.type = type;
  header.job = job_->job;
  header.generation = job_->generation;
  return header;
}

void PeerLink::send(FrameType type, Bytes control) {
  if (!open_) return;
  OutgoingFrame frame;
  frame.header = header(type);
  frame.control = control;
  connection_->send(frame);
}

void PeerLink::dial() {
  Hello hello;
  hello.cluster = job_->cluster;
  hello.cluster_hash = job_->cluster_hash;
  hello.who = ShardPeerHello{job_->job, job_->generation, dialler_->self, job_->self, job_->token};
  const std::vector<std::byte> bytes = wire::encode(hello);
  OutgoingFrame frame;
  frame.header = header(FrameType::kHello);
  frame.control = bytes;
  dialler_->transport.dial(dialler_->loop, job_->owners.at(0).address, frame, job_->timeouts.dial,
                           [this, alive = alive_](Result<std::unique_ptr<transport::Connection>> connection) {
                             if (!*alive) return;
                             if (!connection) return dial_later(connection.error().message);
                             connection_ = std::move(*connection);
                             connection_->start(*this);
                           });
}

// The pacer may not be made yet: each ps gets its shards in its own time.
void PeerLink::dial_later(const std::string& why) {
  if (connection_) {
    connection_->close();
    asio::post(dialler_->loop, [dead = std::shared_ptr<transport::Connection>(std::move(connection_))] {});
  }
  if (asio::steady_timer::clock_type::now() >= dialler_->give_up) return owner_.on_peer_lost(peer_, why);
  dialler_->timer.expires_after(dialler_->pause);
  dialler_->pause = std::min(dialler_->pause * 2, job_->timeouts.reconnect_longest);
  dialler_->timer.async_wait([this, alive = alive_](asio::error_code cancelled) {
    if (!cancelled && *alive) dial();
  });
}

Result<MutableBytes> PeerLink::payload_landing(const FrameHeader&, Bytes) {
  return fail(ErrorCode::kData, "a shard's peer sent a payload; its messages have none");
}

void PeerLink::on_frame(const FrameHeader& frame_header, Bytes control, Bytes) {
  if (open_) {
    if (frame_header.job == job_->job && frame_header.generation == job_->generation)
      owner_.on_peer_frame(peer_, frame_header, control);
    return;
  }
  const Result<wire::HelloAnswer> answer = wire::decode_hello_answer(frame_header.type, control);
  if (!answer) return dial_later(answer.error().message);
  if (const auto* refused = std::get_if<Refused>(&*answer)) {
    if (refused->code == ErrorCode::kTemporary) return dial_later(refused->reason);
    connection_->close();
    return owner_.on_peer_lost(peer_, "it refuses: " + refused->reason);
  }
  open_ = true;
  owner_.on_peer_open(peer_);
}

void PeerLink::on_closed(const Error& why) {
  if (!open_) return dial_later(why.message);
  open_ = false;
  owner_.on_peer_lost(peer_, why.message);
}

}  // namespace disttrain::psd
