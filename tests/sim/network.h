// Simulated processes and the connections between them. A connection keeps the order of its messages, has latency, and
// can break. An address may have no process, or another one than before. As with TCP:
// 1. A message on a connection that breaks arrives or is lost.
// 2. It may arrive when the same two processes already have a newer connection.
// 3. A hello may arrive although the dialler hears no answer.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/messages/data.h"
#include "common/messages/session.h"
#include "tests/sim/harm.h"
#include "tests/sim/world.h"
#include "transport/wire/codec.h"

namespace disttrain::sim {

// Frames of the data path with their payload.
struct PushFrame {
  Sequence sequence;
  Push push;
  std::vector<float> payload;
  double records = 0.0;  // for the laws only: the sum of value_of() over the records of the gradient
};
struct ParametersFrame {
  Parameters parameters;
  std::vector<float> payload;
};
using Payload = std::variant<wire::HelloAnswer, wire::ControlMessage, PushFrame, Pull, ParametersFrame, Acknowledge,
                             Staged, Commit, PacerNews, Mark, MarkTaken, Cut>;

// One end of a connection. The two ends have different numbers, because both may belong to one process.
using ConnectionId = std::uint64_t;

class Network;

// One process. It is destroyed when it crashes; messages and timers that were due for it are then dropped.
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
  // False: the process doesn't accept connections yet.
  virtual bool listens() const { return true; }
  // The address at which the process listens.
  const std::string& address() const;
  // Moves the process's clock forward. Its timers don't notice, as after a suspend of the host.
  void jump(Duration by) { skew_ += by; }

 protected:
  // The time that the process's own clock shows.
  Instant now() const { return world_.now() + skew_; }
  // Runs `work` on this process after `delay`: later if it is paused by then, never if it has died.
  void after(Duration delay, std::function<void()> work);
  void dial(const std::string& address, const Hello& hello, Duration deadline,
            std::function<void(std::optional<ConnectionId>, bool refused)> done);
  void send(ConnectionId connection, Payload payload);
  void close(ConnectionId connection);
  // Whether a message that the other end sends now would arrive in time. Real shards send something all the time; here
  // a process asks this instead.
  bool hears(ConnectionId connection) const;
  // Ends the process, after the current call has returned.
  void exit();
  void tell(const std::string& line) { world_.tell(to_string(self_.task) + " " + line); }

  World& world_;
  Network& network_;
  Member self_;

 private:
  friend class Network;
  std::size_t host_ = 0;  // index in Network::hosts_
  Duration skew_{};
};

class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  // Limits of the latency of each message.
  Duration shortest = std::chrono::microseconds(20);
  Duration longest = std::chrono::microseconds(500);
  // How many of 1000 broken connections break late: one side gets its last messages and hears of the break when the
  // other side may already have a new connection.
  std::uint64_t late_breaks = 0;
  // How many of 1000 hellos that arrive stay unanswered: the dialler hears nothing.
  std::uint64_t ghosts = 0;
  // Every message is encoded and decoded by the real codec.
  bool through_codec = false;
  // Called when the codec can't encode or decode a message.
  std::function<void(const std::string& problem)> on_bad_message;

  // Called when a task sees that a law is broken.
  std::function<void(const std::string& law)> on_violation;
  // The tasks that faults have hit. The network notes its own faults here, and the simulation notes the others.
  Harm harm;
  // Maps an address to another one: a dial to the first reaches the process at the second.
  std::map<std::string, std::string> taken_over;

  // Starts a process at this address. The former one must have crashed.
  void start(const std::string& address, std::unique_ptr<Node> node);
  // Kills the process. Its peers see a reset at once, or 20 s later if its host goes too.
  void crash(const std::string& address, bool with_host);
  // Moves a live process, with its connections, to the address `to`. A later dial to `from` reaches the process that
  // starts there next.
  void rename(const std::string& from, const std::string& to);
  bool is_alive(const std::string& address) { return host(address).node != nullptr; }
  Node* at(const std::string& address) { return host(address).node.get(); }
  void pause(const std::string& address);
  void resume(const std::string& address);
  // Holds back the messages from the first to the second of each pair. The partition heals after heals_after.
  using Links = std::vector<std::pair<std::string, std::string>>;
  void part(const Links& links, Duration heals_after);
  void heal_all();
  // Resets one open connection, drawn at random.
  void cut_one();
  // Skips so many messages to `address`, then calls `work` once, right before or after the next one is handled.
  void trap(const std::string& address, std::uint64_t messages, bool before, std::function<void()> work);
  void disarm() { trap_.reset(); }
  // Ends a process as if by itself, and calls on_exit.
  void exit(const std::string& address);
  std::function<void(const std::string& address)> on_exit;

 private:
  friend class Node;
  struct Host {
    std::string address;
    std::unique_ptr<Node> node;
    std::uint64_t life = 0;  // grows with each start and each crash
    bool paused = false;
    bool host_down = false;
    std::deque<std::pair<std::uint64_t, std::function<void()>>> waiting;  // while paused
  };
  struct Side {
    std::size_t host = 0;
    std::uint64_t life = 0;
    bool closed = false;   // gets no calls any more
    bool stalled = false;  // arriving messages are held
    Instant last;          // arrival of the last message to this side
  };
  struct Message {
    int to = 0;
    std::function<void(Node&)> call;
    bool is_close = false;
  };
  struct Connection {
    Side sides[2];
    std::deque<Message> held;  // messages that are blocked or stalled
    bool broken = false;
    bool loses = false;  // messages that were under way when it broke are lost
  };
  struct Trap {
    std::size_t host = 0;
    std::uint64_t messages = 0;
    bool before = false;
    std::function<void()> work;
  };

  bool hears(ConnectionId end) const;
  std::size_t number(const std::string& address);
  Host& host(const std::string& address) { return *hosts_[number(address)]; }
  bool is_blocked(std::size_t from, std::size_t to) const {
    return !blocked_.empty() && blocked_.count({from, to}) != 0;
  }
  bool is_cut(std::size_t one, std::size_t other) const { return is_blocked(one, other) || is_blocked(other, one); }
  void arrive_hello(std::size_t from, std::uint64_t life, std::size_t to, const Hello& hello,
                    const std::function<void(std::optional<ConnectionId>, bool)>& finish);
  // The ends of connection `id` are 2 id and 2 id + 1.
  static ConnectionId end_of(std::uint64_t id, int side) { return 2 * id + static_cast<std::uint64_t>(side); }
  // Calls `work` on the process at `host` if it still has this life; later if it is paused.
  void run_on(std::size_t host, std::uint64_t life, std::function<void()> work);
  void deliver(std::uint64_t id, Message message);
  void set_off(std::uint64_t id, Connection& connection, Message message);
  void arrive(std::uint64_t id, Message message);
  void take(std::uint64_t id, const Message& message);
  void release(std::uint64_t id, int side);
  void break_connection(std::uint64_t id, int told);
  void tell_broken(std::uint64_t id, int side);
  void forget_if_over(std::uint64_t id);
  void heal(std::uint64_t partition);
  void let_through(std::uint64_t id, Connection& connection);

  World& world_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::string, std::size_t> numbers_;
  std::map<std::uint64_t, Connection> connections_;  // those with a side that isn't closed
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::vector<std::pair<std::size_t, std::size_t>>> partitions_;
  std::uint64_t last_partition_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, int> blocked_;  // from, to: by how many partitions
  std::optional<Trap> trap_;
};

}  // namespace disttrain::sim
