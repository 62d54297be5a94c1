// Finds out whether a process lives at a task's address: it dials the address and says hello. Only two outcomes prove
// something: a process answers the hello, or nobody listens at the address. An accepted connection without an answer
// proves nothing.
//
// Example of a ps that is dying:
// 1. The kernel closes the connection of the ps to the chief, so the chief probes the address of the ps.
// 2. The port of the ps is still open, so the kernel accepts the probe's connection.
// 3. The kernel closes the port, and the connection ends without an answer. The probe dials again after 2 ms.
// 4. Nobody listens any more: the ps is dead.
//
// Only the chief's loop uses this class. The destructor ends the probe, and `done` isn't called after that.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chiefd/core/events.h"
#include "common/time.h"
#include "transport/connection.h"

namespace disttrain::chiefd {

class TaskProbe final : private transport::ConnectionHandler {
 public:
  // `hello` is the encoded hello that the probe sends. The loop calls `done` once, at the latest after `deadline`;
  // `done` may destroy the probe. The argument `by` of `done` is the process that answered, if the answer names one.
  TaskProbe(asio::io_context& loop, transport::Transport& transport, std::string address, std::vector<std::byte> hello,
            Duration deadline, std::function<void(ProbeOutcome, const Member& by)> done);
  ~TaskProbe() override;
  TaskProbe(const TaskProbe&) = delete;

 private:
  void dial();
  void dial_again();
  void finish(ProbeOutcome outcome, const Member& by = {});

  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, transport::Bytes control) override;
  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) override;
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error& why) override;

  // Constant.
  asio::io_context& loop_;
  transport::Transport& transport_;
  const std::string address_;
  const std::vector<std::byte> hello_;
  const Instant end_;
  const std::function<void(ProbeOutcome, const Member&)> done_;

  asio::steady_timer deadline_;
  asio::steady_timer pause_;
  std::unique_ptr<transport::Connection> connection_;
  // False once the probe is destroyed. Handlers that the loop still holds share this flag, and do nothing once it is
  // false.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace disttrain::chiefd
