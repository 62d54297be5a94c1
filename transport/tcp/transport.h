// tcp: the transport between hosts and within one host. Addresses are "host:port" or "[ipv6]:port". A listener may name
// port 0, which means any free port, or "fd:N", which means an open listening socket that this process has inherited.
#pragma once

#include <memory>

#include "transport/connection.h"
#include "transport/tcp/options.h"
#include "transport/traffic.h"

namespace disttrain::transport {

// The transport may be destroyed before its listeners and connections, because they keep copies of its options and
// share its counters.
class TcpTransport final : public Transport {
 public:
  // `options` must pass validate().
  explicit TcpTransport(TcpOptions options = {}) : options_(std::move(options)) {}

  const char* name() const override { return "tcp"; }
  Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                           const ListenerLimits& limits,
                                           std::function<void(std::unique_ptr<Arrival>)> on_arrival) override;
  void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
            std::function<void(Result<std::unique_ptr<Connection>>)> done) override;
  const Traffic& traffic() const override { return *traffic_; }
  // For a transport that counts the bytes of its own connections here too.
  std::shared_ptr<Traffic> shared_traffic() const { return traffic_; }

 private:
  const TcpOptions options_;
  // Connections share the counters, because they may outlive the transport.
  const std::shared_ptr<Traffic> traffic_ = std::make_shared<Traffic>();
};

}  // namespace disttrain::transport
