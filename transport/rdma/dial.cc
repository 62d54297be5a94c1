// Dialling: resolves the address and the route, asks for a connection, and sends the hello. One deadline limits the
// whole time.
#include "transport/rdma/dial.h"

#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

#include "common/printable.h"
#include "transport/rdma/channel.h"
#include "transport/rdma/message.h"
#include "transport/stream/connection.h"
#include "transport/tcp/socket.h"

namespace disttrain::transport {
namespace {

using Done = std::function<void(Result<std::unique_ptr<Connection>>)>;

constexpr int kResolveMs = 2000;
// The reasons of a refusal (InfiniBand's connection manager, REJ).
constexpr int kNobodyListens = 8;
constexpr int kRefusedByUser = 28;

// One call of dial_rdma(). Its operations on the loop own it, and it ends when it has called `done`.
class RdmaDial : public std::enable_shared_from_this<RdmaDial> {
 public:
  RdmaDial(asio::io_context& loop, std::string address, const OutgoingFrame& hello, OwnHost own_host,
           std::shared_ptr<RdmaDevices> devices, std::shared_ptr<Traffic> traffic, Done done)
      : loop_(loop),
        address_(std::move(address)),
        header_(hello.header),
        control_(hello.control.begin(), hello.control.end()),
        own_host_(own_host),
        devices_(std::move(devices)),
        traffic_(std::move(traffic)),
        done_(std::move(done)),
        timer_(loop),
        resolver_(loop),
        waits_(loop) {}

  void begin(Duration deadline) {
    timer_.expires_after(deadline);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (error) return;
      // rdma_cm itself would ask for much longer.
      if (self->link_)
        self->fail_with(self->devices_->is_required() ? ErrorCode::kUnavailable : kSilentHost,
                        "no answer in time; the host there may have no RDMA device, or a firewall drops the packets "
                        "(RoCE: UDP port 4791)");
      else
        self->fail_with(ErrorCode::kUnavailable, "no answer in time");
    });
    const Result<HostAndPort> parsed = parse_address(address_);
    if (!parsed)
      return asio::post(loop_,
                        [self = shared_from_this(), error = parsed.error()] { self->finish(tl::unexpected(error)); });
    if (const auto numeric = numeric_endpoint(*parsed); !numeric.empty())
      return asio::post(loop_, [self = shared_from_this(), endpoint = numeric.front()] { self->resolve(endpoint); });
    resolver_.async_resolve(parsed->host, parsed->port, asio::ip::tcp::resolver::numeric_service,
                            [self = shared_from_this()](const asio::error_code& error, const auto& found) {
                              if (!self->done_) return;
                              if (error || found.empty())
                                return self->fail_with(ErrorCode::kUnavailable,
                                                       "the host name can't be resolved: " + error.message());
                              const asio::ip::tcp::endpoint resolved = found.begin()->endpoint();
                              self->resolve(endpoint_of(resolved.data(), resolved.size()));
                            });
  }

 private:
  void resolve(const Endpoint& endpoint) {
    if (!done_) return;
    endpoint_ = endpoint;
    if (!has_rdma_devices()) return fail_with(no_rdma_devices().value());
    if (own_host_ == OwnHost::kRefuse && is_of_this_host(endpoint))
      return fail_with(ErrorCode::kUnavailable, "the address is one of this host");
    if (const auto why = devices_->why_not(host_of(endpoint))) return fail_with(ErrorCode::kUnavailable, *why);
    Result<EventChannel> events = make_event_channel();
    if (!events) return fail_with(events.error());
    events_ = std::move(*events);
    rdma_cm_id* made = nullptr;
    if (::rdma_create_id(events_.get(), &made, nullptr, RDMA_PS_TCP) != 0)
      return fail_with(rdma_error("make an rdma_cm id", errno).value());
    id_.reset(made);
    waits_.assign(events_->fd);
    if (::rdma_resolve_addr(id_.get(), nullptr, endpoint_.get(), kResolveMs) != 0) return no_way(errno);
    wait();
  }

  void wait() {
    waits_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](const asio::error_code& error) {
                        if (!error && self->done_) self->take_events();
                      });
  }

  void take_events() {
    rdma_cm_event* event = nullptr;
    while (done_ && ::rdma_get_cm_event(channel(), &event) == 0) {
      const rdma_cm_event_type kind = event->event;
      const int status = event->status;
      const auto* const data = static_cast<const char*>(event->param.conn.private_data);
      const std::string said(data != nullptr ? data : "", data != nullptr ? event->param.conn.private_data_len : 0);
      ::rdma_ack_cm_event(event);
      handle(kind, status, said);
    }
    if (done_) wait();
  }

  void handle(rdma_cm_event_type kind, int status, const std::string& said) {
    switch (kind) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (id_->verbs == nullptr) return no_way(ENODEV);
        if (::rdma_resolve_route(id_.get(), kResolveMs) != 0)
          fail_with(rdma_error("find a route with rdma_cm", errno).value());
        return;
      case RDMA_CM_EVENT_ROUTE_RESOLVED:
        return connect();
      case RDMA_CM_EVENT_ESTABLISHED:
        return connected(said);
      case RDMA_CM_EVENT_ADDR_ERROR:
        return no_way(status);
      case RDMA_CM_EVENT_REJECTED:
        if (status == kNobodyListens || status == ECONNREFUSED || status == -ECONNREFUSED)
          return fail_with(ErrorCode::kUnavailable, "connection refused: nobody listens there by RDMA");
        if (status == kRefusedByUser)
          return fail_with(ErrorCode::kUnavailable, "the process there says: " + printable(said.c_str()));
        return fail_with(ErrorCode::kUnavailable, "the host there rejects it (reason " + std::to_string(status) + ")");
      default:
        return fail_with(ErrorCode::kUnavailable, std::string("rdma_cm reports ") + ::rdma_event_str(kind) + " (" +
                                                      std::to_string(status) + ")");
    }
  }

  void connect() {
    waits_.release();  // if this fails, make() closes the descriptor
    auto link = RdmaLink::make(devices_, std::move(events_), std::move(id_));
    if (!link) return fail_with(link.error());
    link_ = std::move(*link);
    waits_.assign(link_->event_descriptor());
    if (Status asked = link_->connect(); !asked) fail_with(asked.error());
  }

  void connected(const std::string& said) {
    const Result<RdmaGreeting> greeting = decode_greeting(std::as_bytes(std::span(said)));
    if (!greeting) return fail_with(greeting.error());
    link_->greeted(*greeting);
    waits_.release();
    StreamStart start;
    start.peer = to_string(endpoint_);
    start.traffic = traffic_;
    start.reader.take_places();
    auto connection =
        std::make_unique<StreamConnection>(loop_, open_rdma_channel(loop_, std::move(link_)), std::move(start));
    OutgoingFrame hello;
    hello.header = header_;
    hello.control = control_;
    hello.lifetime = Payload::kCopied;
    connection->send(hello);
    finish(std::move(connection));
  }

  rdma_event_channel* channel() const { return link_ ? link_->events() : events_.get(); }

  void no_way(int error) { fail_with(ErrorCode::kUnavailable, why_not_reached(error)); }
  void fail_with(const Error& error) { fail_with(error.code, error.message); }
  void fail_with(ErrorCode code, const std::string& why) {
    finish(fail(code, "can't connect to " + address_ + " by RDMA: " + why));
  }

  void finish(Result<std::unique_ptr<Connection>> result) {
    if (!done_) return;
    const Done done = std::move(done_);
    done_ = nullptr;
    timer_.cancel();
    resolver_.cancel();
    if (waits_.is_open()) waits_.release();
    link_.reset();
    id_.reset();
    done(std::move(result));
  }

  asio::io_context& loop_;
  const std::string address_;
  const wire::FrameHeader header_;
  const std::vector<std::byte> control_;
  const OwnHost own_host_;
  const std::shared_ptr<RdmaDevices> devices_;
  const std::shared_ptr<Traffic> traffic_;
  Done done_;  // empty once called
  asio::steady_timer timer_;
  asio::ip::tcp::resolver resolver_;
  Endpoint endpoint_;
  asio::posix::stream_descriptor waits_;  // for the event channel, which owns the descriptor
  EventChannel events_;                   // until the link has it
  CmId id_;                               // the same
  std::unique_ptr<RdmaLink> link_;
};

}  // namespace

void dial_rdma(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
               OwnHost own_host, std::shared_ptr<RdmaDevices> devices, std::shared_ptr<Traffic> traffic, Done done) {
  std::make_shared<RdmaDial>(loop, address, hello, own_host, std::move(devices), std::move(traffic), std::move(done))
      ->begin(deadline);
}

}  // namespace disttrain::transport
