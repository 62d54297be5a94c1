// A thread with its own loop and the shards that live on it: one shard of each job at most, and today one job. Other
// threads reach it only through run().
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/time.h"
#include "psd/shard_service.h"

namespace disttrain::psd {

class ShardThread {
 public:
  // By shard; only shards of the open job.
  using Services = std::map<ShardId, std::unique_ptr<ShardService>>;

  // cores: CPUs to run on; empty = the system's choice. tick: how often an idle thread shows that it is alive; any
  // thread may change it.
  ShardThread(std::uint32_t index, const std::vector<std::uint32_t>& cores, Duration tick,
              transport::Transport& transport, checkpoint::Files& files, daemon::Log& log,
              std::function<void(const ShardNews&)> upward);
  // Ends the shards, then the thread.
  ~ShardThread();
  ShardThread(const ShardThread&) = delete;

  // Any thread: runs `task(*this)` on this thread, after all earlier tasks.
  template <typename Task>
  void run(Task task) {
    asio::post(loop_, [this, work = std::move(task)]() mutable { work(*this); });
  }

  void set_tick(Duration tick) {
    run([tick](ShardThread& self) {
      self.tick_ = tick;
      self.tick_again();
    });
  }

  // Any thread. Stops growing when the thread hangs.
  std::uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }

  // On this thread.
  Services& services() { return services_; }
  const ShardPlace& place() const { return place_; }

 private:
  void tick_again();

  Duration tick_;  // used by the thread only
  std::atomic<std::uint64_t> turns_{0};
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer timer_;
  const ShardPlace place_;
  Services services_;
  std::thread thread_;
};

}  // namespace disttrain::psd
