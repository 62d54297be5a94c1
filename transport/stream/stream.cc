// To send or receive a frame, a stream allocates no memory. It reuses what each frame needs: the decoded push, the
// queues (common/fifo.h), and the memory of Asio's operations. Two tests count the allocations in the threads of a real
// ps and a real worker; for this they replace operator new. A frame needs no extra turn of the event loop either: the
// stream calls on_sent() only if the sender of a frame asks for it. A worker doesn't ask, because it changes the
// gradients of a push only after the shard's answer.
#include "transport/stream/stream.h"

#include <array>
#include <asio/post.hpp>
#include <utility>

#include "common/check.h"

namespace disttrain::transport {

Stream::Stream(asio::io_context& loop, std::unique_ptr<ByteChannel> channel, StreamStart start)
    : loop_(loop),
      peer_(std::move(start.peer)),
      checksum_kind_(start.checksum_kind),
      channel_(std::move(channel)),
      slot_(std::move(start.slot)),
      reader_(std::move(start.reader)),
      bytes_received_(start.bytes_received),
      traffic_(std::move(start.traffic)) {
  traffic_->received.fetch_add(bytes_received_, std::memory_order_relaxed);
}

void Stream::start(ConnectionHandler& handler) {
  DISTTRAIN_CHECK(handler_ == nullptr);
  handler_ = &handler;
  if (closed_) return;
  if (failure_) post_failure();
  if (!queue_.sent().empty()) tell_sent();
  post_receive();  // bytes that came together with the hello may be waiting in reader_
}

void Stream::close() {
  if (closed_) return;
  // Gives the channel as many queued bytes as it has room for. After this the stream doesn't read frozen payloads.
  if (!failure_ && !send_failure_) static_cast<void>(queue_.flush(*channel_, kBytesPerTurn));
  count_sent();
  closed_ = true;
  handler_ = nullptr;
  lent_.reset();
  channel_->close();
  slot_ = PeerSlot();
}

void Stream::fail_later(Error why) {
  if (failure_) return;
  failure_ = std::move(why);
  post_failure();
}

void Stream::post_failure() {
  asio::post(loop_, [self = shared_from_this()] {
    if (self->closed_ || self->handler_ == nullptr) return;
    ConnectionHandler* const handler = self->handler_;
    const Error reason = *self->failure_;
    self->close();
    handler->on_closed(reason);
  });
}

// ----------------------------------------------------------------------------------------- Sending

void Stream::send(const OutgoingFrame& frame) {
  if (closed_ || failure_ || send_failure_) return;
  const std::optional<wire::PayloadPlace> place = channel_->place(frame);
  const wire::PlaceBytes place_bytes = place ? wire::encode_place(*place) : wire::PlaceBytes();
  const Bytes placed = place ? Bytes(place_bytes) : Bytes();
  const bool in_frame = !place || place->kind == wire::PayloadPlace::Kind::kInFrame;
  const wire::HeaderBytes header = wire::encode_header(frame.header, frame.control, frame.payload,
                                                       in_frame ? checksum_kind_ : wire::ChecksumKind::kNone, placed);
  const Bytes payload = in_frame ? frame.payload : Bytes();
  if (Status sent = queue_.send(*channel_, header, placed, frame, payload); !sent) return sending_failed(sent.error());
  if (!in_frame) {
    bytes_placed_ += frame.payload.size();
    traffic_->sent.fetch_add(frame.payload.size(), std::memory_order_relaxed);
  }
  count_sent();
  if (!queue_.sent().empty()) tell_sent();
  if (!queue_.empty()) wait_writable();
}

void Stream::count_sent() {
  const std::uint64_t sent = queue_.bytes_sent();
  if (sent != bytes_counted_)
    traffic_->sent.fetch_add(sent - std::exchange(bytes_counted_, sent), std::memory_order_relaxed);
}

void Stream::wait_writable() {
  if (std::exchange(write_wait_under_way_, true)) return;
  channel_->wait_writable(shared_from_this());
}

void Stream::on_writable() {
  write_wait_under_way_ = false;
  if (!closed_) flush();
}

void Stream::sending_failed(const Error& why) {
  send_failure_ = Error{why.code, "sending to " + peer_ + " failed: " + why.message};
  asio::post(loop_, [self = shared_from_this()] {
    if (!self->closed_ && self->handler_ != nullptr) self->receive_turn();
  });
}

void Stream::flush() {
  if (failure_ || send_failure_) return;
  if (Status sent = queue_.flush(*channel_, kBytesPerTurn); !sent) return sending_failed(sent.error());
  count_sent();
  if (!queue_.empty()) wait_writable();
  if (!queue_.sent().empty()) tell_sent();
}

void Stream::tell_sent() {
  if (tell_under_way_ || handler_ == nullptr) return;
  tell_under_way_ = true;
  asio::post(loop_, PlacedHandler(tell_memory_, [self = shared_from_this()] {
               self->tell_under_way_ = false;
               self->told_.clear();
               self->told_.swap(self->queue_.sent());
               for (std::uint64_t cookie : self->told_) {
                 if (self->closed_) return;
                 self->handler_->on_sent(cookie);
               }
             }));
}

// ----------------------------------------------------------------------------------------- Receiving

void Stream::post_receive() {
  if (receive_under_way_) return;
  receive_under_way_ = true;
  asio::post(loop_, PlacedHandler(receive_memory_, [self = shared_from_this()] {
               self->receive_under_way_ = false;
               if (!self->closed_) self->receive_turn();
             }));
}

void Stream::wait_readable() {
  if (std::exchange(receive_under_way_, true)) return;
  channel_->wait_readable(shared_from_this());
}

void Stream::on_readable() {
  receive_under_way_ = false;
  if (!closed_) receive_turn();
}

void Stream::resume() {
  paused_ = false;
  if (!closed_ && handler_ != nullptr) post_receive();
}

void Stream::receive_turn() {
  if (is_fetching_) return;
  if (paused_ && send_failure_) return fail_later(*send_failure_);
  std::size_t total = 0;
  for (;;) {
    if (!deliver()) return;
    if (total >= kBytesPerTurn) return post_receive();
    std::size_t asked = 0;
    const std::size_t n = read_some(asked);
    if (failure_) return;
    total += n;
    if (n < asked) {  // the channel is empty, so another read would bring nothing
      if (n > 0 && !deliver()) return;
      return send_failure_ ? fail_later(*send_failure_) : wait_readable();
    }
  }
}

std::size_t Stream::read_some(std::size_t& asked) {
  const wire::FrameReader::Room room = reader_.room();
  const std::array<iovec, 2> vectors = {iovec{room.first.data(), room.first.size()},
                                        iovec{room.second.data(), room.second.size()}};
  asked = room.first.size() + room.second.size();
  const Result<ByteChannel::Read> read = channel_->read_some(std::span(vectors).first(room.second.empty() ? 1 : 2));
  if (!read) {
    fail_later(Error{read.error().code, "receiving from " + peer_ + " failed: " + read.error().message});
    return 0;
  }
  if (read->is_closed)
    fail_later(Error{ErrorCode::kUnavailable,
                     peer_ + " closed the connection" + (reader_.in_frame() ? " in the middle of a frame" : "")});
  bytes_received_ += read->bytes;
  traffic_->received.fetch_add(read->bytes, std::memory_order_relaxed);
  reader_.received(read->bytes);
  return read->bytes;
}

void Stream::share(const Arena& arena) {
  if (!closed_) channel_->share(arena);
}

bool Stream::take_place() {
  using Kind = wire::PayloadPlace::Kind;
  const wire::PayloadPlace& place = reader_.place();
  const bool in_frame = place.kind == Kind::kInFrame;
  Result<PeerMemory> memory = channel_->take(place, in_frame ? 0 : reader_.header().payload_bytes);
  if (!memory) {
    fail_later(Error{memory.error().code, "connection with " + peer_ + ": " + memory.error().message});
    return false;
  }
  if (memory->is_remote) {
    fetch();
    return false;
  }
  MutableBytes payload = memory->bytes;
  if (!in_frame && wire::known(reader_.header().type)) {
    Result<Bytes> used;
    if (place.kind == Kind::kLent) {
      lent_ = std::move(memory->keeps);
      used = handler_->payload_lent(reader_.header(), reader_.control(), LentPayload{payload, lent_});
    } else {
      const Result<MutableBytes> landing = handler_->payload_landing(reader_.header(), reader_.control());
      if (!landing)
        used = tl::unexpected(landing.error());
      else if (landing->data() != payload.data())
        used =
            fail(ErrorCode::kData, "connection with " + peer_ + ": an answer is in memory that isn't offered for it");
      else
        used = *landing;
    }
    if (closed_) return false;
    if (!used) {
      fail_later(used.error());
      return false;
    }
    payload = MutableBytes(const_cast<std::byte*>(used->data()), used->size());
    bytes_received_ += payload.size();
    traffic_->received.fetch_add(payload.size(), std::memory_order_relaxed);
  }
  reader_.take_place(payload);
  return true;
}

void Stream::fetch() {
  if (wire::known(reader_.header().type)) {
    const Result<MutableBytes> landing = handler_->payload_landing(reader_.header(), reader_.control());
    if (closed_) return;
    if (!landing) return fail_later(landing.error());
    DISTTRAIN_CHECK_EQ(landing->size(), reader_.header().payload_bytes);  // before anything is written there
    fetched_ = *landing;
  } else {
    no_landing_.resize(reader_.header().payload_bytes);
    fetched_ = no_landing_;
  }
  is_fetching_ = true;
  channel_->fetch(fetched_, shared_from_this());
}

void Stream::on_fetched(const Status& fetched) {
  is_fetching_ = false;
  if (closed_ || failure_) return;
  if (!fetched) {
    const Error& why = fetched.error();
    return fail_later(Error{why.code, "receiving a payload from " + peer_ + " failed: " + why.message});
  }
  bytes_received_ += fetched_.size();
  traffic_->received.fetch_add(fetched_.size(), std::memory_order_relaxed);
  reader_.take_place(fetched_);
  receive_turn();
}

bool Stream::deliver() {
  using Event = wire::FrameReader::Event;
  for (;;) {
    if (paused_ || failure_) return false;
    const Result<Event> event = reader_.next();
    if (!event) {
      fail_later(Error{event.error().code, "connection with " + peer_ + ": " + event.error().message});
      return false;
    }
    switch (*event) {
      case Event::kNeedBytes:
        return true;
      case Event::kNeedLanding: {
        const Result<MutableBytes> landing = handler_->payload_landing(reader_.header(), reader_.control());
        if (closed_) return false;
        if (!landing) {
          fail_later(landing.error());
          return false;
        }
        reader_.land(*landing);
        break;
      }
      case Event::kPlace:
        if (!take_place()) return false;
        break;
      case Event::kFrame:
        handler_->on_frame(reader_.header(), reader_.control(), reader_.payload());
        if (closed_) return false;
        if (lent_ != nullptr) lent_.reset();
        break;
      case Event::kForeignHello:
        fail_later(Error{ErrorCode::kData, peer_ + " sent a hello of another protocol version on an open connection"});
        return false;
    }
  }
}

}  // namespace disttrain::transport
