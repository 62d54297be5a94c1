#include "transport/shm/transport.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "transport/shm/channel.h"
#include "transport/stream/accept.h"
#include "transport/stream/connection.h"
#include "transport/stream/two_listeners.h"
#include "transport/tcp/socket.h"

namespace disttrain::transport {
namespace {

using Done = std::function<void(Result<std::unique_ptr<Connection>>)>;

struct UnixName {
  sockaddr_un address{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  // As `ss` and /proc/net/unix show it.
  std::string shown() const {
    return "@" + std::string(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  }
};

// An abstract name begins with a byte 0. The address alone makes it unique, so a long cluster's name may be cut.
UnixName name_of(const std::string& cluster, const std::string& address) {
  constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  const std::string fixed = "disttrain//" + address;
  const std::size_t room = kMost - std::min(kMost, fixed.size());
  const std::string text = "disttrain/" + cluster.substr(0, room) + "/" + address;
  UnixName name;
  name.address.sun_family = AF_UNIX;
  const std::size_t bytes = std::min(text.size(), kMost);
  std::memcpy(name.address.sun_path + 1, text.data(), bytes);
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return name;
}

Descriptor open_unix_socket() {
  return Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Empty if the system doesn't tell.
std::optional<ucred> peer_of(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer;
}

std::string words_for(const std::optional<ucred>& peer) {
  if (!peer) return "another process";
  return "process " + std::to_string(peer->pid) + " of user " + std::to_string(peer->uid);
}

// The process that listens on the socket of this name, as far as it can be found out.
std::string holder_of(const UnixName& name) {
  const Descriptor socket = open_unix_socket();
  if (!socket || ::connect(socket.get(), name.get(), name.length) != 0) return words_for(std::nullopt);
  return words_for(peer_of(socket.get()));
}

// A Unix socket that another user's process has taken.
struct Squatted {
  std::string name;
  std::string holder;
};

// The addresses under which a process that is reached at `endpoint` may listen.
std::vector<std::string> listening_addresses(const Endpoint& endpoint) {
  const std::string exact = to_string(endpoint);
  const std::string port = exact.substr(exact.rfind(':'));
  return {exact, "0.0.0.0" + port, "[::]" + port};
}

// Connects to the Unix socket of the process that listens at one of these endpoints. The error begins in the middle of
// a sentence. Sets `squatted` if another user's process has the socket.
Result<Descriptor> connect_unix(const std::string& cluster, const std::vector<Endpoint>& endpoints,
                                std::optional<Squatted>& squatted) {
  std::string reason = "the address isn't one of this host";
  for (const Endpoint& endpoint : endpoints) {
    if (!is_of_this_host(endpoint)) continue;
    reason =
        "connection refused: no process offers shared memory there; if one runs, give all hosts the same "
        "transport.kind";
    for (const std::string& listening : listening_addresses(endpoint)) {
      const UnixName name = name_of(cluster, listening);
      Descriptor socket = open_unix_socket();
      if (!socket) return fail(ErrorCode::kUnavailable, "no socket: " + system_words(errno));
      if (::connect(socket.get(), name.get(), name.length) != 0) {
        if (errno != ECONNREFUSED) reason = system_words(errno);
        continue;
      }
      const std::optional<ucred> peer = peer_of(socket.get());
      if (peer && peer->uid == ::geteuid()) return socket;
      squatted = Squatted{name.shown(), words_for(peer)};
      return fail(ErrorCode::kNoPermission,
                  "the process there belongs to user " + std::to_string(peer ? peer->uid : 0) + ", this one to user " +
                      std::to_string(::geteuid()) + "; run both as one user to let them share memory");
    }
  }
  return fail(ErrorCode::kUnavailable, reason);
}

using Endpoints = Result<std::vector<Endpoint>>;

// Asks the system's resolver, which may need seconds, without blocking the loop. Its operations on the loop own it, and
// it ends when it has called `done`.
class Lookup : public std::enable_shared_from_this<Lookup> {
 public:
  using Found = std::function<void(const Endpoints& endpoints)>;

  Lookup(asio::io_context& loop, Found done) : done_(std::move(done)), timer_(loop), resolver_(loop) {}

  void begin(const HostAndPort& address, Duration deadline) {
    timer_.expires_after(deadline);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& cancelled) {
      if (!cancelled) self->finish(fail(ErrorCode::kUnavailable, "the host name isn't resolved in time"));
    });
    resolver_.async_resolve(
        address.host, address.port, asio::ip::tcp::resolver::numeric_service,
        [self = shared_from_this()](const asio::error_code& error, const auto& found) {
          if (error)
            return self->finish(fail(ErrorCode::kUnavailable, "the host name can't be resolved: " + error.message()));
          std::vector<Endpoint> endpoints;
          for (const auto& one : found) {
            const asio::ip::tcp::endpoint resolved = one.endpoint();
            endpoints.push_back(endpoint_of(resolved.data(), resolved.size()));
          }
          self->finish(std::move(endpoints));
        });
  }

 private:
  void finish(const Endpoints& endpoints) {
    if (!done_) return;
    timer_.cancel();
    resolver_.cancel();
    std::exchange(done_, nullptr)(endpoints);
  }

  Found done_;  // empty once called
  asio::steady_timer timer_;
  asio::ip::tcp::resolver resolver_;
};

// A copy of a hello that waits to be sent.
struct KeptHello {
  explicit KeptHello(const OutgoingFrame& hello)
      : header(hello.header), control(hello.control.begin(), hello.control.end()) {}
  OutgoingFrame frame() const {
    OutgoingFrame frame;
    frame.header = header;
    frame.control = control;
    return frame;
  }

  wire::FrameHeader header;
  std::vector<std::byte> control;
};

}  // namespace

// Dials over shared memory, or over tcp.
class ShmTransport::ForSteps final : public Transport {
 public:
  explicit ForSteps(ShmTransport& owner) : owner_(owner) {}

  const char* name() const override { return owner_.name(); }
  Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                           const ListenerLimits& limits,
                                           std::function<void(std::unique_ptr<Arrival>)> on_arrival) override {
    return owner_.listen(loop, address, limits, std::move(on_arrival));
  }
  const Traffic& traffic() const override { return owner_.traffic(); }

  void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
            Done done) override {
    const Result<HostAndPort> parsed = parse_address(address);
    if (!parsed) return dial_at(loop, tl::unexpected(parsed.error()), address, hello, deadline, std::move(done));
    std::vector<Endpoint> numeric = numeric_endpoint(*parsed);
    if (!numeric.empty()) return dial_at(loop, std::move(numeric), address, hello, deadline, std::move(done));
    // The deadline begins again, because tcp resolves the name once more.
    const auto resolved = [this, &loop, address, deadline, kept = KeptHello(hello),
                           done = std::move(done)](const Endpoints& endpoints) {
      dial_at(loop, endpoints, address, kept.frame(), deadline, done);
    };
    std::make_shared<Lookup>(loop, resolved)->begin(*parsed, deadline);
  }

 private:
  void dial_at(asio::io_context& loop, const Endpoints& endpoints, const std::string& address,
               const OutgoingFrame& hello, Duration deadline, Done done) {
    Result<std::unique_ptr<Connection>> connection = connect(loop, endpoints, address, hello);
    if (!connection && !owner_.options_.is_required)
      return owner_.dial(loop, address, hello, deadline, std::move(done));
    asio::post(loop, [result = std::make_shared<Result<std::unique_ptr<Connection>>>(std::move(connection)),
                      done = std::move(done)] { done(std::move(*result)); });
  }

  Result<std::unique_ptr<Connection>> connect(asio::io_context& loop, const Endpoints& endpoints,
                                              const std::string& address, const OutgoingFrame& hello) {
    const auto failed = [&address](const Error& why) {
      return fail(why.code,
                  "can't connect to " + address + " through shared memory (transport.kind = \"shm\"): " + why.message);
    };
    if (!endpoints) return failed(endpoints.error());
    std::optional<Squatted> squatted;
    Result<Descriptor> socket = connect_unix(owner_.options_.cluster, *endpoints, squatted);
    if (squatted && !owner_.options_.is_required)
      owner_.warn_once(squatted->name,
                       "connections to " + address + " go over TCP and not through shared memory: the socket " +
                           squatted->name + " belongs to " + squatted->holder + ", and this process to user " +
                           std::to_string(::geteuid()) +
                           "; run both as one user, or end that process if it isn't a disttrain daemon");
    if (!socket) return failed(socket.error());
    Result<std::unique_ptr<ByteChannel>> channel = dialled_shm_channel(loop, std::move(*socket));
    if (!channel) return failed(channel.error());
    StreamStart start;
    start.peer = address;
    start.traffic = owner_.traffic_;
    start.reader.take_places();
    auto connection = std::make_unique<StreamConnection>(loop, std::move(*channel), std::move(start));
    OutgoingFrame first = hello;
    first.lifetime = Payload::kCopied;
    connection->send(first);
    return connection;
  }

  ShmTransport& owner_;
};

ShmTransport::ShmTransport(ShmOptions options)
    : options_(std::move(options)),
      tcp_(options_.tcp),
      traffic_(tcp_.shared_traffic()),
      for_steps_(std::make_unique<ForSteps>(*this)) {}

ShmTransport::~ShmTransport() = default;

void ShmTransport::warn_once(const std::string& name, const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (!options_.warn || !warned_.insert(name).second) return;
  }
  options_.warn(text);
}

Transport& ShmTransport::for_steps() {
  return *for_steps_;
}

void ShmTransport::dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello,
                        Duration deadline, Done done) {
  tcp_.dial(loop, address, hello, deadline, std::move(done));
}

Result<std::unique_ptr<Listener>> ShmTransport::listen(asio::io_context& loop, const std::string& address,
                                                       const ListenerLimits& own_limits,
                                                       std::function<void(std::unique_ptr<Arrival>)> on_arrival) {
  ListenerLimits limits = own_limits;
  if (!limits.count) limits.count = std::make_shared<PeerCount>();
  Result<std::unique_ptr<Listener>> tcp = tcp_.listen(loop, address, limits, on_arrival);
  if (!tcp) return tcp;
  const UnixName name = name_of(options_.cluster, (*tcp)->address());
  Descriptor socket = open_unix_socket();
  // The tcp address is ours, so the name should be free. But any process of this host may take it, and a system may
  // forbid Unix sockets (seccomp).
  if (!socket || ::bind(socket.get(), name.get(), name.length) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    const std::string why = errno == EADDRINUSE ? "the socket " + name.shown() + " is taken by " + holder_of(name) +
                                                      "; end that process, or give this task another address"
                                                : system_words(errno);
    if (options_.is_required)
      return fail(
          ErrorCode::kUnavailable,
          "can't listen on " + address + " for connections through shared memory (transport.kind = \"shm\"): " + why);
    warn_once(name.shown(), "connections of this host to " + (*tcp)->address() +
                                " go over TCP and not through shared memory: " + why);
    return std::make_unique<TwoListeners>(std::move(*tcp), nullptr);
  }
  const OpenAccepted open = [traffic = traffic_](asio::io_context& on, Descriptor accepted) {
    const std::optional<ucred> peer = peer_of(accepted.get());
    if (!peer || peer->uid != ::geteuid()) return AcceptedChannel();
    StreamStart start;
    start.peer = "process " + std::to_string(peer->pid) + " on this host";
    start.traffic = traffic;
    start.reader.take_places();
    return AcceptedChannel{accepted_shm_channel(on, std::move(accepted)), std::move(start)};
  };
  auto local = accept_streams(loop, std::move(socket), (*tcp)->address(), limits, open, std::move(on_arrival));
  return std::make_unique<TwoListeners>(std::move(*tcp), std::move(local));
}

}  // namespace disttrain::transport
