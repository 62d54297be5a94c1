#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "transport/rdma/channel.h"
#include "transport/rdma/dial.h"
#include "transport/rdma/message.h"
#include "transport/stream/accept.h"
#include "transport/tcp/socket.h"

namespace disttrain::transport {
namespace {

constexpr int kBacklog = 1024;

tl::unexpected<Error> no_device() {
  return fail(ErrorCode::kConfig, "no RDMA device of this host has the address; `rdma link` lists the devices");
}

// Whether it stands for all addresses of the host.
bool is_any(const Endpoint& endpoint) {
  const std::string text = to_string(endpoint);
  return text.starts_with("0.0.0.0:") || text.starts_with("[::]:");
}

// Takes the connection requests of a listening id.
class RequestSource final : public AcceptSource {
 public:
  RequestSource(EventChannel events, CmId listener, std::shared_ptr<RdmaDevices> devices,
                std::shared_ptr<Traffic> traffic)
      : devices_(std::move(devices)),
        traffic_(std::move(traffic)),
        events_(std::move(events)),
        listener_(std::move(listener)) {}

  int descriptor() const override { return events_->fd; }

  Taken take() override {
    rdma_cm_event* event = nullptr;
    if (::rdma_get_cm_event(events_.get(), &event) != 0)
      return errno == EAGAIN || errno == EWOULDBLOCK ? Taken::kNothing
             : errno == EINTR                        ? Taken::kTryAgain
                                                     : Taken::kFailed;
    const bool is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    if (is_request) {
      asked_ = event->param.conn;
      const auto* const data = static_cast<const std::byte*>(asked_.private_data);
      greeting_ = decode_greeting({data, data != nullptr ? asked_.private_data_len : std::size_t{0}});
      asked_.private_data = nullptr;  // it goes with the event
      request_.reset(event->id);
    }
    ::rdma_ack_cm_event(event);
    return is_request ? Taken::kPeer : Taken::kTryAgain;
  }

  AcceptedChannel open(asio::io_context& loop) override {
    Result<AcceptedChannel> opened = try_to_open(loop);
    if (opened) return std::move(*opened);
    if (request_) refuse(request_.get(), opened.error().message);
    request_.reset();
    return AcceptedChannel();
  }

  void turn_away() override {
    refuse(request_.get(), "too many connections");
    request_.reset();
  }
  void turn_away_next() override {
    if (take() == Taken::kPeer) turn_away();
  }

 private:
  Result<AcceptedChannel> try_to_open(asio::io_context& loop) {
    if (!greeting_) return tl::unexpected(greeting_.error());
    const Endpoint peer = peer_of(request_.get());
    // The peer would dial by RDMA again and again. Refused, it uses tcp.
    if (const auto why = devices_->why_not(host_of(peer))) return fail(ErrorCode::kUnavailable, *why);
    Result<EventChannel> events = make_event_channel();
    if (!events) return tl::unexpected(events.error());
    if (::rdma_migrate_id(request_.get(), events->get()) != 0)
      return rdma_error("give a connection an event channel of its own", errno);
    StreamStart start;
    start.peer = to_string(peer);
    start.traffic = traffic_;
    start.reader.take_places();
    auto link = RdmaLink::make(devices_, std::move(*events), std::move(request_));
    if (!link) return tl::unexpected(link.error());
    if (Status accepted = (*link)->accept(asked_, *greeting_); !accepted) return tl::unexpected(accepted.error());
    return AcceptedChannel{open_rdma_channel(loop, std::move(*link)), std::move(start)};
  }

  const std::shared_ptr<RdmaDevices> devices_;
  const std::shared_ptr<Traffic> traffic_;
  const EventChannel events_;
  const CmId listener_;
  // Of the request that take() has taken.
  CmId request_;
  rdma_conn_param asked_{};
  Result<RdmaGreeting> greeting_;
};

}  // namespace

Result<std::unique_ptr<Listener>> listen_rdma(asio::io_context& loop, const std::string& address,
                                              const ListenerLimits& limits, std::shared_ptr<RdmaDevices> devices,
                                              std::shared_ptr<Traffic> traffic,
                                              std::function<void(std::unique_ptr<Arrival>)> on_arrival) {
  const Result<HostAndPort> parsed = parse_address(address);
  if (!parsed) return tl::unexpected(parsed.error());
  std::vector<Endpoint> endpoints = numeric_endpoint(*parsed);
  if (endpoints.empty()) return fail(ErrorCode::kConfig, "\"" + address + "\" isn't a numeric address");
  Result<EventChannel> events = make_event_channel();
  if (!events) return tl::unexpected(events.error());
  rdma_cm_id* made = nullptr;
  if (::rdma_create_id(events->get(), &made, nullptr, RDMA_PS_TCP) != 0) return rdma_error("make an rdma_cm id", errno);
  CmId id(made);
  if (::rdma_bind_addr(id.get(), endpoints.front().get()) != 0)
    return errno == ENODEV || errno == EADDRNOTAVAIL ? no_device() : rdma_error("bind the address with rdma_cm", errno);
  if (id->verbs == nullptr && !is_any(endpoints.front())) return no_device();  // so it is for 127.0.0.1
  // Without locked memory no connection could be made, and each end would only say so again and again.
  if (devices->is_required() && id->verbs != nullptr)
    if (Status may = RdmaLink::try_memory(*devices, id->verbs); !may) return tl::unexpected<Error>(may.error());
  if (::rdma_listen(id.get(), kBacklog) != 0) return rdma_error("listen with rdma_cm", errno);
  auto source =
      std::make_unique<RequestSource>(std::move(*events), std::move(id), std::move(devices), std::move(traffic));
  return accept_streams(loop, std::move(source), address, limits, std::move(on_arrival));
}

}  // namespace disttrain::transport
