// A thread with its own loop, and the shards that live on it. Normally it has one shard, because the chief gives a ps
// no more shards of a job than the process has threads. Other threads reach the shards only through run().
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
#include "shards/shard_service.h"

namespace disttrain::shards {

class ShardThread {
 public:
  // The shards on this thread, by shard number. They all belong to the open job.
  using Services = std::map<ShardId, std::unique_ptr<ShardService>>;

  // `cores`: the CPUs on which the thread may run; empty: all. `tick`: how often an idle thread increments turns(), to
  // show that it is alive; set_tick() changes it.
  ShardThread(std::uint32_t index, const std::vector<std::uint32_t>& cores, Duration tick,
              transport::Transport& transport, checkpoint::Files& files, daemon::Log& log,
              std::function<void(const ShardNews&)> upward);
  // Ends the shards, then the thread.
  ~ShardThread();
  ShardThread(const ShardThread&) = delete;

  // Runs `task(*this)` on this thread, after all earlier tasks. Any thread may call this.
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

  // A count that grows while the thread is alive; it stops growing if the thread hangs. Any thread may call this.
  std::uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }

  // On this thread.
  Services& services() { return services_; }
  const ShardPlace& place() const { return place_; }

 private:
  void tick_again();

  Duration tick_;  // only the thread itself uses it
  std::atomic<std::uint64_t> turns_{0};
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer timer_;
  const ShardPlace place_;
  Services services_;
  std::thread thread_;
};

}  // namespace disttrain::shards
