#include "shards/peer_link.h"

#include <algorithm>
#include <asio/post.hpp>

#include "common/daemon/clock.h"

namespace disttrain::shards {

using transport::Bytes;
using transport::MutableBytes;
using transport::OutgoingFrame;
using wire::FrameHeader;
using wire::FrameType;

namespace {

// Returns true if a message of this type is lost for good when the link breaks. PacerNews isn't: it has everything that
// the other shard must know, and the pacer sends it on each new link.
bool is_said_once(FrameType type) {
  return type != FrameType::kPacerNews && type != FrameType::kAlive;
}

}  // namespace

struct PeerLink::Dialler {
  Dialler(ShardId self_id, asio::io_context& io, transport::Transport& way, const Timeouts& timeouts)
      : self(self_id),
        loop(io),
        transport(way),
        timer(io),
        give_up(asio::steady_timer::clock_type::now() + timeouts.setup),
        pause(timeouts.reconnect_first),
        answered_at(daemon::now()) {}

  const ShardId self;
  asio::io_context& loop;
  transport::Transport& transport;
  asio::steady_timer timer;                // limits the wait for the hello's answer, or ends the pause between attempts
  asio::steady_timer::time_point give_up;  // when the link stops dialling; each answer of the pacer's ps postpones this
  Duration pause;
  std::uint64_t attempt = 0;  // number of this attempt to dial; callbacks of earlier attempts do nothing
  Instant answered_at;        // when the pacer's ps last answered, even with a refusal; at first, when dialling began
  bool has_complained = false;
};

PeerLink::PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId peer, std::unique_ptr<transport::Connection> connection)
    : owner_(owner),
      job_(std::move(job)),
      peer_(peer),
      connection_(std::move(connection)),
      open_(true),
      heard_at_(daemon::now()),
      kept_at_(heard_at_) {
  connection_->start(*this);
  const std::vector<std::byte> bytes = wire::encode(Welcome{});
  transmit(FrameType::kWelcome, bytes);
}

PeerLink::PeerLink(PeerOwner& owner, ShardJobPtr job, ShardId self, asio::io_context& loop,
                   transport::Transport& transport)
    : owner_(owner),
      job_(std::move(job)),
      peer_(0),
      dialler_(std::make_unique<Dialler>(self, loop, transport, job_->timeouts)),
      kept_at_(daemon::now()) {
  dial();
}

PeerLink::~PeerLink() {
  *alive_ = false;
  if (connection_) connection_->close();
}

void PeerLink::transmit(FrameType type, Bytes control) {
  OutgoingFrame frame;
  frame.header.type = type;
  frame.header.job = job_->job;
  frame.header.generation = job_->generation;
  frame.control = control;
  has_sent_ = true;
  connection_->send(frame);
}

void PeerLink::send(FrameType type, Bytes control) {
  if (!open_) return;
  carried_ = carried_ || is_said_once(type);
  transmit(type, control);
}

// If this shard's own loop has just been paused, bytes of the peer may lie unread in the socket. So right after such a
// pause the link doesn't count the peer as silent.
void PeerLink::keep_alive(Instant now) {
  const bool was_away = now - kept_at_ > job_->timeouts.silent / 2;
  kept_at_ = now;
  if (!open_) return;
  show_life();
  if (was_away || connection_->bytes_received() != heard_) {
    heard_ = connection_->bytes_received();
    heard_at_ = now;
  }
  if (now - heard_at_ > job_->timeouts.silent) lose("no answer", now - heard_at_);
}

void PeerLink::show_life() {
  if (!open_ || std::exchange(has_sent_, false)) return;
  transmit(FrameType::kAlive, {});
  has_sent_ = false;
}

void PeerLink::dial() {
  Hello hello;
  hello.cluster = job_->cluster;
  hello.cluster_hash = job_->cluster_hash;
  hello.who = ShardPeerHello{job_->job, job_->generation, dialler_->self, job_->self, job_->token};
  const std::vector<std::byte> bytes = wire::encode(hello);
  OutgoingFrame frame;
  frame.header.type = FrameType::kHello;
  frame.header.job = job_->job;
  frame.header.generation = job_->generation;
  frame.control = bytes;
  const std::uint64_t attempt = ++dialler_->attempt;
  dialler_->transport.for_steps().dial(
      dialler_->loop, job_->owners.at(0).address, frame, job_->timeouts.silent,
      [this, alive = alive_, attempt](Result<std::unique_ptr<transport::Connection>> connection) {
        if (!*alive || attempt != dialler_->attempt) return;
        if (!connection) return dial_later(connection.error().message);
        connection_ = std::move(*connection);
        connection_->start(*this);
        wait_for_hello_answer();
      });
}

void PeerLink::wait_for_hello_answer() {
  dialler_->timer.expires_after(job_->timeouts.silent);
  dialler_->timer.async_wait([this, alive = alive_, attempt = dialler_->attempt](asio::error_code cancelled) {
    if (!cancelled && *alive && attempt == dialler_->attempt && !open_)
      dial_later("the connection was accepted, but the hello wasn't answered");
  });
}

void PeerLink::drop_connection() {
  open_ = false;
  if (!connection_) return;
  connection_->close();
  if (!dialler_) return;
  // We may be inside a call from this connection. So the loop destroys the connection later, after the call has
  // returned.
  asio::post(dialler_->loop, [dead = std::shared_ptr<transport::Connection>(std::move(connection_))] {});
}

// Dials again after a pause. The pacer may not exist yet, because another ps makes it. `answered`: that ps has
// answered, for example with a refusal.
void PeerLink::dial_later(const std::string& why, bool answered) {
  drop_connection();
  ++dialler_->attempt;
  const Instant now = daemon::now();
  if (answered) {
    // The pacer's ps lives but hasn't made the pacer yet. The link sets no limit for that, because the chief watches
    // the progress of that ps.
    dialler_->answered_at = now;
    dialler_->give_up = asio::steady_timer::clock_type::now() + job_->timeouts.setup;
    if (std::exchange(dialler_->has_complained, false)) owner_.on_peer_reached(peer_);
  } else if (now - dialler_->answered_at > job_->timeouts.silent) {
    dialler_->has_complained = true;
    owner_.on_peer_unreachable(peer_, now - dialler_->answered_at, why);
  }
  if (asio::steady_timer::clock_type::now() >= dialler_->give_up)
    return owner_.on_peer_lost(peer_, true, now - dialler_->answered_at, why);
  dialler_->timer.expires_after(dialler_->pause);
  dialler_->pause = std::min(dialler_->pause * 2, job_->timeouts.reconnect_longest);
  dialler_->timer.async_wait([this, alive = alive_, attempt = dialler_->attempt](asio::error_code cancelled) {
    if (!cancelled && *alive && attempt == dialler_->attempt) dial();
  });
}

Result<MutableBytes> PeerLink::payload_landing(const FrameHeader&, Bytes) {
  return fail(ErrorCode::kData, "shard " + std::to_string(peer_.value) +
                                    " sent a frame with a payload; messages between shards have no payload");
}

void PeerLink::on_frame(const FrameHeader& frame_header, Bytes control, Bytes) {
  if (open_) {
    if (frame_header.type == FrameType::kAlive) return;
    carried_ = carried_ || is_said_once(frame_header.type);
    if (frame_header.job == job_->job && frame_header.generation == job_->generation)
      owner_.on_peer_frame(peer_, frame_header, control);
    return;
  }
  const Result<wire::HelloAnswer> answer = wire::decode_hello_answer(frame_header.type, control);
  if (!answer) return dial_later(answer.error().message, true);
  if (const auto* refused = std::get_if<Refused>(&*answer)) {
    // Another process may answer at the address of the pacer's ps. The chief has to find out which of them has its
    // place.
    const bool is_other = refused->by.incarnation.value != 0 && refused->by != job_->owners.front().ps;
    if (refused->code == ErrorCode::kTemporary && is_other) return dial_later("another process answers at its address");
    if (refused->code == ErrorCode::kTemporary) return dial_later(refused->reason, true);
    connection_->close();
    return owner_.on_peer_lost(peer_, true, Duration::zero(), "the hello was refused: " + refused->reason);
  }
  dialler_->timer.cancel();
  dialler_->pause = job_->timeouts.reconnect_first;
  dialler_->answered_at = heard_at_ = kept_at_ = daemon::now();
  heard_ = connection_->bytes_received();
  open_ = true;
  if (std::exchange(dialler_->has_complained, false)) owner_.on_peer_reached(peer_);
  owner_.on_peer_open(peer_);
}

void PeerLink::on_closed(const Error& why) {
  if (!open_) return dial_later(why.message);
  lose(why.message, Duration::zero());
}

void PeerLink::lose(const std::string& why, Duration lasts) {
  if (dialler_ && !carried_) {
    dialler_->answered_at = daemon::now() - lasts;
    dialler_->give_up = asio::steady_timer::clock_type::now() + job_->timeouts.setup;
    return dial_later(why);
  }
  open_ = false;
  connection_->close();
  owner_.on_peer_lost(peer_, carried_, lasts, why);
}

}  // namespace disttrain::shards
