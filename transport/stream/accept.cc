#include "transport/stream/accept.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <map>

namespace disttrain::transport {
namespace {

class StreamArrival final : public Arrival {
 public:
  StreamArrival(std::unique_ptr<DetachedChannel> channel, StreamStart start)
      : channel_(std::move(channel)), start_(std::move(start)) {}

  const wire::FrameHeader& header() const override { return start_.reader.header(); }
  Bytes hello() const override { return start_.reader.control(); }
  const char* wire() const override { return channel_->wire(); }
  const std::string& peer() const override { return start_.peer; }
  std::unique_ptr<Connection> adopt(asio::io_context& loop) override {
    return std::make_unique<StreamConnection>(loop, channel_->attach(loop), std::move(start_));
  }

 private:
  const std::unique_ptr<DetachedChannel> channel_;
  StreamStart start_;
};

class SocketSource final : public AcceptSource {
 public:
  SocketSource(Descriptor socket, OpenAccepted open)
      : socket_(std::move(socket)), open_(std::move(open)), reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

  int descriptor() const override { return socket_.get(); }

  Taken take() override {
    peer_ = Descriptor(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (peer_) return Taken::kPeer;
    if (errno == EINTR || errno == ECONNABORTED) return Taken::kTryAgain;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Taken::kNothing;
    return errno == EMFILE || errno == ENFILE ? Taken::kNoDescriptors : Taken::kFailed;
  }

  AcceptedChannel open(asio::io_context& loop) override { return open_(loop, std::move(peer_)); }
  void turn_away() override { peer_ = Descriptor(); }

  void turn_away_next() override {
    reserve_ = Descriptor();
    Descriptor(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    reserve_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }

 private:
  const Descriptor socket_;
  const OpenAccepted open_;
  Descriptor peer_;
  Descriptor reserve_;
};

// The part of a listener that operations on the loop share. An operation that ends after the listener's end sees that
// the acceptor is stopped.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(asio::io_context& loop, std::unique_ptr<AcceptSource> source, const ListenerLimits& limits,
           std::function<void(std::unique_ptr<Arrival>)> on_arrival)
      : loop_(loop),
        limits_(limits),
        on_arrival_(std::move(on_arrival)),
        source_(std::move(source)),
        waits_(loop, source_->descriptor()),
        pause_(loop),
        peer_count_(limits.count ? limits.count : std::make_shared<PeerCount>()) {}

  ~Acceptor() {
    if (waits_.is_open()) waits_.release();  // the descriptor is the source's
  }

  void wait() {
    waits_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](const asio::error_code& error) {
                        if (!error && !self->stopped_) self->accept_turn();
                      });
  }

  void stop() {
    stopped_ = true;
    waits_.release();
    source_.reset();
    pause_.cancel();
    for (const auto& [id, peer] : peers_) peer->channel->close();
    peers_.clear();
  }

  std::uint64_t refused() const { return refused_; }

 private:
  static constexpr int kAcceptsPerTurn = 64;
  static constexpr Duration kPause = std::chrono::milliseconds(10);

  // A peer that has connected but hasn't said hello yet. A wait for its bytes keeps the peer alive.
  struct Peer final : ByteChannelUser, std::enable_shared_from_this<Peer> {
    Peer(Acceptor& acceptor, std::uint64_t number, AcceptedChannel accepted, PeerSlot slot)
        : owner(acceptor.weak_from_this()),
          id(number),
          timer(acceptor.loop_),
          channel(std::move(accepted.channel)),
          start(std::move(accepted.start)) {
      start.slot = std::move(slot);
      start.reader.expect_hello();
    }
    void on_readable() override {
      const std::shared_ptr<Acceptor> self = owner.lock();
      if (!self) return;
      const auto found = self->peers_.find(id);
      if (found != self->peers_.end() && !self->read_hello(id, found->second))
        channel->wait_readable(shared_from_this());
    }
    void on_writable() override {}

    const std::weak_ptr<Acceptor> owner;
    const std::uint64_t id;
    asio::steady_timer timer;
    std::unique_ptr<ByteChannel> channel;
    StreamStart start;
  };

  void accept_turn() {
    using Taken = AcceptSource::Taken;
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      const Taken taken = source_->take();
      if (taken == Taken::kTryAgain) continue;
      if (taken == Taken::kNothing) break;
      if (taken != Taken::kPeer) {
        if (taken == Taken::kNoDescriptors && give_up_oldest()) continue;
        if (taken == Taken::kNoDescriptors) turn_away_next();
        return wait_a_little();
      }
      if (peer_count_->taken >= limits_.max_connections && !give_up_oldest()) {
        source_->turn_away();
        ++refused_;
        continue;
      }
      admit();
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
    if (!read_hello(id, found->second)) refuse(id);
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

  // Closes the peer that waits, because the peer would hang otherwise.
  void turn_away_next() {
    source_->turn_away_next();
    ++refused_;
  }

  void admit() {
    AcceptedChannel accepted = source_->open(loop_);
    if (accepted.channel == nullptr) {
      ++refused_;
      return;
    }
    const std::uint64_t id = ++last_id_;
    const auto peer = std::make_shared<Peer>(*this, id, std::move(accepted), PeerSlot(peer_count_));
    peers_.emplace(id, peer);
    peer->timer.expires_after(limits_.hello_timeout);
    peer->timer.async_wait([self = shared_from_this(), id](const asio::error_code& error) {
      if (!error) self->give_up(id);
    });
    peer->channel->wait_readable(peer);
  }

  // Returns false if the hello isn't whole yet. Otherwise the peer is passed on or refused.
  bool read_hello(std::uint64_t id, std::shared_ptr<Peer> peer) {
    using Event = wire::FrameReader::Event;
    StreamStart& start = peer->start;
    const auto room = start.reader.room().first;  // a hello has no payload
    const iovec buffer{room.data(), room.size()};
    const Result<ByteChannel::Read> read = peer->channel->read_some({&buffer, 1});
    if (!read || read->is_closed) return refuse(id);
    start.reader.received(read->bytes);
    start.bytes_received += read->bytes;
    const Result<Event> event = start.reader.next();
    if (event && *event == Event::kNeedBytes) return false;
    if (!event || (*event != Event::kFrame && *event != Event::kForeignHello)) return refuse(id);
    peers_.erase(id);
    peer->timer.cancel();
    on_arrival_(std::make_unique<StreamArrival>(peer->channel->detach(), std::move(start)));
    return true;
  }

  bool refuse(std::uint64_t id) {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return true;
    found->second->channel->close();
    peers_.erase(found);
    ++refused_;
    return true;
  }

  asio::io_context& loop_;
  const ListenerLimits limits_;
  const std::function<void(std::unique_ptr<Arrival>)> on_arrival_;
  std::unique_ptr<AcceptSource> source_;  // null once stopped
  asio::posix::stream_descriptor waits_;  // for source_->descriptor()
  asio::steady_timer pause_;
  const std::shared_ptr<PeerCount> peer_count_;
  std::map<std::uint64_t, std::shared_ptr<Peer>> peers_;  // the oldest peer is the first, because ids grow
  std::uint64_t last_id_ = 0;
  std::uint64_t refused_ = 0;
  bool stopped_ = false;
};

class StreamListener final : public Listener {
 public:
  StreamListener(std::shared_ptr<Acceptor> acceptor, std::string address)
      : acceptor_(std::move(acceptor)), address_(std::move(address)) {
    acceptor_->wait();
  }
  ~StreamListener() override { acceptor_->stop(); }
  const std::string& address() const override { return address_; }
  std::uint64_t refused() const override { return acceptor_->refused(); }

 private:
  const std::shared_ptr<Acceptor> acceptor_;
  const std::string address_;
};

}  // namespace

std::unique_ptr<Listener> accept_streams(asio::io_context& loop, std::unique_ptr<AcceptSource> source,
                                         std::string address, const ListenerLimits& limits,
                                         std::function<void(std::unique_ptr<Arrival>)> on_arrival) {
  auto acceptor = std::make_shared<Acceptor>(loop, std::move(source), limits, std::move(on_arrival));
  return std::make_unique<StreamListener>(std::move(acceptor), std::move(address));
}

std::unique_ptr<Listener> accept_streams(asio::io_context& loop, Descriptor socket, std::string address,
                                         const ListenerLimits& limits, OpenAccepted open,
                                         std::function<void(std::unique_ptr<Arrival>)> on_arrival) {
  auto source = std::make_unique<SocketSource>(std::move(socket), std::move(open));
  return accept_streams(loop, std::move(source), std::move(address), limits, std::move(on_arrival));
}

}  // namespace disttrain::transport
