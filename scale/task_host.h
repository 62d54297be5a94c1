// What a ps and a worker have in common: the connection to the chief, with hello and heartbeats.
#pragma once

#include "common/timeouts.h"
#include "scale/surroundings.h"
#include "transport/wire/codec.h"

namespace disttrain::scale {

class TaskHost {
 public:
  TaskHost(Surroundings& around, Member self)
      : around_(around), self_(self), host_(around.network.add_host(self.task)) {}
  virtual ~TaskHost() = default;
  TaskHost(const TaskHost&) = delete;

  const Member& self() const { return self_; }
  HostId host() const { return host_; }
  // Connects to the chief after `delay`.
  void start(Duration delay);

  // What the chief sends.
  void on_welcome(const Welcome& welcome);
  void on_message(const wire::ControlMessage& message);

 protected:
  virtual TaskHello make_hello() const = 0;
  virtual Heartbeat make_heartbeat() = 0;
  virtual void on_order(const wire::ControlMessage& message) = 0;

  void tell_chief(const wire::ControlMessage& message);
  const Timeouts& timeouts() const { return timeouts_; }
  Instant now() const { return around_.queue.now(); }

  Surroundings& around_;
  const Member self_;
  const HostId host_;

 private:
  void beat();

  Timeouts timeouts_{};
};

}  // namespace disttrain::scale
