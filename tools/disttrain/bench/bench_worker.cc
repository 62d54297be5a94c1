#include "tools/disttrain/bench/bench_worker.h"

#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "common/daemon/clock.h"
#include "common/daemon/threads.h"
#include "transport/spin.h"

namespace disttrain::cli {

BenchWorker::BenchWorker(transport::Transport& transport, const ClusterConfig& cluster, const OpenShards& shards,
                         Member self, const std::vector<std::uint32_t>& cores, OnDone on_done)
    : shards_(shards),
      credits_(cluster.transport.credits),
      on_done_(std::move(on_done)),
      work_(asio::make_work_guard(loop_)),
      arena_(&transport.for_steps() == &transport ? ArenaKind::kPrivate : ArenaKind::kShared),
      parameters_(arena_, word_count(shards.layout.model) * sizeof(float), Paging::kTouched),
      gradients_(arena_, word_count(shards.layout.model) * sizeof(float), Paging::kTouched) {
  workerd::PsExchangeOptions options;
  options.cluster = cluster.name;
  options.cluster_hash = cluster.hash;
  options.job = shards.job;
  options.generation = shards.generation;
  options.token = shards.token;
  options.self = self;
  options.owners = shards.owners;
  options.timeouts = derive_timeouts(std::chrono::seconds(5));
  if (arena_.kind() == ArenaKind::kShared) options.arena = &arena_;
  std::fill(gradients_.floats().begin(), gradients_.floats().end(), 1e-3F);
  for (std::uint32_t shard = 0; shard < shards.layout.shards; ++shard)
    channels_.push_back(Channel{buckets_of(shards.layout, ShardId(shard))});
  exchange_ = std::make_unique<workerd::PsExchange>(loop_, transport, shards.layout, std::move(options),
                                                    static_cast<workerd::ExchangeHandler&>(*this));
  thread_ = std::thread([this, self, cores] {
    daemon::name_thread("worker-" + std::to_string(self.task.index));
    // If it fails, the thread runs on any core, as without `cores`.
    static_cast<void>(daemon::pin_thread(cores));
    thread_id_ = ::gettid();
    transport::Spinner spinner;
    while (!loop_.stopped()) spinner.run_one(loop_);
  });
}

BenchWorker::~BenchWorker() {
  asio::post(loop_, [this] {
    exchange_.reset();
    work_.reset();
    loop_.stop();
  });
  thread_.join();
}

void BenchWorker::open() {
  asio::post(loop_, [this] {
    is_busy_ = true;
    began_ = daemon::now();
    exchange_->open(shards_.roster);
  });
}

void BenchWorker::run(Exchanged what, std::uint64_t steps) {
  asio::post(loop_, [this, what, steps] {
    is_busy_ = true;
    what_ = what;
    steps_left_ = steps;
    began_ = daemon::now();
    begin_step();
  });
}

void BenchWorker::begin_step() {
  if (what_ == Exchanged::kPull) {
    ++pulls_;
    for (std::uint32_t shard = 0; shard < channels_.size(); ++shard) {
      channels_[shard].is_pulled = false;
      exchange_->pull(workerd::SendPull{ShardId(shard), Pull{pulls_}});
    }
    return;
  }
  // The steps of kPushPull are one stream of frames. So all of them begin here.
  const std::uint64_t steps = what_ == Exchanged::kPushPull ? steps_left_ : 1;
  for (Channel& channel : channels_) channel.goal = channel.sent + steps * channel.buckets.size();
  for (std::uint32_t shard = 0; shard < channels_.size(); ++shard) send_frames(ShardId(shard));
}

void BenchWorker::send_frames(ShardId shard) {
  Channel& channel = channels_[shard.value];
  while (channel.sent < channel.goal && channel.sent - channel.acknowledged < credits_) send_frame(shard, channel);
}

void BenchWorker::send_frame(ShardId shard, Channel& channel) {
  const std::uint64_t frames = channel.buckets.size();
  const std::uint64_t at = channel.sent % frames;
  workerd::SendPush send;
  send.shard = shard;
  send.sequence = Sequence(++channel.sent);
  send.push.bucket = channel.buckets[at];
  send.push.clock = Step((channel.sent - 1) / frames + 1);
  send.push.want = what_ == Exchanged::kPushPull ? Want::kBucket : Want::kNothing;
  send.push.last = at + 1 == frames;
  send.push.examples = 1;
  send.push.loss = 0.0F;
  exchange_->push(send, gradients_.floats());
}

bool BenchWorker::is_step_done() const {
  return std::all_of(channels_.begin(), channels_.end(), [this](const Channel& channel) {
    if (what_ == Exchanged::kPull) return channel.is_pulled;
    return channel.acknowledged == channel.goal && (what_ == Exchanged::kPush || channel.answered == channel.goal);
  });
}

void BenchWorker::after_answer() {
  if (!is_busy_ || !is_step_done()) return;
  if (what_ != Exchanged::kPushPull && --steps_left_ > 0) return begin_step();
  end(daemon::now() - began_);
}

void BenchWorker::end(Result<Duration> result) {
  if (std::exchange(is_busy_, false)) on_done_(std::move(result));
}

void BenchWorker::on_channel_opened(ShardId, Sequence) {
  if (++open_channels_ == channels_.size()) end(daemon::now() - began_);
}

void BenchWorker::on_channel_lost(ShardId, const std::string& reason, Duration) {
  end(fail(ErrorCode::kUnavailable, reason));
}

void BenchWorker::on_unreachable(ShardId, const std::string& reason, Duration) {
  end(fail(ErrorCode::kUnavailable, reason));
}

void BenchWorker::on_refused(const Error& why) {
  end(tl::unexpected<Error>(why));
}

void BenchWorker::on_parameters(ShardId shard, const Parameters& parameters) {
  Channel& channel = channels_[shard.value];
  channel.acknowledged = std::max(channel.acknowledged, parameters.acknowledged.value);
  if (what_ == Exchanged::kPull)
    channel.is_pulled = channel.is_pulled || (parameters.last && parameters.pull_id == pulls_);
  else
    channel.answered = std::max(channel.answered, parameters.acknowledged.value);
  if (is_busy_) send_frames(shard);
  after_answer();
}

void BenchWorker::on_acknowledge(ShardId shard, const Acknowledge& acknowledge) {
  Channel& channel = channels_[shard.value];
  channel.acknowledged = std::max(channel.acknowledged, acknowledge.acknowledged.value);
  // The shard sends no parameters after a push of kPush. So these frames count as answered.
  if (what_ == Exchanged::kPush) channel.answered = channel.acknowledged;
  if (is_busy_) send_frames(shard);
  after_answer();
}

}  // namespace disttrain::cli
