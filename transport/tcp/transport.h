// tcp: between hosts, and on one host where nothing faster is chosen. Addresses are "host:port", "[ipv6]:port" with a
// port of 0 for any free one, and, to listen, "fd:N": an open listening socket that was handed to this process.
#pragma once

#include "transport/connection.h"
#include "transport/tcp/options.h"

namespace disttrain::transport {

// A value without state but its options; outlives nothing: listeners and connections keep copies.
class TcpTransport final : public Transport {
 public:
  // `options` pass validate().
  explicit TcpTransport(TcpOptions options = {}) : options_(std::move(options)) {}

  const char* name() const override { return "tcp"; }
  Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                           const ListenerLimits& limits,
                                           std::function<void(std::unique_ptr<Arrival>)> on_arrival) override;
  void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
            std::function<void(Result<std::unique_ptr<Connection>>)> done) override;

 private:
  const TcpOptions options_;
};

}  // namespace disttrain::transport
