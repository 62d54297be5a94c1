// shm: the transport between processes of one host. It is tcp, but connections for which a step waits (for_steps()) go
// through shared memory if both processes are on this host and belong to the same user.
//
// Beside its tcp socket a listener has a Unix socket. Its name is abstract, so no file is left of it:
// "disttrain/CLUSTER/ADDRESS", with the tcp socket's address. Abstract names, like the addresses, belong to a network
// namespace.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "transport/connection.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {

struct ShmOptions {
  std::string cluster;
  // If a connection can't use shared memory: false: it uses tcp; true: dialling fails.
  bool is_required = false;
  TcpOptions tcp;
  // Logs why connections of this host don't use shared memory, once for each socket that another process has taken. May
  // be empty. Any thread may call it.
  std::function<void(const std::string&)> warn = {};
};

class ShmTransport final : public Transport {
 public:
  // options.tcp must pass validate().
  explicit ShmTransport(ShmOptions options);
  ~ShmTransport() override;

  const char* name() const override { return options_.is_required ? "shm" : "auto"; }
  Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                           const ListenerLimits& limits,
                                           std::function<void(std::unique_ptr<Arrival>)> on_arrival) override;
  void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
            std::function<void(Result<std::unique_ptr<Connection>>)> done) override;
  Transport& for_steps() override;
  const Traffic& traffic() const override { return *traffic_; }
  // For a transport that counts the bytes of its own connections here too.
  std::shared_ptr<Traffic> shared_traffic() const { return traffic_; }

 private:
  class ForSteps;

  // Warns of the Unix socket of this name, unless it was done before.
  void warn_once(const std::string& name, const std::string& text);

  const ShmOptions options_;
  std::mutex mutex_;  // guards warned_
  std::set<std::string> warned_;
  TcpTransport tcp_;
  const std::shared_ptr<Traffic> traffic_;  // of tcp_ too
  const std::unique_ptr<ForSteps> for_steps_;
};

}  // namespace disttrain::transport
