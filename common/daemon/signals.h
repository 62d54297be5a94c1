// Signals as events of a loop: none of our code runs in a signal handler.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <functional>

namespace disttrain::daemon {

// Makes a write to a closed socket or past the file size limit an error of that write, not the end of the process. Call
// at the start of main.
void ignore_write_signals();

// Reports each TERM and INT: the first asks for an end in good order, the second for an end at once. Belongs to the
// loop.
class StopSignals {
 public:
  StopSignals(asio::io_context& loop, std::function<void(int signal)> on_signal);

 private:
  void wait();

  asio::signal_set signals_;
  std::function<void(int)> on_signal_;
};

}  // namespace disttrain::daemon
