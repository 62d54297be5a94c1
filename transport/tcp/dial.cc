// Dialling: tries the host's addresses one after the other until one answers. One deadline limits the whole time.
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

#include "transport/tcp/channel.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {
namespace {

using Done = std::function<void(Result<std::unique_ptr<Connection>>)>;

// One call of dial(). Its operations on the loop own it, and it ends when it has called `done`.
class Dial : public std::enable_shared_from_this<Dial> {
 public:
  Dial(asio::io_context& loop, std::string address, const OutgoingFrame& hello, TcpOptions options,
       std::shared_ptr<Traffic> traffic, Done done)
      : loop_(loop),
        address_(std::move(address)),
        header_(hello.header),
        control_(hello.control.begin(), hello.control.end()),
        options_(std::move(options)),
        traffic_(std::move(traffic)),
        done_(std::move(done)),
        timer_(loop),
        resolver_(loop) {}

  void begin(Duration deadline) {
    timer_.expires_after(deadline);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error) self->finish(self->failure(ErrorCode::kUnavailable, "no answer in time"));
    });
    const Result<HostAndPort> parsed = parse_address(address_);
    if (!parsed)
      return asio::post(loop_,
                        [self = shared_from_this(), error = parsed.error()] { self->finish(tl::unexpected(error)); });
    endpoints_ = numeric_endpoint(*parsed);
    if (!endpoints_.empty()) return asio::post(loop_, [self = shared_from_this()] { self->try_next(); });
    resolver_.async_resolve(parsed->host, parsed->port, asio::ip::tcp::resolver::numeric_service,
                            [self = shared_from_this()](const asio::error_code& error, const auto& found) {
                              self->resolved(error, found);
                            });
  }

 private:
  void resolved(const asio::error_code& error, const asio::ip::tcp::resolver::results_type& found) {
    if (!done_) return;
    if (error) return finish(failure(ErrorCode::kUnavailable, "the host name can't be resolved: " + error.message()));
    for (const auto& one : found) {
      const asio::ip::tcp::endpoint resolved = one.endpoint();
      endpoints_.push_back(endpoint_of(resolved.data(), resolved.size()));
    }
    try_next();
  }

  void try_next() {
    if (!done_) return;
    if (next_ == endpoints_.size())
      return finish(failure(ErrorCode::kUnavailable, all_refused_ ? "connection refused" : last_reason_));
    const Endpoint& endpoint = endpoints_[next_++];
    Result<Descriptor> fd = open_socket(endpoint.storage.ss_family, options_);
    if (!fd) return attempt_failed(false, fd.error().message);
    const int result = ::connect(fd->get(), endpoint.get(), endpoint.length);
    const int error = errno;
    if (result != 0 && error != EINPROGRESS) return attempt_failed(error == ECONNREFUSED, system_words(error));
    socket_.emplace(loop_, fd->release());
    if (result == 0) return connected();
    socket_->async_wait(asio::posix::stream_descriptor::wait_write,
                        [self = shared_from_this()](const asio::error_code& aborted) {
                          if (!aborted && self->done_) self->connect_ended();
                        });
  }

  void connect_ended() {
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(socket_->native_handle(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    // If nobody listens on a port, the kernel may choose this same port for our end, and so connect the socket to
    // itself. That counts as a refusal.
    const Endpoint local = local_endpoint(socket_->native_handle());
    const Endpoint remote = remote_endpoint(socket_->native_handle());
    if (error == 0 && local.length == remote.length && std::memcmp(&local.storage, &remote.storage, local.length) == 0)
      error = ECONNREFUSED;
    if (error == 0) return connected();
    socket_.reset();
    attempt_failed(error == ECONNREFUSED, system_words(error));
  }

  void attempt_failed(bool refused, const std::string& reason) {
    all_refused_ = all_refused_ && refused;
    if (!refused) last_reason_ = reason;
    try_next();
  }

  void connected() {
    Descriptor socket(socket_->release());
    socket_.reset();
    StreamStart start = describe_socket(socket.get(), options_, traffic_);
    start.peer = to_string(endpoints_[next_ - 1]);
    auto channel = std::make_unique<TcpChannel>(loop_, std::move(socket));
    auto connection = std::make_unique<StreamConnection>(loop_, std::move(channel), std::move(start));
    OutgoingFrame hello;
    hello.header = header_;
    hello.control = control_;
    hello.lifetime = Payload::kCopied;
    connection->send(hello);
    finish(std::move(connection));
  }

  Result<std::unique_ptr<Connection>> failure(ErrorCode code, const std::string& why) const {
    return fail(code, "can't connect to " + address_ + ": " + why);
  }

  void finish(Result<std::unique_ptr<Connection>> result) {
    if (!done_) return;
    const Done done = std::move(done_);
    done_ = nullptr;
    timer_.cancel();
    resolver_.cancel();
    socket_.reset();
    done(std::move(result));
  }

  asio::io_context& loop_;
  const std::string address_;
  const wire::FrameHeader header_;
  const std::vector<std::byte> control_;
  const TcpOptions options_;
  const std::shared_ptr<Traffic> traffic_;
  Done done_;  // empty once called
  asio::steady_timer timer_;
  asio::ip::tcp::resolver resolver_;
  std::vector<Endpoint> endpoints_;
  std::size_t next_ = 0;
  bool all_refused_ = true;  // true: every address that was tried so far refused the connection
  std::string last_reason_;
  std::optional<asio::posix::stream_descriptor> socket_;
};

}  // namespace

void TcpTransport::dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello,
                        Duration deadline, std::function<void(Result<std::unique_ptr<Connection>>)> done) {
  std::make_shared<Dial>(loop, address, hello, options_, traffic_, std::move(done))->begin(deadline);
}

}  // namespace disttrain::transport
