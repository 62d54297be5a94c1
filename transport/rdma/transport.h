// rdma: the transport between hosts with RDMA devices. It is tcp, but connections for which a step waits (for_steps())
// are queue pairs. If RDMA isn't required, connections within one host go through shared memory, and connections to
// hosts without RDMA use tcp.
//
// Beside its tcp socket a listener listens with rdma_cm at the same address and port (RDMA_PS_TCP).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "transport/connection.h"
#include "transport/tcp/options.h"

namespace disttrain::transport {

class RdmaDevices;

struct RdmaOptions {
  std::string cluster;
  // If a connection can't use RDMA: false: it uses shared memory or tcp; true: dialling fails.
  bool is_required = false;
  TcpOptions tcp;
  std::function<void(const std::string&)> warn = {};  // logs why connections don't use RDMA; any thread may call it
};

class RdmaTransport final : public Transport {
 public:
  // options.tcp must pass validate().
  explicit RdmaTransport(RdmaOptions options);
  ~RdmaTransport() override;

  const char* name() const override { return options_.is_required ? "rdma" : "auto"; }
  Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                           const ListenerLimits& limits,
                                           std::function<void(std::unique_ptr<Arrival>)> on_arrival) override;
  void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
            std::function<void(Result<std::unique_ptr<Connection>>)> done) override;
  Transport& for_steps() override;
  const Traffic& traffic() const override { return *traffic_; }

 private:
  class ForSteps;

  const RdmaOptions options_;
  std::shared_ptr<Traffic> traffic_;       // of base_ too
  const std::unique_ptr<Transport> base_;  // for all other connections
  const std::shared_ptr<RdmaDevices> devices_;
  const std::unique_ptr<ForSteps> for_steps_;
};

}  // namespace disttrain::transport
