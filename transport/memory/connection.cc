#include "transport/memory/connection.h"

#include <algorithm>
#include <asio/post.hpp>
#include <cstring>
#include <optional>

#include "common/check.h"
#include "transport/wire/frame_header.h"

namespace disttrain::transport {

void MemoryLink::close(int end) {
  End& mine = ends[end];
  End& theirs = ends[1 - end];
  mine.open = false;
  mine.wake = nullptr;
  mine.inbox.clear();
  mine.inbox_bytes = 0;
  if (end == 1) slot_of_acceptor = PeerSlot();
  const auto frozen = std::find_if(theirs.inbox.begin(), theirs.inbox.end(),
                                   [](const MemoryFrame& frame) { return frame.frozen && !frame.payload.empty(); });
  theirs.inbox.erase(frozen, theirs.inbox.end());
  wake(1 - end);
}

class MemoryStream : public std::enable_shared_from_this<MemoryStream> {
 public:
  MemoryStream(asio::io_context& loop, std::shared_ptr<MemoryLink> link, int end, std::string peer,
               const MemoryOptions& options)
      : loop_(loop), link_(std::move(link)), end_(end), peer_(std::move(peer)), options_(options) {}

  // Lets the other end wake this one. Call it once, after construction.
  void attach() {
    const std::scoped_lock lock(link_->mutex);
    link_->ends[end_].wake = [this, weak = weak_from_this()] {
      if (auto self = weak.lock()) asio::post(loop_, [self] { self->turn(); });
    };
  }

  void start(ConnectionHandler& handler) {
    DISTTRAIN_CHECK(handler_ == nullptr);
    handler_ = &handler;
    post_turn();
  }

  void send(const OutgoingFrame& frame) {
    if (closed_) return;
    const wire::HeaderBytes header =
        wire::encode_header(frame.header, frame.control, frame.payload, wire::ChecksumKind::kNone);
    const Result<wire::FrameHeader> as_received = wire::decode_header(header);
    DISTTRAIN_CHECK(as_received.has_value());
    MemoryFrame item;
    item.header = *as_received;
    item.control.assign(frame.control.begin(), frame.control.end());
    item.frozen = frame.lifetime == Payload::kFrozenUntilSent;
    item.payload = frame.payload;
    if (!item.frozen) {
      item.copy.assign(frame.payload.begin(), frame.payload.end());
      item.payload = item.copy;
    }
    item.cookie = frame.cookie;
    item.bytes = header.size() + frame.control.size() + frame.payload.size();
    bytes_sent_ += item.bytes;
    const std::scoped_lock lock(link_->mutex);
    link_->ends[end_].traffic->sent += item.bytes;
    MemoryLink::End& other = link_->ends[1 - end_];
    if (!other.open) return;
    item.number = ++other.frames;
    other.inbox_bytes += item.bytes;
    other.inbox.push_back(std::move(item));
    link_->wake(1 - end_);
  }

  std::size_t queued_bytes() const {
    const std::scoped_lock lock(link_->mutex);
    return link_->ends[1 - end_].inbox_bytes;
  }

  void pause() { paused_ = true; }
  void resume() {
    paused_ = false;
    post_turn();
  }

  void close() {
    if (closed_) return;
    closed_ = true;
    handler_ = nullptr;
    const std::scoped_lock lock(link_->mutex);
    link_->close(end_);
  }

  const std::string& peer() const { return peer_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  static constexpr int kFramesPerTurn = 64;

  // The frame that is being received. Its header and control part have arrived, and its payload is being copied.
  struct Incoming {
    std::uint64_t number = 0;
    wire::FrameHeader header;
    std::vector<std::byte> control;
    MutableBytes landing;
    std::vector<std::byte> own_landing;  // of a frame of unknown type
    std::size_t landed = 0;
    unsigned turns_to_wait = 0;
  };

  void post_turn() {
    asio::post(loop_, [self = shared_from_this()] { self->turn(); });
  }

  void turn() {
    if (closed_ || handler_ == nullptr) return;
    tell_sent();
    for (int i = 0; i < kFramesPerTurn; ++i) {
      if (closed_ || paused_) return;
      if (!incoming_ && !begin_frame()) return;
      if (!copy_piece()) return;
      const Incoming frame = std::move(*incoming_);
      incoming_.reset();
      handler_->on_frame(frame.header, frame.control, frame.landing);
    }
    post_turn();
  }

  void tell_sent() {
    std::vector<std::uint64_t> cookies;
    {
      const std::scoped_lock lock(link_->mutex);
      cookies.swap(link_->ends[end_].sent);
    }
    for (std::uint64_t cookie : cookies) {
      if (closed_) return;
      handler_->on_sent(cookie);
    }
  }

  // Begins to receive the next frame. Returns false if there is no frame or the connection has ended.
  bool begin_frame() {
    Incoming next;
    bool gone = false;
    {
      const std::scoped_lock lock(link_->mutex);
      MemoryLink::End& mine = link_->ends[end_];
      gone = mine.inbox.empty() && !link_->ends[1 - end_].open;
      if (mine.inbox.empty() && !gone) return false;
      if (!gone) {
        MemoryFrame& front = mine.inbox.front();
        next.number = front.number;
        next.header = front.header;
        next.control = std::move(front.control);
      }
    }
    if (gone) {
      fail_now(Error{ErrorCode::kUnavailable, peer_ + " closed the connection"});
      return false;
    }
    next.turns_to_wait = options_.late_turns;
    if (next.header.payload_bytes != 0 && wire::known(next.header.type)) {
      const Result<MutableBytes> landing = handler_->payload_landing(next.header, next.control);
      if (closed_) return false;
      if (!landing) {
        fail_now(landing.error());
        return false;
      }
      DISTTRAIN_CHECK_EQ(landing->size(), next.header.payload_bytes);
      next.landing = *landing;
    } else {
      next.own_landing.resize(next.header.payload_bytes);
      next.landing = next.own_landing;
    }
    incoming_ = std::move(next);
    return true;
  }

  // Copies a piece of the payload. Returns true once the frame is whole.
  bool copy_piece() {
    if (incoming_->turns_to_wait > 0) {
      --incoming_->turns_to_wait;
      post_turn();
      return false;
    }
    {
      const std::scoped_lock lock(link_->mutex);
      MemoryLink::End& mine = link_->ends[end_];
      if (!mine.inbox.empty() && mine.inbox.front().number == incoming_->number)
        return copy_from(mine, mine.inbox.front());
    }
    fail_now(Error{ErrorCode::kUnavailable, peer_ + " closed the connection in the middle of a frame"});
    return false;
  }

  // Call with the lock held.
  bool copy_from(MemoryLink::End& mine, const MemoryFrame& frame) {
    std::size_t n = frame.payload.size() - incoming_->landed;
    if (options_.piece_bytes != 0) n = std::min(n, options_.piece_bytes);
    if (n > 0) std::memcpy(incoming_->landing.data() + incoming_->landed, frame.payload.data() + incoming_->landed, n);
    incoming_->landed += n;
    if (incoming_->landed < frame.payload.size()) {
      post_turn();
      return false;
    }
    bytes_received_ += frame.bytes;
    mine.traffic->received += frame.bytes;
    if (frame.frozen && frame.cookie != 0) {
      link_->ends[1 - end_].sent.push_back(frame.cookie);
      link_->wake(1 - end_);
    }
    mine.inbox_bytes -= frame.bytes;
    mine.inbox.pop_front();
    return true;
  }

  void fail_now(const Error& why) {
    ConnectionHandler* const handler = handler_;
    close();
    handler->on_closed(why);
  }

  asio::io_context& loop_;
  const std::shared_ptr<MemoryLink> link_;
  const int end_;
  const std::string peer_;
  const MemoryOptions options_;

  ConnectionHandler* handler_ = nullptr;
  std::optional<Incoming> incoming_;
  bool closed_ = false;
  bool paused_ = false;
  std::uint64_t bytes_received_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

MemoryConnection::MemoryConnection(asio::io_context& loop, std::shared_ptr<MemoryLink> link, int end, std::string peer,
                                   const MemoryOptions& options)
    : stream_(std::make_shared<MemoryStream>(loop, std::move(link), end, std::move(peer), options)) {
  stream_->attach();
}

MemoryConnection::~MemoryConnection() {
  stream_->close();
}

void MemoryConnection::start(ConnectionHandler& handler) {
  stream_->start(handler);
}

void MemoryConnection::send(const OutgoingFrame& frame) {
  stream_->send(frame);
}

std::size_t MemoryConnection::queued_bytes() const {
  return stream_->queued_bytes();
}

void MemoryConnection::pause_receiving() {
  stream_->pause();
}

void MemoryConnection::resume_receiving() {
  stream_->resume();
}

void MemoryConnection::close() {
  stream_->close();
}

const std::string& MemoryConnection::peer() const {
  return stream_->peer();
}

std::uint64_t MemoryConnection::bytes_received() const {
  return stream_->bytes_received();
}

std::uint64_t MemoryConnection::bytes_sent() const {
  return stream_->bytes_sent();
}

}  // namespace disttrain::transport
