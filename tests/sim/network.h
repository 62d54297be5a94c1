// Processes and what goes between them: connections that keep order, take time, and break; addresses at which nobody or
// somebody else may live by now. Like tcp: what was sent to a connection that breaks may or may not have arrived, or
// arrives when a newer connection of the same two is long open; a hello may arrive of which the dialler hears nothing.
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

// Frames, as values.
struct PushFrame {
  Sequence sequence;
  Push push;
  std::vector<float> payload;
  double records = 0.0;  // the sum of value_of() of the records that the gradient is of; no process looks at it
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
  // Where it listens.
  const std::string& address() const;
  // Its clock shows so much more, as after a suspend that its timers don't know of.
  void jump(Duration by) { skew_ += by; }

 protected:
  // What its own clock shows.
  Instant now() const { return world_.now() + skew_; }
  // Runs on this process: not if it has died, later if it is paused.
  void after(Duration delay, std::function<void()> work);
  void dial(const std::string& address, const Hello& hello, Duration deadline,
            std::function<void(std::optional<ConnectionId>, bool refused)> done);
  void send(ConnectionId connection, Payload payload);
  void close(ConnectionId connection);
  // What the other end sends now comes in time. Stands for its sending something all the time, as shards do.
  bool hears(ConnectionId connection) const;
  // The process ends, not within what is being done.
  void exit();
  void tell(const std::string& line) { world_.tell(to_string(self_.task) + " " + line); }

  World& world_;
  Network& network_;
  Member self_;

 private:
  friend class Network;
  std::size_t host_ = 0;  // Network's
  Duration skew_{};
};

class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  // Latency of everything.
  Duration shortest = std::chrono::microseconds(20);
  Duration longest = std::chrono::microseconds(500);
  // Of a thousand connections that break, so many are late: one side hears of it, and of what was under way to it, when
  // the other may have a new connection.
  std::uint64_t late_breaks = 0;
  // Of a thousand hellos that arrive, so many are lost on the way back: the dialler hears nothing.
  std::uint64_t ghosts = 0;
  // Every message becomes bytes and a message again.
  bool through_codec = false;
  // Told of what the codec can't take.
  std::function<void(const std::string& problem)> on_bad_message;

  // A law was broken, as a task sees it.
  std::function<void(const std::string& law)> on_violation;
  // The tasks that faults have hit. The network notes its own faults here, and the simulation notes the others.
  Harm harm;
  // Maps an address to another one: a dial to the first reaches the process at the second.
  std::map<std::string, std::string> taken_over;

  // A process begins at this address, in place of a former one, which must have crashed.
  void start(const std::string& address, std::unique_ptr<Node> node);
  // Its connections are reset; or not at once, if the host goes with it.
  void crash(const std::string& address, bool with_host);
  // A process stays, with its connections, but who dials its address finds whoever begins there from now on.
  void rename(const std::string& from, const std::string& to);
  bool is_alive(const std::string& address) { return host(address).node != nullptr; }
  Node* at(const std::string& address) { return host(address).node.get(); }
  void pause(const std::string& address);
  void resume(const std::string& address);
  // What the first of each pair sends to the second waits. A partition heals by itself after so long.
  using Links = std::vector<std::pair<std::string, std::string>>;
  void part(const Links& links, Duration heals_after);
  void heal_all();
  // Some connection that is open, drawn; it is reset.
  void cut_one();
  // Calls `work`, once, right before or after the so manyth message from now arrives there.
  void trap(const std::string& address, std::uint64_t messages, bool before, std::function<void()> work);
  void disarm() { trap_.reset(); }
  // Its process ends by itself. Told to whoever may start it again.
  void exit(const std::string& address);
  std::function<void(const std::string& address)> on_exit;

 private:
  friend class Node;
  struct Host {
    std::string address;
    std::unique_ptr<Node> node;
    std::uint64_t life = 0;  // grows with each process
    bool paused = false;
    bool host_down = false;
    std::deque<std::pair<std::uint64_t, std::function<void()>>> waiting;  // while paused
  };
  struct Side {
    std::size_t host = 0;
    std::uint64_t life = 0;
    bool closed = false;   // no calls any more
    bool stalled = false;  // what comes waits
    Instant last;          // of the last delivery to this side
  };
  struct Message {
    int to = 0;
    std::function<void(Node&)> call;
    bool is_close = false;
  };
  struct Connection {
    Side sides[2];
    std::deque<Message> held;  // blocked or stalled
    bool broken = false;
    bool loses = false;  // what was under way when it broke
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
  // Calls it on the process that lives there with that life.
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
  std::map<std::uint64_t, Connection> connections_;  // that somebody may still hear of
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::vector<std::pair<std::size_t, std::size_t>>> partitions_;
  std::uint64_t last_partition_ = 0;
  std::map<std::pair<std::size_t, std::size_t>, int> blocked_;  // by how many partitions
  std::optional<Trap> trap_;
};

}  // namespace disttrain::sim
