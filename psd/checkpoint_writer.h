// The thread that creates and writes the checkpoint files of all shards of this ps, for one attempt at a time. No loop
// ever waits for this thread or for its disk.
//
// Make all calls on the main loop; the callbacks run there too. A cancelled call still gets its callback, with
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
#include "psd/shard_job.h"
#include "psd/store/shard_store.h"

namespace disttrain::psd {

struct WrittenShard {
  FileEntry file;
  Duration took{};  // from the call until the file is synced
};

class CheckpointWriter {
 public:
  // `post` runs a task on the main loop, unless that has ended. `files` outlives the writer.
  CheckpointWriter(checkpoint::Files& files, std::function<void(std::function<void()>)> post);
  // Waits for the disk operation that is under way.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  // A file is being created or written.
  bool is_busy() const { return pending_ > 0; }

  // Creates the shards' files in `folder` and reserves their space. Drops the files of an earlier attempt.
  void prepare(ShardJobPtr job, std::uint64_t attempt, const std::string& folder, std::vector<ShardId> shards,
               std::function<void(Status)> done);
  // Writes a shard's prepared file, then syncs the file and its folder.
  void write(std::uint64_t attempt, ShardId shard, std::shared_ptr<const ShardCopy> copy,
             std::function<void(Result<WrittenShard>)> done);
  // Ends what is under way soon, with an error, and closes the files: an open file keeps its disk space reserved even
  // after its name is removed.
  void cancel();
  // Grows while files are being written. Any thread.
  std::uint64_t pieces() const { return pieces_.load(std::memory_order_relaxed); }

 private:
  struct Attempt {
    ShardJobPtr job;  // the writers keep references to its layout
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
  int pending_ = 0;
  std::uint64_t last_attempt_ = 0;  // counted here, because the chief's attempt numbers restart with each generation
  std::uint64_t last_number_ = 0;   // the chief's number of last_attempt_

  std::atomic<std::uint64_t> cancelled_{0};  // this attempt and all earlier ones
  std::atomic<std::uint64_t> pieces_{0};

  // Owned by the thread.
  Attempt attempt_;
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last
};

}  // namespace disttrain::psd
