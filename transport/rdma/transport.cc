#include "transport/rdma/transport.h"

#include <string_view>
#include <utility>
#include <vector>

#include "transport/clock.h"
#include "transport/rdma/device.h"
#include "transport/rdma/dial.h"
#include "transport/shm/transport.h"
#include "transport/stream/two_listeners.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {
namespace {

using Done = std::function<void(Result<std::unique_ptr<Connection>>)>;

std::unique_ptr<Transport> make_base(const RdmaOptions& options, std::shared_ptr<Traffic>& traffic) {
  if (options.is_required) {
    auto tcp = std::make_unique<TcpTransport>(options.tcp);
    traffic = tcp->shared_traffic();
    return tcp;
  }
  auto shm =
      std::make_unique<ShmTransport>(ShmOptions{.cluster = options.cluster, .tcp = options.tcp, .warn = options.warn});
  traffic = shm->shared_traffic();
  return shm;
}

}  // namespace

// Dials by RDMA, or with the base transport.
class RdmaTransport::ForSteps final : public Transport {
 public:
  explicit ForSteps(RdmaTransport& owner) : owner_(owner) {}

  const char* name() const override { return owner_.name(); }
  Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                           const ListenerLimits& limits,
                                           std::function<void(std::unique_ptr<Arrival>)> on_arrival) override {
    return owner_.listen(loop, address, limits, std::move(on_arrival));
  }
  const Traffic& traffic() const override { return owner_.traffic(); }

  void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
            Done done) override {
    if (owner_.options_.is_required)
      return dial_rdma(loop, address, hello, deadline, OwnHost::kDial, owner_.devices_, owner_.traffic_,
                       std::move(done));
    Transport& base = owner_.base_->for_steps();
    if (!has_rdma_devices()) return base.dial(loop, address, hello, deadline, std::move(done));
    // The hello's bytes may change when this call returns.
    auto header = hello.header;
    std::vector<std::byte> control(hello.control.begin(), hello.control.end());
    auto otherwise = [&loop, &base, address, header, control = std::move(control), end = monotonic_now() + deadline,
                      devices = owner_.devices_, done = std::move(done)](Result<std::unique_ptr<Connection>> made) {
      if (made) return done(std::move(made));
      OutgoingFrame again;
      again.header = header;
      again.control = control;
      base.dial(loop, address, again, end - monotonic_now(),
                [devices, address, error = made.error(), done](Result<std::unique_ptr<Connection>> connection) {
                  if (connection && std::string_view((*connection)->wire()) == "tcp") {
                    // The process of a silent host is alive, so each dial by RDMA would be a wait for nothing.
                    if (error.code == kSilentHost)
                      devices->avoidance().avoid(host_of((*connection)->peer()), error.message, monotonic_now());
                    else
                      devices->avoidance().tell_once(address, error.message + "; the connection uses tcp");
                  }
                  done(std::move(connection));
                });
    };
    // Half of the time is left for the other way.
    dial_rdma(loop, address, hello, deadline / 2, OwnHost::kRefuse, owner_.devices_, owner_.traffic_,
              std::move(otherwise));
  }

 private:
  RdmaTransport& owner_;
};

RdmaTransport::RdmaTransport(RdmaOptions options)
    : options_(std::move(options)),
      base_(make_base(options_, traffic_)),
      devices_(std::make_shared<RdmaDevices>(options_.is_required, options_.warn)),
      for_steps_(std::make_unique<ForSteps>(*this)) {}

RdmaTransport::~RdmaTransport() = default;

Transport& RdmaTransport::for_steps() {
  return *for_steps_;
}

void RdmaTransport::dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello,
                         Duration deadline, Done done) {
  base_->dial(loop, address, hello, deadline, std::move(done));
}

Result<std::unique_ptr<Listener>> RdmaTransport::listen(asio::io_context& loop, const std::string& address,
                                                        const ListenerLimits& own_limits,
                                                        std::function<void(std::unique_ptr<Arrival>)> on_arrival) {
  ListenerLimits limits = own_limits;
  if (!limits.count) limits.count = std::make_shared<PeerCount>();
  Result<std::unique_ptr<Listener>> base = base_->listen(loop, address, limits, on_arrival);
  if (!base) return base;
  Result<std::unique_ptr<Listener>> rdma =
      has_rdma_devices() ? listen_rdma(loop, (*base)->address(), limits, devices_, traffic_, std::move(on_arrival))
                         : no_rdma_devices();
  if (rdma) return std::make_unique<TwoListeners>(std::move(*base), std::move(*rdma));
  const std::string why = "can't listen on " + (*base)->address() + " by RDMA (transport.kind = \"" + name() +
                          "\"): " + rdma.error().message;
  if (options_.is_required) return fail(rdma.error().code, why);
  const bool is_loopback = address.starts_with("127.") || address.starts_with("[::1]");
  if (!is_loopback) devices_->avoidance().tell_once("listening", why + "; peers of other hosts use tcp");
  return base;
}

}  // namespace disttrain::transport
