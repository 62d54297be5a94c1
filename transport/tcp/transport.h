// tcp: between hosts, and within one host. Addresses are "host:port" or "[ipv6]:port", with port 0 for any free port; a
// listener may also name "fd:N", an open listening socket that was handed to this process.
#pragma once

#include <memory>

#include "transport/connection.h"
#include "transport/tcp/options.h"
#include "transport/traffic.h"

namespace disttrain::transport {

// May end first: listeners and connections keep copies of its options and share its counters.
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

 private:
  const TcpOptions options_;
  const std::shared_ptr<Traffic> traffic_ =
      std::make_shared<Traffic>();  // shared with connections, which may outlive the transport
};

}  // namespace disttrain::transport
