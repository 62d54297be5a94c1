#include "transport/memory/transport.h"

#include <asio/post.hpp>
#include <atomic>

#include "common/check.h"
#include "transport/peer_limit.h"
#include "transport/wire/frame_header.h"

namespace disttrain::transport {

// The part of a listener that diallers use. It has a mutex of its own, because diallers may run on other threads.
struct MemoryDoor {
  std::mutex mutex;
  asio::io_context* loop = nullptr;  // null once the listener is destroyed
  ListenerLimits limits;
  std::function<void(std::unique_ptr<Arrival>)> on_arrival;
  std::shared_ptr<Traffic> traffic;  // of the listener's transport
  std::shared_ptr<PeerCount> peer_count = std::make_shared<PeerCount>();
  std::atomic<std::uint64_t> refused{0};
};

namespace {

constexpr std::string_view kPrefix = "memory:";

class MemoryArrival final : public Arrival {
 public:
  MemoryArrival(std::shared_ptr<MemoryLink> link, PeerSlot slot, wire::FrameHeader header,
                std::vector<std::byte> control, const MemoryOptions& options)
      : link_(std::move(link)),
        slot_(std::move(slot)),
        header_(header),
        control_(std::move(control)),
        options_(options) {}
  ~MemoryArrival() override {
    if (!link_) return;
    const std::scoped_lock lock(link_->mutex);
    link_->close(1);
  }

  const wire::FrameHeader& header() const override { return header_; }
  Bytes hello() const override { return control_; }
  const char* wire() const override { return "memory"; }
  const std::string& peer() const override { return peer_; }
  std::unique_ptr<Connection> adopt(asio::io_context& loop) override {
    link_->slot_of_acceptor = std::move(slot_);
    return std::make_unique<MemoryConnection>(loop, std::move(link_), 1, peer_, options_);
  }

 private:
  std::shared_ptr<MemoryLink> link_;
  PeerSlot slot_;
  const wire::FrameHeader header_;
  const std::vector<std::byte> control_;
  const MemoryOptions options_;
  const std::string peer_ = "memory:dialler";
};

class MemoryListener final : public Listener {
 public:
  MemoryListener(MemoryNetwork& network, std::string address, std::shared_ptr<MemoryDoor> door)
      : network_(network), address_(std::move(address)), door_(std::move(door)) {}
  ~MemoryListener() override {
    network_.close(address_);
    const std::scoped_lock lock(door_->mutex);
    door_->loop = nullptr;
  }
  const std::string& address() const override { return address_; }
  std::uint64_t refused() const override { return door_->refused; }

 private:
  MemoryNetwork& network_;
  const std::string address_;
  const std::shared_ptr<MemoryDoor> door_;
};

}  // namespace

bool MemoryNetwork::open(const std::string& name, std::shared_ptr<MemoryDoor> door) {
  const std::scoped_lock lock(mutex_);
  return doors_.try_emplace(name, std::move(door)).second;
}

void MemoryNetwork::close(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  doors_.erase(name);
}

std::shared_ptr<MemoryDoor> MemoryNetwork::find(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto found = doors_.find(name);
  return found == doors_.end() ? nullptr : found->second;
}

Result<std::unique_ptr<Listener>> MemoryTransport::listen(asio::io_context& loop, const std::string& address,
                                                          const ListenerLimits& limits,
                                                          std::function<void(std::unique_ptr<Arrival>)> on_arrival) {
  if (!address.starts_with(kPrefix) || address.size() == kPrefix.size())
    return fail(ErrorCode::kConfig, "address \"" + address + "\" can't be read; expected memory:NAME");
  auto door = std::make_shared<MemoryDoor>();
  door->loop = &loop;
  door->limits = limits;
  door->traffic = traffic_;
  door->on_arrival = std::move(on_arrival);
  if (!network_.open(address, door))
    return fail(ErrorCode::kUnavailable, "can't listen on " + address + ": the port is in use");
  return std::make_unique<MemoryListener>(network_, address, std::move(door));
}

void MemoryTransport::dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello,
                           Duration /*deadline: it takes one turn*/,
                           std::function<void(Result<std::unique_ptr<Connection>>)> done) {
  const std::shared_ptr<MemoryDoor> door = network_.find(address);
  auto link = std::make_shared<MemoryLink>();
  link->ends[0].traffic = traffic_;
  if (door) link->ends[1].traffic = door->traffic;
  const auto header =
      wire::decode_header(wire::encode_header(hello.header, hello.control, {}, wire::ChecksumKind::kNone));
  DISTTRAIN_CHECK(header.has_value());
  bool listened_to = false;
  if (door) {
    const std::scoped_lock lock(door->mutex);
    listened_to = door->loop != nullptr;
    if (listened_to && door->peer_count->taken >= door->limits.max_connections) {
      ++door->refused;
      link->close(1);  // needs no lock, because no other thread has the link yet
    } else if (listened_to) {
      auto arrival = std::make_shared<std::unique_ptr<Arrival>>(std::make_unique<MemoryArrival>(
          link, PeerSlot(door->peer_count), *header, std::vector<std::byte>(hello.control.begin(), hello.control.end()),
          options_));
      asio::post(*door->loop, [door, arrival] {
        {
          const std::scoped_lock still(door->mutex);
          if (door->loop == nullptr) return;
        }
        // This runs on the listener's own loop, so the listener can't be destroyed during the call.
        door->on_arrival(std::move(*arrival));
      });
    }
  }
  asio::post(loop, [&loop, link, listened_to, address, options = options_, done = std::move(done)] {
    if (listened_to)
      done(std::make_unique<MemoryConnection>(loop, link, 0, address, options));
    else
      done(fail(ErrorCode::kUnavailable, "can't connect to " + address + ": connection refused"));
  });
}

}  // namespace disttrain::transport
