// Turns signals into events of a loop. So none of this program's code runs in a signal handler, except for crashes.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <functional>

namespace disttrain::daemon {

// After this call, a write to a closed socket, or beyond the limit on a file's size, fails with an error instead of
// killing the process. Call it at the start of main.
void ignore_write_signals();

// Calls `on_signal` for each SIGTERM and SIGINT. The first signal asks for an orderly end, and the second for an
// immediate end. Belongs to the loop.
class StopSignals {
 public:
  StopSignals(asio::io_context& loop, std::function<void(int signal)> on_signal);

 private:
  void wait();

  asio::signal_set signals_;
  std::function<void(int)> on_signal_;
};

}  // namespace disttrain::daemon
