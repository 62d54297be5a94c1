// A worker of `disttrain bench ps`: a thread that exchanges gradients and parameters with the shards, through the same
// code as a real worker (workerd/exchange), but computes nothing.
#pragma once

#include <sys/types.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/os/arena.h"
#include "common/result.h"
#include "common/time.h"
#include "tools/disttrain/bench/ps_cluster.h"
#include "transport/connection.h"
#include "workerd/exchange/ps_exchange.h"

namespace disttrain::cli {

enum class Exchanged : std::uint8_t {
  kPush,      // push all gradients and wait until every shard has applied them
  kPull,      // ask for all parameters and wait for them
  kPushPull,  // push all gradients and get the new parameters. The next step's frames follow at once
};

class BenchWorker final : private workerd::ExchangeHandler {
 public:
  // `on_done` gets the result of open() or run(): the time that the steps took. The worker calls it on its own thread.
  using OnDone = std::function<void(Result<Duration>)>;

  // `shards` and `transport` must outlive the worker. `cores`: those on which the thread may run; empty: all.
  BenchWorker(transport::Transport& transport, const ClusterConfig& cluster, const OpenShards& shards, Member self,
              const std::vector<std::uint32_t>& cores, OnDone on_done);
  // Closes the channels.
  ~BenchWorker() override;
  BenchWorker(const BenchWorker&) = delete;

  // One call at a time. open() must be the first one.
  void open();
  void run(Exchanged what, std::uint64_t steps);

  pid_t thread_id() const { return thread_id_; }  // 0 until open() is done

 private:
  // What the worker knows of one shard.
  struct Channel {
    std::vector<BucketId> buckets;
    std::uint64_t sent = 0;  // the last sequence
    std::uint64_t acknowledged = 0;
    std::uint64_t answered = 0;  // number of push frames whose parameters have come
    std::uint64_t goal = 0;      // of `sent`, at the end of this step or, with kPushPull, of all steps
    bool is_pulled = false;      // the parameters of the last pull are complete
  };

  void begin_step();
  void send_frames(ShardId shard);
  void send_frame(ShardId shard, Channel& channel);
  bool is_step_done() const;
  void after_answer();
  void end(Result<Duration> result);

  // ExchangeHandler
  void on_channel_opened(ShardId shard, Sequence last) override;
  void on_channel_lost(ShardId shard, const std::string& reason, Duration lasts) override;
  void on_unreachable(ShardId shard, const std::string& reason, Duration lasts) override;
  void on_reached(ShardId) override {}
  void on_refused(const Error& why) override;
  void on_parameters(ShardId shard, const Parameters& parameters) override;
  void on_acknowledge(ShardId shard, const Acknowledge& acknowledge) override;
  void on_mark_taken(ShardId, const MarkTaken&) override {}
  std::span<float> landing() override { return parameters_.floats(); }

  // Constant.
  const OpenShards& shards_;
  const std::uint64_t credits_;
  const OnDone on_done_;
  pid_t thread_id_ = 0;

  // Owned by the thread.
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Arena arena_;  // shared if a ps of this host may use it in place
  Memory parameters_;
  Memory gradients_;
  std::unique_ptr<workerd::PsExchange> exchange_;
  std::vector<Channel> channels_;  // by shard
  std::size_t open_channels_ = 0;
  bool is_busy_ = false;
  Exchanged what_ = Exchanged::kPush;
  std::uint64_t steps_left_ = 0;
  std::uint64_t pulls_ = 0;
  Instant began_;

  std::thread thread_;
};

}  // namespace disttrain::cli
