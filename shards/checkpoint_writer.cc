// A shard's file has the layout of the copy in memory: its header is padded to a whole page, and its arrays follow each
// other as in the copy. So the writer writes it from the copy, past the page cache. This takes half as much CPU time
// from the training as a write through a buffer.
#include "shards/checkpoint_writer.h"

#include <time.h>

#include <algorithm>
#include <asio/post.hpp>

#include "common/daemon/clock.h"
#include "common/daemon/threads.h"
#include "common/update/update_rule.h"
#include "shards/store/nonfinite.h"

namespace disttrain::shards {
namespace {

Duration cpu_time_of_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// Limits the thread to a fifteenth of a CPU. With this limit, training on a host with two CPUs keeps nine tenths of its
// speed while a checkpoint is written (measured: docs/benchmarks.md). Only the thread's CPU time counts, because a
// thread that waits for a slow disk doesn't slow training down.
class Pace {
 public:
  void rest() const {
    constexpr int kShare = 15;
    // The longest sleep; short, so that a cancelled writer ends soon.
    constexpr Duration kLongest = std::chrono::milliseconds(50);
    const Duration due = (cpu_time_of_thread() - cpu_at_begin_) * kShare - (daemon::now() - begin_);
    if (due > Duration::zero()) std::this_thread::sleep_for(std::min(due, kLongest));
  }

 private:
  const Instant begin_ = daemon::now();
  const Duration cpu_at_begin_ = cpu_time_of_thread();
};

}  // namespace

CheckpointWriter::CheckpointWriter(checkpoint::Files& files, std::function<void(std::function<void()>)> post)
    : files_(files), post_(std::move(post)), work_(asio::make_work_guard(loop_)) {
  thread_ = std::thread([this] {
    daemon::name_thread("checkpoint");
    loop_.run();
    attempt_ = Attempt();
    is_over_ = true;
  });
}

CheckpointWriter::~CheckpointWriter() {
  close();
  thread_.join();
}

void CheckpointWriter::close() {
  cancel();
  work_.reset();
}

void CheckpointWriter::cancel() {
  cancelled_ = last_attempt_;
  asio::post(loop_, [this, ticket = last_attempt_] { do_cancel(ticket); });
}

void CheckpointWriter::do_cancel(std::uint64_t ticket) {
  if (attempt_.number <= ticket) attempt_ = Attempt();
}

void CheckpointWriter::prepare(ShardJobPtr job, std::uint64_t attempt, const std::string& folder,
                               std::vector<ShardId> shards, std::function<void(Status)> done) {
  cancel();
  ++*pending_;
  const std::uint64_t ticket = ++last_attempt_;
  last_number_ = attempt;
  asio::post(loop_, [this, job = std::move(job), ticket, folder, shards = std::move(shards), done = std::move(done)] {
    post_([pending = pending_, done, prepared = do_prepare(job, ticket, folder, shards)] {
      --*pending;
      done(prepared);
    });
  });
}

Status CheckpointWriter::do_prepare(ShardJobPtr job, std::uint64_t ticket, const std::string& folder,
                                    const std::vector<ShardId>& shards) {
  attempt_ = Attempt{job, ticket, folder, {}};
  const auto slots = static_cast<std::uint32_t>(update::slots_of(job->config));
  const std::map<std::string, std::string> metadata = {{"disttrain_job", job->config.job.name}};
  for (const ShardId shard : shards) {
    if (cancelled_ >= ticket) return fail(ErrorCode::kTemporary, "the checkpoint attempt was cancelled");
    Result<checkpoint::ShardWriter> writer =
        checkpoint::ShardWriter::reserve(files_, folder, job->layout, shard, slots, metadata);
    if (!writer) return tl::unexpected(writer.error());
    attempt_.shards.emplace(shard, std::move(*writer));
  }
  return {};
}

void CheckpointWriter::write(std::uint64_t attempt, ShardId shard, std::shared_ptr<const ShardCopy> copy,
                             std::function<void(Result<WrittenShard>)> done) {
  if (attempt != last_number_)
    return done(fail(ErrorCode::kTemporary, "checkpoint attempt " + std::to_string(attempt) + " is over"));
  ++*pending_;
  const Instant begin = daemon::now();
  asio::post(loop_,
             [this, ticket = last_attempt_, shard, copy = std::move(copy), done = std::move(done), begin]() mutable {
               Result<FileEntry> file = do_write(ticket, shard, *copy);
               copy.reset();  // frees the copy now, so that the shard can start its next copy before `done` runs
               post_([pending = pending_, done, file = std::move(file), took = daemon::now() - begin]() mutable {
                 --*pending;
                 if (!file) return done(tl::unexpected(file.error()));
                 done(WrittenShard{std::move(*file), took});
               });
             });
}

Result<FileEntry> CheckpointWriter::do_write(std::uint64_t ticket, ShardId shard, const ShardCopy& copy) {
  const auto found = attempt_.shards.find(shard);
  if (attempt_.number != ticket || found == attempt_.shards.end())
    return fail(ErrorCode::kTemporary, "the checkpoint attempt is over");
  auto writer = attempt_.shards.extract(found);  // closes the file when this function ends, also after an error
  checkpoint::ShardContent content;
  content.parameters = copy.array(0);
  for (std::size_t i = 1; i < copy.arrays(); ++i) content.slots.push_back(copy.array(i));
  std::vector<std::span<const float>> arrays = {content.parameters};
  arrays.insert(arrays.end(), content.slots.begin(), content.slots.end());
  const Pace pace;
  const auto rest = [this, ticket, &pace] {
    pieces_.fetch_add(1, std::memory_order_relaxed);
    pace.rest();
    return cancelled_ >= ticket;
  };
  // A shard fails its job when an update gives a number that isn't finite, and refuses a checkpoint that has one. So
  // this should find nothing.
  if (Status finite = check_finite(attempt_.job->layout, shard, arrays, rest); !finite) {
    if (finite.error().code == ErrorCode::kTemporary) return tl::unexpected(finite.error());
    return fail(finite.error().code,
                finite.error().message +
                    ", so the checkpoint isn't taken; go on from an earlier checkpoint, with a smaller learning rate "
                    "or with clipping");
  }
  Result<FileEntry> file = writer.mapped().write(content, rest);
  if (!file) return file;
  if (Status synced = files_.sync_directory(attempt_.folder); !synced) return tl::unexpected(synced.error());
  return file;
}

}  // namespace disttrain::shards
