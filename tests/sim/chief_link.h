// A task's link to its chief. It does on the simulated network what transport/chief_link.cc does on the real one.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "common/timeouts.h"
#include "tests/sim/network.h"
#include "transport/obedience.h"

namespace disttrain::sim {

class TaskNode : public Node {
 public:
  TaskNode(World& world, Network& network, Member self, std::string chief, Duration heartbeat)
      : Node(world, network, self.task, self.incarnation),
        process_(self.incarnation),
        chief_(std::move(chief)),
        timeouts_(derive_timeouts(heartbeat)) {}

  // Does what a task does on SIGTERM: asks the chief for leave. `gone` ends the process. It is called as soon as the
  // chief grants the request, the link is lost, or the time limit for leaving has passed.
  void leave(std::function<void()> gone);

 protected:
  virtual Hello make_hello() = 0;
  virtual void on_welcome() = 0;
  virtual void on_away() {}
  virtual void on_other_journal() = 0;
  virtual void on_order(const wire::ControlMessage& message) = 0;
  virtual Heartbeat make_heartbeat() = 0;
  virtual void before_heartbeat() {}  // called before the regular heartbeats, but not before extra ones

  void open_link() {
    dial_chief();
    beat();
  }
  // Answers a probe: names the process that lives at this address.
  void answer_probe(ConnectionId connection) {
    send(connection, wire::HelloAnswer(Refused{ErrorCode::kConfig, "a probe", false, self()}));
    close(connection);
  }
  void tell_chief(wire::ControlMessage message);
  // Draws another incarnation and says hello with it.
  void rejoin();
  bool is_link(ConnectionId connection) const { return connection == link_; }
  void on_link_message(const Payload& payload);
  void on_link_closed() { link_lost(); }
  // The fields that ps tasks and workers have in common in a hello: the process, and the chief that it obeys.
  TaskHello task_hello() const;
  const Timeouts& timeouts() const { return timeouts_; }

 private:
  void dial_chief();
  void redial_chief();
  void link_lost();
  void refused(const Refused& why);
  void note_obeyed(const Welcome& welcome);
  void end();
  void beat();

  const Incarnation process_;
  const std::string chief_;
  Timeouts timeouts_;
  std::function<void()> gone_;  // not empty once the task was told to end
  ConnectionId link_ = 0;
  bool open_ = false;
  std::uint64_t attempt_ = 0;
  Duration pause_{};
  Instant heard_;
  transport::Obedience obedience_;
  std::map<JournalId, std::map<Term, Incarnation>> obeyed_;
  std::deque<wire::ControlMessage> waiting_;
};

}  // namespace disttrain::sim
