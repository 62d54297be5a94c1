// Simulated processes and the connections between them. A connection keeps the order of its messages, has latency, and
// can break. At an address there may be no process, or another process than before. As with TCP:
// 1. If a connection breaks, messages on their way may arrive or be lost.
// 2. Such a message may arrive even when the same two processes already have a newer connection.
// 3. A hello may arrive although its sender gets no answer.
#pragma once

#include <algorithm>
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

// Frames that carry gradients or parameters, with their values.
struct PushFrame {
  Sequence sequence;
  Push push;
  std::vector<float> payload;
  // Not null: the payload is in memory that the worker shares with the ps. `payload` has the same values.
  std::shared_ptr<std::vector<float>> lent;
  double records = 0.0;  // used only by the laws: sum of value_of() over the records of the gradient
};
// What a worker does with memory that it has lent, once it may.
inline void scribble(std::vector<float>& memory) {
  std::ranges::fill(memory, 1e20F);
}
struct ParametersFrame {
  Parameters parameters;
  std::vector<float> payload;
};
using Payload = std::variant<wire::HelloAnswer, wire::ControlMessage, PushFrame, Pull, ParametersFrame, Acknowledge,
                             Staged, Commit, PacerNews, Mark, MarkTaken, Cut>;

// Identifies one end of a connection. Both ends may belong to the same process, so they have different numbers.
using ConnectionId = std::uint64_t;

class Network;

// One process. If the process crashes, this object is destroyed. Messages and timers that are still due for it are
// dropped.
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
  // Returns true if the process accepts connections.
  virtual bool listens() const { return true; }
  // The address at which the process listens.
  const std::string& address() const;
  // Moves the clock of the process forward, as if its host had been suspended. Timers don't change.
  void jump(Duration by) { skew_ += by; }

 protected:
  // The time that the clock of this process shows.
  Instant now() const { return world_.now() + skew_; }
  // Runs `work` on this process after `delay`. If the process is paused then, `work` runs later; if the process has
  // died, never.
  void after(Duration delay, std::function<void()> work);
  void dial(const std::string& address, const Hello& hello, Duration deadline,
            std::function<void(std::optional<ConnectionId>, bool refused)> done);
  void send(ConnectionId connection, Payload payload);
  void close(ConnectionId connection);
  // Returns true if a message that the other end sent now would arrive soon. A real shard hears its peers all the time,
  // because they send something often. A simulated process calls this function instead.
  bool hears(ConnectionId connection) const;
  // Ends the process after the current call has returned.
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

  // The shortest and the longest latency of a message.
  Duration shortest = std::chrono::microseconds(20);
  Duration longest = std::chrono::microseconds(500);
  // Of 1000 broken connections, how many break late for one side: this side gets its last messages, and learns of the
  // break, when the other side may already have a new connection.
  std::uint64_t late_breaks = 0;
  // Of 1000 hellos that arrive, how many get no answer.
  std::uint64_t ghosts = 0;
  // If true, the real codec encodes and decodes every message.
  bool through_codec = false;
  // Called when the codec can't encode or decode a message.
  std::function<void(const std::string& problem)> on_bad_message;

  // Called when a process breaks a law.
  std::function<void(const std::string& law)> on_violation;
  // The tasks that faults have hit. The network adds the tasks that its own faults hit, and the simulation adds the
  // others.
  Harm harm;
  // Redirects dials: a dial to the first address reaches the process at the second.
  std::map<std::string, std::string> taken_over;

  // Starts a process at this address. A former process there must have crashed before.
  void start(const std::string& address, std::unique_ptr<Node> node);
  // Kills the process. Its peers get a reset at once. If the host vanishes too, they notice this only after 20 s.
  void crash(const std::string& address, bool with_host);
  // Gives a live process the address `to`; its connections stay open. A later dial to `from` reaches the process that
  // is started there next.
  void rename(const std::string& from, const std::string& to);
  bool is_alive(const std::string& address) { return host(address).node != nullptr; }
  bool is_paused(const std::string& address) { return host(address).paused; }
  Node* at(const std::string& address) { return host(address).node.get(); }
  void pause(const std::string& address);
  void resume(const std::string& address);
  // Blocks the direction from the first to the second address of each pair: messages are held back until the partition
  // heals, after `heals_after`.
  using Links = std::vector<std::pair<std::string, std::string>>;
  void part(const Links& links, Duration heals_after);
  void heal_all();
  // Resets one open connection, which is drawn at random.
  void cut_one();
  // Lets the given number of messages to `address` pass. Then calls `work` once, right before or right after the next
  // message is handled.
  void trap(const std::string& address, std::uint64_t messages, bool before, std::function<void()> work);
  void disarm() { trap_.reset(); }
  // Ends the process, as if it had exited by itself, and calls on_exit.
  void exit(const std::string& address);
  std::function<void(const std::string& address)> on_exit;

 private:
  friend class Node;
  struct Host {
    std::string address;
    std::unique_ptr<Node> node;
    std::uint64_t life = 0;  // grows with each start and each crash, so each new process here has a new number
    bool paused = false;
    bool host_down = false;
    std::deque<std::pair<std::uint64_t, std::function<void()>>> waiting;  // while paused
  };
  struct Message {
    int to = 0;
    std::function<void(Node&)> call;
    bool is_close = false;
  };
  struct Side {
    std::size_t host = 0;
    std::uint64_t life = 0;
    bool closed = false;                // the process gets no more calls for this side
    bool stalled = false;               // arriving messages wait
    std::vector<Message> arrived = {};  // these messages, in their order
    Instant last = {};                  // when the newest message to this side arrives
  };
  struct Connection {
    Side sides[2];
    std::deque<Message> held;  // messages that wait because a link is blocked
    bool broken = false;
    bool loses = false;  // messages that were on their way when it broke are lost
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
  // The two ends of connection `id` have the numbers 2 id and 2 id + 1.
  static ConnectionId end_of(std::uint64_t id, int side) { return 2 * id + static_cast<std::uint64_t>(side); }
  // Calls `work` on the process at `host`, if this process still has the number `life`. If the process is paused, the
  // call comes later.
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
  std::map<std::uint64_t, Connection> connections_;  // the connections that at least one side hasn't closed yet
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::vector<std::pair<std::size_t, std::size_t>>> partitions_;
  std::uint64_t last_partition_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, int> blocked_;  // key: from, to; value: how many partitions block it
  std::optional<Trap> trap_;
};

}  // namespace disttrain::sim
