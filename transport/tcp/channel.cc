// Other ways to send large models over TCP were measured on the loopback device, each in turn with plain sendmsg() of 1
// MiB. MSG_ZEROCOPY reached 0.53 to 0.86 times the speed: loopback and virtual Ethernet devices copy such data anyway
// (SO_EE_CODE_ZEROCOPY_COPIED), and the work for its notices comes on top. A network card may differ. A second
// connection reached 0.94 to 1.41 times the speed on a loaded machine, without a trend; more shards per ps give more
// connections. io_uring would save system calls, but a shard's thread makes only 2 sendmsg() and 4 readv() for a step
// of a small model with 2 workers, and its time goes into the copies inside of them.
//
// Each shard has a connection of its own. With one connection for all shards of a ps, a thread would read it and wake
// the shards' threads, while now the kernel wakes each of them. With 64 workers and 8 ps (tools/bench/many_tasks
// --shards-per-ps 4), a ps had 256 connections instead of 64. Each further connection, with its part of three further
// shards, took 15 KiB, so 1,000 workers and 4 shards cost a ps 60 MiB. The job took 1.5 times as long, because it had 4
// times as many frames; over one connection there would be as many.
#include "transport/tcp/channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

#include "transport/tcp/socket.h"

namespace disttrain::transport {
namespace {

// Sets a congestion control that doesn't pace its packets, for a connection within one host. Such a connection has no
// congested link, and pacing costs CPU time: sending 80 MB in each direction, in 1 MiB frames, kept two cores busy for
// 40 ms with cubic, and for 71 ms with bbr, which paces. The function sets cubic, or reno if the system doesn't allow
// cubic.
void unpace(int fd) {
  for (const std::string_view name : {"cubic", "reno"})
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0) return;
}

class DetachedSocket final : public DetachedChannel {
 public:
  explicit DetachedSocket(Descriptor socket) : socket_(std::move(socket)) {}
  const char* wire() const override { return "tcp"; }
  std::unique_ptr<ByteChannel> attach(asio::io_context& loop) override {
    return std::make_unique<TcpChannel>(loop, std::move(socket_));
  }

 private:
  Descriptor socket_;
};

}  // namespace

StreamStart describe_socket(int socket, const TcpOptions& options, std::shared_ptr<Traffic> traffic) {
  const bool on_one_host = same_host(local_endpoint(socket), remote_endpoint(socket));
  if (on_one_host && options.congestion_control.empty()) unpace(socket);
  StreamStart start;
  start.peer = to_string(remote_endpoint(socket));
  const bool is_checked = options.checksum_on_one_host || !on_one_host;
  start.checksum_kind = is_checked ? wire::ChecksumKind::kCrc32c : wire::ChecksumKind::kNone;
  start.traffic = std::move(traffic);
  return start;
}

Result<ByteChannel::Read> TcpChannel::read_some(std::span<const iovec> buffers) {
  for (;;) {
    const ssize_t n = ::readv(socket_.native_handle(), buffers.data(), static_cast<int>(buffers.size()));
    if (n > 0) return Read{static_cast<std::size_t>(n), false};
    if (n == 0) return Read{0, true};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Read{};
    if (errno != EINTR) return fail(ErrorCode::kUnavailable, system_words(errno));
  }
}

Result<std::size_t> TcpChannel::write_some(std::span<const iovec> buffers) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(buffers.data());
  message.msg_iovlen = buffers.size();
  for (;;) {
    const ssize_t n = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno != EINTR) return fail(ErrorCode::kUnavailable, system_words(errno));
  }
}

void TcpChannel::wait_readable(std::shared_ptr<ByteChannelUser> user) {
  socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                     PlacedHandler(read_memory_, [self = std::move(user)](const asio::error_code& error) {
                       if (!error) self->on_readable();
                     }));
}

void TcpChannel::wait_writable(std::shared_ptr<ByteChannelUser> user) {
  socket_.async_wait(asio::posix::stream_descriptor::wait_write,
                     PlacedHandler(write_memory_, [self = std::move(user)](const asio::error_code& error) {
                       if (!error) self->on_writable();
                     }));
}

void TcpChannel::close() {
  asio::error_code ignored;
  socket_.close(ignored);
}

std::unique_ptr<DetachedChannel> TcpChannel::detach() {
  return std::make_unique<DetachedSocket>(Descriptor(socket_.release()));
}

}  // namespace disttrain::transport
