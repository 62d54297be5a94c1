// memory: a transport within one process, for tests. Its addresses are "memory:NAME". A MemoryNetwork knows which
// listener has which address.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transport/connection.h"
#include "transport/memory/connection.h"

namespace disttrain::transport {

struct MemoryDoor;  // the part of a listener that diallers use

// The listeners by their addresses. It must outlive all listeners. Any thread may call it.
class MemoryNetwork {
 public:
  // Adds a listener. Returns false if another listener has this name.
  bool open(const std::string& name, std::shared_ptr<MemoryDoor> door);
  void close(const std::string& name);
  std::shared_ptr<MemoryDoor> find(const std::string& name);

 private:
  std::mutex mutex_;  // guards doors_
  std::map<std::string, std::shared_ptr<MemoryDoor>> doors_;
};

class MemoryTransport final : public Transport {
 public:
  // The network outlives the transport.
  explicit MemoryTransport(MemoryNetwork& network, MemoryOptions options = {}) : network_(network), options_(options) {}

  const char* name() const override { return "memory"; }
  Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                           const ListenerLimits& limits,
                                           std::function<void(std::unique_ptr<Arrival>)> on_arrival) override;
  void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
            std::function<void(Result<std::unique_ptr<Connection>>)> done) override;
  const Traffic& traffic() const override { return *traffic_; }

 private:
  MemoryNetwork& network_;
  const MemoryOptions options_;
  const std::shared_ptr<Traffic> traffic_ = std::make_shared<Traffic>();  // shared with connections
};

}  // namespace disttrain::transport
