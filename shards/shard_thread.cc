#include "shards/shard_thread.h"

#include "common/daemon/threads.h"
#include "transport/spin.h"

namespace disttrain::shards {

ShardThread::ShardThread(std::uint32_t index, const std::vector<std::uint32_t>& cores, Duration tick,
                         transport::Transport& transport, checkpoint::Files& files, daemon::Log& log,
                         std::function<void(const ShardNews&)> upward)
    : tick_(tick), work_(asio::make_work_guard(loop_)), timer_(loop_), place_{loop_, transport, files,
                                                                              log,   turns_,    std::move(upward)} {
  thread_ = std::thread([this, index, cores, &log] {
    daemon::name_thread("shard-" + std::to_string(index));
    if (const Status pinned = daemon::pin_thread(cores); !pinned) log.warn(pinned.error().message);
    tick_again();
    transport::Spinner spinner;
    while (!loop_.stopped()) spinner.run_one(loop_);
  });
}

ShardThread::~ShardThread() {
  asio::post(loop_, [this] {
    services_.clear();
    timer_.cancel();
    work_.reset();
    loop_.stop();
  });
  thread_.join();
}

void ShardThread::tick_again() {
  turns_.fetch_add(1, std::memory_order_relaxed);
  timer_.expires_after(tick_);
  timer_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) tick_again();
  });
}

}  // namespace disttrain::shards
