#include "chiefd/folder_keeper.h"

#include <asio/post.hpp>

#include "common/checkpoint/disk_files.h"
#include "common/daemon/clock.h"
#include "common/daemon/threads.h"

namespace disttrain::chiefd {
namespace {

std::int64_t wall_seconds() {
  return daemon::wall_nanoseconds() / 1'000'000'000;
}

}  // namespace

FolderKeeper::FolderKeeper(std::function<void(FolderDone)> done)
    : done_(std::move(done)),
      files_(std::make_unique<checkpoint::DiskFiles>()),
      work_(asio::make_work_guard(loop_)),
      thread_([this] {
        daemon::name_thread("folders");
        loop_.run();
      }) {}

FolderKeeper::~FolderKeeper() {
  work_.reset();
  loop_.stop();
  thread_.join();
}

void FolderKeeper::give(FolderWork work) {
  asio::post(loop_, [this, work = std::move(work)] {
    auto& folder = folders_[work.job];
    if (!folder) folder = std::make_unique<JobFolder>(*files_, wall_seconds);
    done_(
        FolderDone{work.job, work.ticket, std::visit([&](const auto& w) { return folder->carry_out(w); }, work.work)});
  });
}

void FolderKeeper::close(JobId job) {
  asio::post(loop_, [this, job] { folders_.erase(job); });
}

}  // namespace disttrain::chiefd
