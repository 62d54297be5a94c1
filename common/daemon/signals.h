// Signals as events of a loop: no handler of ours runs inside a signal.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <functional>

namespace disttrain::daemon {

// A write to a closed socket, or beyond the limit of a file's size, is an error of that write, not the end of the
// process. Call at the start of main.
void ignore_write_signals();

// TERM and INT, each time one comes: the first asks for an end in good order, the second for one at once. Belongs to
// the loop.
class StopSignals {
 public:
  StopSignals(asio::io_context& loop, std::function<void(int signal)> on_signal);

 private:
  void wait();

  asio::signal_set signals_;
  std::function<void(int)> on_signal_;
};

}  // namespace disttrain::daemon
