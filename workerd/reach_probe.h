// ReachProbe finds out which of several ps tasks answer a hello. If a ps answers, the link to it works in both
// directions. The probe dials all of them at the same time. It is used only on the thread of its loop.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "common/messages/control.h"
#include "common/messages/session.h"
#include "common/time.h"
#include "transport/connection.h"

namespace disttrain::workerd {

class ReachProbe {
 public:
  // Calls `done` once, at the latest after about `deadline`, with the targets that didn't answer. The call comes from
  // the loop, after the constructor has returned; `done` may destroy the probe. `loop` and `transport` must outlive the
  // probe.
  ReachProbe(asio::io_context& loop, transport::Transport& transport, const Hello& hello, std::vector<Owner> targets,
             Duration deadline, std::function<void(std::vector<Member>)> done);
  // Ends the probe. `done` isn't called afterwards.
  ~ReachProbe();

 private:
  class Target;

  void finish_one();

  asio::io_context& loop_;
  const std::function<void(std::vector<Member>)> done_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::size_t left_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with callbacks that may outlive the probe
};

}  // namespace disttrain::workerd
