// Processes and what goes between them: connections that keep order, take time, and break; addresses at which nobody or
// somebody else may live by now. Like tcp: what was sent to a connection that breaks may or may not have arrived.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/messages/data.h"
#include "common/messages/session.h"
#include "tests/sim/world.h"
#include "transport/wire/codec.h"

namespace disttrain::sim {

// Frames, as values.
struct PushFrame {
  Sequence sequence;
  Push push;
  std::vector<float> payload;
};
struct ParametersFrame {
  Parameters parameters;
  std::vector<float> payload;
};
using Payload = std::variant<wire::HelloAnswer, wire::ControlMessage, PushFrame, Pull, ParametersFrame, Acknowledge,
                             Staged, Commit, PacerNews, Mark, MarkTaken, Cut>;

// One end of a connection; the other end has another number, for both may be of one process.
using ConnectionId = std::uint64_t;

class Network;

// One process. Destroyed when it crashes; whatever was still to be told to it is dropped then.
class Node {
 public:
  Node(World& world, Network& network, TaskId task, Incarnation incarnation)
      : world_(world), network_(network), self_{task, incarnation} {}
  virtual ~Node() = default;

  const Member& self() const { return self_; }
  virtual void start() = 0;
  virtual void on_arrival(ConnectionId connection, const Hello& hello) = 0;
  virtual void on_message(ConnectionId connection, const Payload& payload) = 0;
  virtual void on_closed(ConnectionId connection) = 0;
  // False: it doesn't take connections yet.
  virtual bool listens() const { return true; }

 protected:
  // Runs on this process: not if it has died, later if it is paused.
  void after(Duration delay, std::function<void()> work);
  void dial(const std::string& address, const Hello& hello, Duration deadline,
            std::function<void(std::optional<ConnectionId>, bool refused)> done);
  void send(ConnectionId connection, Payload payload);
  void close(ConnectionId connection);
  void tell(const std::string& line) { world_.tell(to_string(self_.task) + " " + line); }

  World& world_;
  Network& network_;
  Member self_;

 private:
  friend class Network;
  std::string address_;  // Network's
};

class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  // Latency of everything.
  Duration shortest = std::chrono::microseconds(20);
  Duration longest = std::chrono::microseconds(500);

  // A process begins at this address, in place of a former one, which must have crashed.
  void start(const std::string& address, std::unique_ptr<Node> node);
  // Its connections are reset; or not at once, if the host goes with it.
  void crash(const std::string& address, bool with_host);
  bool is_alive(const std::string& address) const { return seats_.count(address) != 0 && seats_.at(address).node; }
  Node* at(const std::string& address) { return seats_.count(address) != 0 ? seats_[address].node.get() : nullptr; }
  void pause(const std::string& address);
  void resume(const std::string& address);
  // What `from` sends to `to` waits until it is let through.
  void block(const std::string& from, const std::string& to) { blocked_.insert({from, to}); }
  void unblock_all();
  // Some connection that is open, drawn; it is reset.
  void cut_one();

 private:
  friend class Node;
  struct Seat {
    std::unique_ptr<Node> node;
    std::uint64_t life = 0;  // grows with each process
    bool paused = false;
    bool host_down = false;
    std::deque<std::pair<std::uint64_t, std::function<void()>>> waiting;  // while paused
  };
  struct Side {
    std::string address;
    std::uint64_t life = 0;
    bool closed = false;  // no calls any more
    Instant last;         // of the last delivery to this side
  };
  struct Connection {
    Side sides[2];
    std::deque<std::pair<int, std::function<void()>>> held;  // blocked: to which side
    bool broken = false;
    bool loses = false;  // what was under way when it broke
  };

  static const std::string& address_of(const Node& node) { return node.address_; }
  // The ends of connection `id` are 2 id and 2 id + 1.
  static ConnectionId end_of(std::uint64_t id, int side) { return 2 * id + static_cast<std::uint64_t>(side); }
  // Calls it on the process that lives there with that life.
  void run_on(const std::string& address, std::uint64_t life, std::function<void()> work);
  void deliver(std::uint64_t id, int to, std::function<void(Node&)> call, bool is_close = false);
  void break_connection(std::uint64_t id, int told);

  World& world_;
  std::map<std::string, Seat> seats_;
  std::map<std::uint64_t, Connection> connections_;
  std::uint64_t last_ = 0;
  std::set<std::pair<std::string, std::string>> blocked_;
};

}  // namespace disttrain::sim
