// Runs a loop in a test until something has happened.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <functional>

namespace disttrain {

// Runs the loop until `done` returns true. Returns false if this takes more than a minute, which happens only if what
// the test waits for never comes.
inline bool run_until(asio::io_context& loop, const std::function<bool()>& done) {
  const auto guard = asio::make_work_guard(loop);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    loop.restart();
    loop.run_one_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace disttrain
