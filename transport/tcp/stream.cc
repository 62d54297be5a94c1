#include "transport/tcp/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

#include <asio/post.hpp>
#include <cerrno>
#include <string_view>
#include <utility>

#include "common/check.h"

namespace disttrain::transport {
namespace {

wire::ChecksumKind checksum_kind(int fd, const TcpOptions& options) {
  const bool needed = options.checksum_on_one_host || !same_host(local_endpoint(fd), remote_endpoint(fd));
  return needed ? wire::ChecksumKind::kCrc32c : wire::ChecksumKind::kNone;
}

// Sets a congestion control that doesn't pace its packets, for a connection within one host. Such a connection has no
// congested link, and pacing costs CPU time: sending 80 MB in each direction, in 1 MiB frames, kept two cores busy for
// 40 ms with cubic, and for 71 ms with bbr, which paces. The function sets cubic, or reno if the system doesn't allow
// cubic.
void unpace(int fd) {
  for (const std::string_view name : {"cubic", "reno"})
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0) return;
}

}  // namespace

TcpStream::TcpStream(asio::io_context& loop, TcpSocket socket, const TcpOptions& options)
    : loop_(loop),
      peer_(std::move(socket.peer)),
      checksum_kind_(checksum_kind(socket.fd.get(), options)),
      socket_(loop, socket.fd.release()),
      slot_(std::move(socket.slot)),
      reader_(std::move(socket.reader)),
      bytes_received_(socket.bytes_received),
      traffic_(std::move(socket.traffic)) {
  traffic_->received.fetch_add(bytes_received_, std::memory_order_relaxed);
  const int fd = socket_.native_handle();
  if (options.congestion_control.empty() && same_host(local_endpoint(fd), remote_endpoint(fd))) unpace(fd);
}

void TcpStream::start(ConnectionHandler& handler) {
  DISTTRAIN_CHECK(handler_ == nullptr);
  handler_ = &handler;
  if (closed_) return;
  if (failure_) post_failure();
  if (!queue_.sent().empty()) tell_sent();
  post_receive();  // bytes that came together with the hello may be waiting in reader_
}

void TcpStream::close() {
  if (closed_) return;
  // Gives the kernel as many queued bytes as it has room for. After this the stream doesn't read frozen payloads.
  if (!failure_ && !send_failure_) static_cast<void>(queue_.flush(socket_.native_handle(), kBytesPerTurn));
  count_sent();
  closed_ = true;
  handler_ = nullptr;
  asio::error_code ignored;
  socket_.close(ignored);
  slot_ = PeerSlot();
}

void TcpStream::fail_later(Error why) {
  if (failure_) return;
  failure_ = std::move(why);
  post_failure();
}

void TcpStream::post_failure() {
  asio::post(loop_, [self = shared_from_this()] {
    if (self->closed_ || self->handler_ == nullptr) return;
    ConnectionHandler* const handler = self->handler_;
    const Error reason = *self->failure_;
    self->close();
    handler->on_closed(reason);
  });
}

// ----------------------------------------------------------------------------------------- Sending

void TcpStream::send(const OutgoingFrame& frame) {
  if (closed_ || failure_ || send_failure_) return;
  const wire::HeaderBytes header = wire::encode_header(frame.header, frame.control, frame.payload, checksum_kind_);
  if (Status sent = queue_.send(socket_.native_handle(), header, frame); !sent) return sending_failed(sent.error());
  count_sent();
  if (!queue_.sent().empty()) tell_sent();
  if (!queue_.empty()) wait_writable();
}

void TcpStream::count_sent() {
  const std::uint64_t sent = queue_.bytes_sent();
  if (sent != bytes_counted_)
    traffic_->sent.fetch_add(sent - std::exchange(bytes_counted_, sent), std::memory_order_relaxed);
}

void TcpStream::wait_writable() {
  if (write_wait_under_way_) return;
  write_wait_under_way_ = true;
  socket_.async_wait(asio::posix::stream_descriptor::wait_write,
                     PlacedHandler(write_memory_, [self = shared_from_this()](const asio::error_code& error) {
                       self->write_wait_under_way_ = false;
                       if (!error && !self->closed_) self->flush();
                     }));
}

void TcpStream::sending_failed(const Error& why) {
  send_failure_ = Error{why.code, "sending to " + peer_ + " failed: " + why.message};
  asio::post(loop_, [self = shared_from_this()] {
    if (!self->closed_ && self->handler_ != nullptr) self->receive_turn();
  });
}

void TcpStream::flush() {
  if (failure_ || send_failure_) return;
  if (Status sent = queue_.flush(socket_.native_handle(), kBytesPerTurn); !sent) return sending_failed(sent.error());
  count_sent();
  if (!queue_.empty()) wait_writable();
  if (!queue_.sent().empty()) tell_sent();
}

void TcpStream::tell_sent() {
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

void TcpStream::post_receive() {
  if (receive_under_way_) return;
  receive_under_way_ = true;
  asio::post(loop_, PlacedHandler(receive_memory_, [self = shared_from_this()] {
               self->receive_under_way_ = false;
               if (!self->closed_) self->receive_turn();
             }));
}

void TcpStream::wait_readable() {
  if (receive_under_way_) return;
  receive_under_way_ = true;
  socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                     PlacedHandler(receive_memory_, [self = shared_from_this()](const asio::error_code& error) {
                       self->receive_under_way_ = false;
                       if (!error && !self->closed_) self->receive_turn();
                     }));
}

void TcpStream::resume() {
  paused_ = false;
  if (!closed_ && handler_ != nullptr) post_receive();
}

void TcpStream::receive_turn() {
  if (paused_ && send_failure_) return fail_later(*send_failure_);
  std::size_t total = 0;
  for (;;) {
    if (!deliver()) return;
    if (total >= kBytesPerTurn) return post_receive();
    std::size_t asked = 0;
    const std::size_t n = read_some(asked);
    if (failure_) return;
    total += n;
    if (n < asked) {  // the socket is empty, so another read would bring nothing
      if (n > 0 && !deliver()) return;
      return send_failure_ ? fail_later(*send_failure_) : wait_readable();
    }
  }
}

std::size_t TcpStream::read_some(std::size_t& asked) {
  const wire::FrameReader::Room room = reader_.room();
  iovec vectors[2] = {{room.first.data(), room.first.size()}, {room.second.data(), room.second.size()}};
  asked = room.first.size() + room.second.size();
  for (;;) {
    const ssize_t n = ::readv(socket_.native_handle(), vectors, room.second.empty() ? 1 : 2);
    if (n > 0) {
      bytes_received_ += static_cast<std::size_t>(n);
      traffic_->received.fetch_add(static_cast<std::size_t>(n), std::memory_order_relaxed);
      reader_.received(static_cast<std::size_t>(n));
      return static_cast<std::size_t>(n);
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (n == 0)
      fail_later(Error{ErrorCode::kUnavailable,
                       peer_ + " closed the connection" + (reader_.in_frame() ? " in the middle of a frame" : "")});
    else
      fail_later(Error{ErrorCode::kUnavailable, "receiving from " + peer_ + " failed: " + system_words(errno)});
    return 0;
  }
}

bool TcpStream::deliver() {
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
      case Event::kFrame:
        handler_->on_frame(reader_.header(), reader_.control(), reader_.payload());
        if (closed_) return false;
        break;
      case Event::kForeignHello:
        fail_later(Error{ErrorCode::kData, peer_ + " sent a hello of another protocol version on an open connection"});
        return false;
    }
  }
}

}  // namespace disttrain::transport
