// Listening: accepts sockets and reads from each one until the peer's hello is whole. Then passes the peer to the owner
// of the listener. Closes and counts a peer if there are too many peers, if it is too slow, or if it sends malformed
// bytes.
#include <sys/uio.h>
#include <unistd.h>

#include <fcntl.h>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <map>

#include "transport/tcp/connection.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {
namespace {

class TcpArrival final : public Arrival {
 public:
  TcpArrival(TcpSocket socket, TcpOptions options) : socket_(std::move(socket)), options_(std::move(options)) {}

  const wire::FrameHeader& header() const override { return socket_.reader.header(); }
  Bytes hello() const override { return socket_.reader.control(); }
  const std::string& peer() const override { return socket_.peer; }
  std::unique_ptr<Connection> adopt(asio::io_context& loop) override {
    return std::make_unique<TcpConnection>(loop, std::move(socket_), options_);
  }

 private:
  TcpSocket socket_;
  const TcpOptions options_;
};

// The part of a listener that operations on the loop share. An operation that ends after the listener's end sees that
// the acceptor is stopped.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(asio::io_context& loop, Descriptor fd, const ListenerLimits& limits, TcpOptions options,
           std::shared_ptr<Traffic> traffic, std::function<void(std::unique_ptr<Arrival>)> on_arrival)
      : loop_(loop),
        limits_(limits),
        options_(std::move(options)),
        traffic_(std::move(traffic)),
        on_arrival_(std::move(on_arrival)),
        socket_(loop, fd.release()),
        pause_(loop),
        reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

  void wait() {
    socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this()](const asio::error_code& error) {
                         if (!error && !self->stopped_) self->accept_turn();
                       });
  }

  void stop() {
    stopped_ = true;
    asio::error_code ignored;
    socket_.close(ignored);
    pause_.cancel();
    peers_.clear();
  }

  std::uint64_t refused() const { return refused_; }

 private:
  static constexpr int kAcceptsPerTurn = 64;
  static constexpr Duration kPause = std::chrono::milliseconds(10);

  // A peer that has connected but hasn't said hello yet.
  struct Peer {
    Peer(asio::io_context& loop, int fd, PeerSlot s)
        : socket(loop, fd), timer(loop), slot(std::move(s)), name(to_string(remote_endpoint(fd))) {
      reader.expect_hello();
    }
    asio::posix::stream_descriptor socket;
    asio::steady_timer timer;
    wire::FrameReader reader;
    PeerSlot slot;
    std::string name;
    std::uint64_t bytes_received = 0;
  };

  void accept_turn() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      Descriptor fd(::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK) break;
        const bool lacks_descriptors = errno == EMFILE || errno == ENFILE;
        if (lacks_descriptors && give_up_oldest()) continue;
        if (lacks_descriptors) turn_away_one();
        return wait_a_little();
      }
      if (peer_count_->taken >= limits_.max_connections && !give_up_oldest()) {
        ++refused_;
        continue;
      }
      set_connection_options(fd.get(), options_);
      admit(std::move(fd));
    }
    wait();
  }

  // Closes the oldest peer whose hello hasn't come, so that silent peers don't keep other peers out. Returns false if
  // all slots belong to peers that have said hello.
  bool give_up_oldest() {
    while (!peers_.empty())
      if (give_up(peers_.begin()->first)) return true;
    return false;
  }

  // Closes a peer that hasn't said hello. Reads from the socket first: if the hello has just arrived, this process was
  // slow, and the peer isn't closed. Returns whether the peer was closed.
  bool give_up(std::uint64_t id) {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return false;
    const std::uint64_t refused_before = refused_;
    read_hello(id, found->second);
    refuse(id);
    return refused_ != refused_before;
  }

  // Pauses before the next accept(), because the system lacks a resource. Without the pause the loop would spin: the
  // peer that waits would wake it again and again.
  void wait_a_little() {
    pause_.expires_after(kPause);
    pause_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error && !self->stopped_) self->wait();
    });
  }

  // Accepts the peer that waits and closes it at once, because the peer would hang otherwise. No file descriptor is
  // left for this, so the acceptor gives up its spare one for a moment.
  void turn_away_one() {
    reserve_ = Descriptor();
    Descriptor(::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
    reserve_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ++refused_;
  }

  void admit(Descriptor fd) {
    const std::uint64_t id = ++last_id_;
    Peer& peer = peers_.try_emplace(id, loop_, fd.release(), PeerSlot(peer_count_)).first->second;
    peer.timer.expires_after(limits_.hello_timeout);
    peer.timer.async_wait([self = shared_from_this(), id](const asio::error_code& error) {
      if (!error) self->give_up(id);
    });
    wait_hello(id, peer);
  }

  void wait_hello(std::uint64_t id, Peer& peer) {
    peer.socket.async_wait(asio::posix::stream_descriptor::wait_read,
                           [self = shared_from_this(), id](const asio::error_code& error) {
                             if (error) return;
                             const auto found = self->peers_.find(id);
                             if (found != self->peers_.end()) self->read_hello(id, found->second);
                           });
  }

  void read_hello(std::uint64_t id, Peer& peer) {
    using Event = wire::FrameReader::Event;
    const auto room = peer.reader.room().first;  // a hello has no payload
    const ssize_t n = ::read(peer.socket.native_handle(), room.data(), room.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return wait_hello(id, peer);
    if (n <= 0) return refuse(id);
    peer.reader.received(static_cast<std::size_t>(n));
    peer.bytes_received += static_cast<std::uint64_t>(n);
    const Result<Event> event = peer.reader.next();
    if (!event || *event == Event::kNeedLanding) return refuse(id);
    if (*event == Event::kNeedBytes) return wait_hello(id, peer);
    TcpSocket socket{Descriptor(peer.socket.release()),
                     std::move(peer.reader),
                     std::move(peer.slot),
                     std::move(peer.name),
                     peer.bytes_received,
                     traffic_};
    peers_.erase(id);
    on_arrival_(std::make_unique<TcpArrival>(std::move(socket), options_));
  }

  void refuse(std::uint64_t id) { refused_ += peers_.erase(id); }

  asio::io_context& loop_;
  const ListenerLimits limits_;
  const TcpOptions options_;
  const std::shared_ptr<Traffic> traffic_;
  const std::function<void(std::unique_ptr<Arrival>)> on_arrival_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer pause_;
  Descriptor reserve_;
  const std::shared_ptr<PeerCount> peer_count_ = std::make_shared<PeerCount>();
  std::map<std::uint64_t, Peer> peers_;  // the oldest peer is the first, because ids grow
  std::uint64_t last_id_ = 0;
  std::uint64_t refused_ = 0;
  bool stopped_ = false;
};

class TcpListener final : public Listener {
 public:
  TcpListener(std::shared_ptr<Acceptor> acceptor, std::string address)
      : acceptor_(std::move(acceptor)), address_(std::move(address)) {
    acceptor_->wait();
  }
  ~TcpListener() override { acceptor_->stop(); }
  const std::string& address() const override { return address_; }
  std::uint64_t refused() const override { return acceptor_->refused(); }

 private:
  const std::shared_ptr<Acceptor> acceptor_;
  const std::string address_;
};

tl::unexpected<Error> cannot_listen(const std::string& address, int error) {
  const std::string what = "can't listen on " + address + ": ";
  switch (error) {
    case EADDRINUSE:
      return fail(ErrorCode::kUnavailable,
                  what + "the port is in use by another process; stop it or choose another port");
    case EACCES:
    case EPERM:
      return fail(ErrorCode::kNoPermission, what + "no permission for this port; choose one from 1024 on");
    case EADDRNOTAVAIL:
      return fail(ErrorCode::kConfig, what + "it is not an address of this host");
    default:
      return fail(ErrorCode::kUnavailable, what + system_words(error));
  }
}

Result<Descriptor> bind_and_listen(const std::string& address, const TcpOptions& options) {
  const Result<HostAndPort> parsed = parse_address(address);
  if (!parsed) return tl::unexpected(parsed.error());
  const Result<std::vector<Endpoint>> endpoints = resolve(*parsed);
  if (!endpoints) return fail(endpoints.error().code, "can't listen on " + address + ": " + endpoints.error().message);
  const Endpoint& endpoint = endpoints->front();
  Result<Descriptor> fd = open_socket(endpoint.storage.ss_family, options);
  if (!fd) return fd;
  const int on = 1;
  // The option lets us use the port of a process that has just ended.
  setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd->get(), endpoint.get(), endpoint.length) != 0 || ::listen(fd->get(), SOMAXCONN) != 0)
    return cannot_listen(address, errno);
  return fd;
}

// "fd:N"
Result<Descriptor> inherited(const std::string& address, const TcpOptions& options) {
  const std::string number = address.substr(3);
  const bool digits =
      !number.empty() && number.size() < 7 && number.find_first_not_of("0123456789") == std::string::npos;
  const int fd = digits ? std::stoi(number) : -1;
  int listening = 0;
  socklen_t length = sizeof listening;
  if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || listening == 0)
    return fail(ErrorCode::kConfig, "can't listen on " + address + ": it is not a listening socket of this process");
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  set_connection_options(fd, options);
  return Descriptor(fd);
}

}  // namespace

Result<std::unique_ptr<Listener>> TcpTransport::listen(asio::io_context& loop, const std::string& address,
                                                       const ListenerLimits& limits,
                                                       std::function<void(std::unique_ptr<Arrival>)> on_arrival) {
  Result<Descriptor> fd =
      address.starts_with("fd:") ? inherited(address, options_) : bind_and_listen(address, options_);
  if (!fd) return tl::unexpected(fd.error());
  std::string real = to_string(local_endpoint(fd->get()));
  auto acceptor = std::make_shared<Acceptor>(loop, std::move(*fd), limits, options_, traffic_, std::move(on_arrival));
  return std::make_unique<TcpListener>(std::move(acceptor), std::move(real));
}

}  // namespace disttrain::transport
