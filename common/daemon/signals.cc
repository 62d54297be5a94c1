#include "common/daemon/signals.h"

#include <csignal>

namespace disttrain::daemon {

void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

StopSignals::StopSignals(asio::io_context& loop, std::function<void(int)> on_signal)
    : signals_(loop, SIGTERM, SIGINT), on_signal_(std::move(on_signal)) {
  wait();
}

void StopSignals::wait() {
  signals_.async_wait([this](const asio::error_code& error, int signal) {
    if (error) return;  // this object is destroyed
    wait();
    on_signal_(signal);  // call it last, because it may destroy this object
  });
}

}  // namespace disttrain::daemon
