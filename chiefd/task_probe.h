// Finds out whether a process lives at a task's address: it answers a hello, or nobody listens there. A dying process
// may lose its other connections before its port, and the kernel goes on to accept in its name: a connection that is
// accepted proves nothing, and one that ends without an answer is tried again at once.
//
// Belongs to the loop. Dropping it ends it, and nothing is called any more.
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
  // `done` is called once, from the loop, within `deadline`, and may drop the probe. `by`: who answered, as far as it
  // said. hello: encoded, of the prober.
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
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with what the loop still has of us
};

}  // namespace disttrain::chiefd
