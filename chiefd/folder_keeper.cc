// A folder may be on a network file system that hangs, and the chief's loop must still hear heartbeats. One thread for
// all folders did the work of one job after the other, so a file with a very large header or a file system that hung
// delayed every later job. Now the work of a job that has ended is abandoned between two operations on files. Only the
// export of the best checkpoint goes on, until another job waits for the folder: that job exports the best checkpoint
// anew. A thread in an operation that the kernel doesn't end can't be ended either: the next job in the same folder
// waits for it. The chief refuses more work on folders when 16 such threads are left.
#include "chiefd/folder_keeper.h"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/checkpoint/cancellable_files.h"
#include "common/daemon/clock.h"
#include "common/daemon/crash.h"
#include "common/daemon/threads.h"

namespace disttrain::chiefd {
namespace {

std::int64_t wall_seconds() {
  return daemon::wall_nanoseconds() / 1'000'000'000;
}

}  // namespace

// Which job's thread works in a folder. Shared by the threads.
class FolderOwners {
 public:
  struct Owner {
    JobId job;
    std::atomic<bool>& is_awaited;  // set when another job waits for the folder
  };
  // Waits until no other job works in the folder. Returns false if `is_cancelled` has become true meanwhile.
  bool take(const std::string& folder, Owner owner, const std::atomic<bool>& is_cancelled) {
    std::unique_lock lock(mutex_);
    const auto is_free = [&] {
      const Owner& there = owners_.emplace(folder, owner).first->second;
      if (there.job != owner.job) there.is_awaited = true;
      return there.job == owner.job;
    };
    changed_.wait(lock, [&] { return is_cancelled || is_free(); });
    return !is_cancelled;
  }
  void release(JobId job) {
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(owners_, [job](const auto& entry) { return entry.second.job == job; });
    }
    changed_.notify_all();
  }
  // Sets the flag, and wakes the threads that wait.
  void cancel(std::atomic<bool>& flag) {
    {
      const std::lock_guard lock(mutex_);
      flag = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards owners_, and the moment at which a flag is set
  std::condition_variable changed_;
  std::map<std::string, Owner> owners_;  // by folder
};

// The thread of one job.
class FolderLane {
 public:
  FolderLane(JobId job, checkpoint::Files& files, FolderOwners& owners, const std::function<void(FolderDone)>& done)
      : job_(job),
        owners_(owners),
        done_(done),
        files_(files, [this] { return is_abandoned(); }),
        folder_(std::make_unique<JobFolder>(files_, wall_seconds)),
        work_(asio::make_work_guard(loop_)),
        thread_([this] {
          daemon::name_thread("folders");
          daemon::note_work(job_.value);
          loop_.run();
          ends_ = Ends::kByItself;  // releasing the lock isn't abandoned
          folder_.reset();
          owners_.release(job_);
          is_over_ = true;
        }) {}
  // Waits until the thread has ended.
  ~FolderLane() {
    close();
    thread_.join();
  }
  FolderLane(const FolderLane&) = delete;

  void give(FolderWork work) {
    asio::post(loop_, [this, work = std::move(work)] {
      done_(
          FolderDone{job_, work.ticket, std::visit([this](const auto& w) { return try_to_carry_out(w); }, work.work)});
    });
  }
  void close() {
    if (is_closed_) return;
    owners_.cancel(is_closed_);
    work_.reset();
  }
  bool is_over() const { return is_over_; }

 private:
  // The size of what a folder holds is the user's choice. The chief goes on without it.
  template <typename Work>
  Result<FolderAnswer> try_to_carry_out(const Work& work) {
    try {
      return carry_out(work);
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::kUnavailable,
                  "the chief's host has no memory for the work on the job's checkpoint folder: give it more, or raise "
                  "MemoryMax of the unit");
    }
  }
  template <typename Work>
  Result<FolderAnswer> carry_out(const Work& work) {
    constexpr bool kKeepsBest = std::is_same_v<Work, KeepBest>;
    ends_ = kKeepsBest ? Ends::kWhenAwaited : Ends::kWhenClosed;
    if constexpr (std::is_same_v<Work, OpenFolder>) {
      const std::string folder = follow(follow(work.directory) + "/" + work.name);
      if (!owners_.take(folder, {job_, is_awaited_}, is_closed_))
        return fail(ErrorCode::kTemporary, folder + ": the job has ended");
    }
    Result<FolderAnswer> answer = folder_->carry_out(work);
    // Some work goes on after an error of a file, such as the search for a checkpoint, which then finds an older one.
    if (!is_abandoned()) return answer;
    if constexpr (kKeepsBest) {
      // The next job reads what the evaluations found, and exports the best checkpoint if this job hasn't.
      ends_ = Ends::kByItself;
      KeepBest rest;
      rest.evaluations = work.evaluations;
      if (rest.evaluations && answer && !answer->exported.empty()) rest.evaluations->found.exported = answer->exported;
      return folder_->carry_out(rest);
    } else {
      return fail(ErrorCode::kTemporary, "the work on the checkpoint folder was abandoned: its job has ended");
    }
  }

  // Two jobs may name one folder in two ways.
  std::string follow(const std::string& path) { return files_.follow_links(path).value_or(path); }

  bool is_abandoned() const {
    return is_closed_ && (ends_ == Ends::kWhenClosed || (ends_ == Ends::kWhenAwaited && is_awaited_));
  }

  const JobId job_;
  FolderOwners& owners_;
  const std::function<void(FolderDone)>& done_;
  std::atomic<bool> is_closed_ = false;
  std::atomic<bool> is_awaited_ = false;  // another job waits for the folder
  std::atomic<bool> is_over_ = false;
  // How the present work ends once the job has ended. Owned by the thread.
  enum class Ends { kWhenClosed, kWhenAwaited, kByItself } ends_ = Ends::kWhenClosed;
  checkpoint::CancellableFiles files_;
  std::unique_ptr<JobFolder> folder_;  // owned by the thread
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last
};

FolderKeeper::FolderKeeper(checkpoint::Files& files, std::function<void(FolderDone)> done)
    : files_(files), done_(std::move(done)), owners_(std::make_unique<FolderOwners>()) {}

FolderKeeper::~FolderKeeper() {
  for (const auto& [job, lane] : lanes_) lane->close();
}

void FolderKeeper::give(FolderWork work) {
  reap();
  auto lane = lanes_.find(work.job);
  if (lane == lanes_.end() && ended_.size() >= kMostEndedLanes)
    return done_(
        FolderDone{work.job, work.ticket,
                   fail(ErrorCode::kFailed, "the work on the checkpoint folders of " + std::to_string(kMostEndedLanes) +
                                                " ended jobs hangs: check their file systems, and restart the "
                                                "chief")});
  if (lane == lanes_.end())
    lane = lanes_.emplace(work.job, std::make_unique<FolderLane>(work.job, files_, *owners_, done_)).first;
  lane->second->give(std::move(work));
}

void FolderKeeper::close(JobId job) {
  reap();
  auto lane = lanes_.extract(job);
  if (lane.empty()) return;
  lane.mapped()->close();
  ended_.push_back(std::move(lane.mapped()));
}

void FolderKeeper::reap() {
  ended_.remove_if([](const auto& lane) { return lane->is_over(); });
}

}  // namespace disttrain::chiefd
