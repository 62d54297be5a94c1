// Counts SIGINT (Ctrl-C) and SIGTERM, so that a verb can check for them while it works.
#pragma once

#include <asio/io_context.hpp>

#include "common/daemon/signals.h"

namespace disttrain::cli {

class Interrupts {
 public:
  explicit Interrupts(asio::io_context& loop) : signals_(loop, [this](int signal) { on(signal); }) {}

  int count() const { return count_; }
  // Returns 128 + the first signal, such as 130 for Ctrl-C. 0: no signal came yet.
  int exit_code() const { return first_ == 0 ? 0 : 128 + first_; }

 private:
  void on(int signal) {
    if (count_++ == 0) first_ = signal;
  }

  int count_ = 0;
  int first_ = 0;
  daemon::StopSignals signals_;
};

}  // namespace disttrain::cli
