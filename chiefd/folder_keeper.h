// Works on the checkpoint folders of jobs, so that the chief's loop never waits for a file system. Each job has a
// thread of its own, so a large file or a file system that hangs delays no other job. Only the next job in the same
// folder waits until the work on it has ended.
//
// The chief's loop calls all functions.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>

#include "chiefd/folder_work.h"

namespace disttrain::chiefd {

class FolderLane;
class FolderOwners;

// The most threads of jobs that have ended. They end soon, except on a file system that hangs. If there are so many,
// the chief refuses more work on folders.
inline constexpr std::size_t kMostEndedLanes = 16;

class FolderKeeper {
 public:
  // The threads call `done`, so `done` must post to the chief's loop. `files` must outlive this object.
  FolderKeeper(checkpoint::Files& files, std::function<void(FolderDone)> done);
  // Abandons all work that close() would abandon, and waits until the rest is done.
  ~FolderKeeper();
  FolderKeeper(const FolderKeeper&) = delete;

  void give(FolderWork work);
  // The job has ended. Abandons its work (see checkpoint::CancellableFiles), which then ends with kTemporary. KeepBest
  // goes on, but its export is abandoned as soon as another job waits for the folder. What the job's evaluations found
  // is kept all the same. Then releases the folder's lock.
  void close(JobId job);

 private:
  void reap();

  checkpoint::Files& files_;
  const std::function<void(FolderDone)> done_;
  const std::unique_ptr<FolderOwners> owners_;
  std::map<JobId, std::unique_ptr<FolderLane>> lanes_;
  std::list<std::unique_ptr<FolderLane>> ended_;  // lanes of ended jobs, until their threads have ended
};

}  // namespace disttrain::chiefd
