// A thread that creates and writes the checkpoint files of one job's shards on this process. It works on one checkpoint
// attempt at a time. No event loop ever waits for this thread or for its disk, so a file system that hangs holds only
// the job that uses it.
//
// Make all calls on the main loop; the callbacks run there too. The callback of a cancelled call still runs and gets
// kTemporary.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/checkpoint/shard_file.h"
#include "common/messages/checkpoint.h"
#include "common/result.h"
#include "common/time.h"
#include "shards/shard_job.h"
#include "shards/store/shard_store.h"

namespace disttrain::shards {

struct WrittenShard {
  FileEntry file;
  Duration took{};  // time from the call of write() until the file is synced
};

class CheckpointWriter {
 public:
  // `post` runs a task on the main loop, or drops the task if the main loop has ended. `files` must outlive the writer.
  CheckpointWriter(checkpoint::Files& files, std::function<void(std::function<void()>)> post);
  // Closes the writer, and waits until the disk operation that the thread is doing has ended.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  // True while a file is being created or written.
  bool is_busy() const { return *pending_ > 0; }

  // Creates the shards' files in `folder` and reserves disk space for them. First cancels the earlier attempt.
  void prepare(ShardJobPtr job, std::uint64_t attempt, const std::string& folder, std::vector<ShardId> shards,
               std::function<void(Status)> done);
  // Writes a copy of the shard to the file that prepare() made, then syncs the file and its folder.
  void write(std::uint64_t attempt, ShardId shard, std::shared_ptr<const ShardCopy> copy,
             std::function<void(Result<WrittenShard>)> done);
  // Cancels the running prepare() and write() calls: each soon ends with an error. Also closes the attempt's files,
  // because an open file keeps its disk space even after the file is deleted.
  void cancel();
  // Cancels all calls, and ends the thread after the disk operation that it is doing. REQUIRES: no further call of
  // prepare() or write().
  void close();
  // True once the thread has ended, so that the destructor doesn't wait.
  bool is_over() const { return is_over_; }
  // Number of pieces that were written to files so far. It only grows, and heartbeats report it as progress. Any thread
  // may call this.
  std::uint64_t pieces() const { return pieces_.load(std::memory_order_relaxed); }

 private:
  struct Attempt {
    ShardJobPtr job;  // keeps the job alive, because the writers in `shards` refer to its layout
    std::uint64_t number = 0;
    std::string folder;
    std::map<ShardId, checkpoint::ShardWriter> shards;
  };

  Status do_prepare(ShardJobPtr job, std::uint64_t ticket, const std::string& folder,
                    const std::vector<ShardId>& shards);
  Result<FileEntry> do_write(std::uint64_t ticket, ShardId shard, const ShardCopy& copy);
  void do_cancel(std::uint64_t ticket);

  checkpoint::Files& files_;
  const std::function<void(std::function<void()>)> post_;

  // Owned by the main loop.
  // The calls that aren't answered. The answers share it, because they may come after the writer's end.
  const std::shared_ptr<int> pending_ = std::make_shared<int>(0);
  // The newest attempt. The writer counts attempts itself, because the chief counts from 1 again in each generation.
  std::uint64_t last_attempt_ = 0;
  std::uint64_t last_number_ = 0;  // the number that the chief gave to the newest attempt

  std::atomic<std::uint64_t> cancelled_{0};  // attempts up to this number (counted by last_attempt_) are cancelled
  std::atomic<std::uint64_t> pieces_{0};
  std::atomic<bool> is_over_ = false;

  // Owned by the thread.
  Attempt attempt_;
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last
};

}  // namespace disttrain::shards
