// Counts Ctrl-C and TERM, so that a verb can check for them between two steps.
#pragma once

#include <asio/io_context.hpp>

#include "common/daemon/signals.h"

namespace disttrain::cli {

class Interrupts {
 public:
  explicit Interrupts(asio::io_context& loop) : signals_(loop, [this](int signal) { on(signal); }) {}

  int count() const { return count_; }
  // 128 + the first signal: 130 for Ctrl-C. 0 before any.
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
