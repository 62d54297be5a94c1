// The thread that makes and writes the files of a checkpoint for all shards of this ps. One attempt at a time; no loop
// ever waits for it or for its disk.
//
// All calls on the main loop, where the answers come too. A call that is cancelled is still answered, with an error
// (kTemporary).
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
  Duration took{};  // from the call to the synced file
};

class CheckpointWriter {
 public:
  // `post` runs a task on the main loop, unless that has ended. `files` outlives the writer.
  CheckpointWriter(checkpoint::Files& files, std::function<void(std::function<void()>)> post);
  // Waits for what the disk is doing at this moment.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  // Something is being made or written.
  bool is_busy() const { return pending_ > 0; }

  // Makes the shards' files in `folder`, with room for all that will be in them. Gives up those of an earlier attempt.
  void prepare(ShardJobPtr job, std::uint64_t attempt, const std::string& folder, std::vector<ShardId> shards,
               std::function<void(Status)> done);
  // The file of a shard that was prepared, and syncs it and its folder.
  void write(std::uint64_t attempt, ShardId shard, std::shared_ptr<const ShardCopy> copy,
             std::function<void(Result<WrittenShard>)> done);
  // Whatever is under way ends soon, with an error, and the files are let go: what an open file has reserved stays
  // taken on the disk, whoever removes its name.
  void cancel();
  // Grows while files are being written. Any thread.
  std::uint64_t pieces() const { return pieces_.load(std::memory_order_relaxed); }

 private:
  struct Attempt {
    ShardJobPtr job;  // the layout that the writers refer to
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

  // The main loop's own.
  int pending_ = 0;
  std::uint64_t last_attempt_ = 0;  // counted here: numbers of the chief begin anew with a generation
  std::uint64_t last_number_ = 0;   // the chief's, of last_attempt_

  std::atomic<std::uint64_t> cancelled_{0};  // this attempt and all before it
  std::atomic<std::uint64_t> pieces_{0};

  // The thread's own.
  Attempt attempt_;
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last
};

}  // namespace disttrain::psd
