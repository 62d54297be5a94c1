#include "scale/task_host.h"

#include "scale/chief_host.h"

namespace disttrain::scale {

void TaskHost::start(Duration delay) {
  around_.queue.after(delay, [this] {
    around_.network.connect(host_, around_.chief->host(), [this] {
      const TaskHello hello = make_hello();
      Hello sent;
      sent.cluster = around_.cluster.name;
      sent.who = hello;
      around_.network.send(host_, around_.chief->host(), Traffic::kControl, frame_bytes(sent),
                           [this, hello] { around_.chief->on_hello(*this, hello); });
    });
  });
}

void TaskHost::on_welcome(const Welcome& welcome) {
  timeouts_ = derive_timeouts(welcome.heartbeat_timeout);
  beat();
}

void TaskHost::on_message(const wire::ControlMessage& message) {
  if (const auto* answer = std::get_if<HeartbeatAnswer>(&message)) {
    timeouts_ = derive_timeouts(answer->heartbeat_timeout);
    timeouts_.heartbeat = answer->heartbeat_pause;
  } else {
    on_order(message);
  }
}

void TaskHost::beat() {
  tell_chief(make_heartbeat());
  around_.queue.after(timeouts_.heartbeat, [this] { beat(); });
}

void TaskHost::tell_chief(const wire::ControlMessage& message) {
  auto encoded = wire::encode(message);
  if (!encoded) return around_.fail(to_string(self_.task) + " can't send a message: " + encoded.error().message);
  const std::uint64_t bytes = wire::kHeaderBytes + encoded->bytes.size();
  around_.network.send(host_, around_.chief->host(), Traffic::kControl, bytes,
                       [this, encoded = std::move(*encoded)] { around_.chief->on_frame(self_, encoded); });
}

}  // namespace disttrain::scale
