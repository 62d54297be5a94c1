// The thread that works on checkpoint folders, so that the chief's loop never waits for a file system.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "chiefd/folder_work.h"

namespace disttrain::chiefd {

class FolderKeeper {
 public:
  // The thread calls `done`, so `done` must post to the chief's loop.
  explicit FolderKeeper(std::function<void(FolderDone)> done);
  // Waits until the current operation is done, and drops the operations that haven't begun.
  ~FolderKeeper();
  FolderKeeper(const FolderKeeper&) = delete;

  void give(FolderWork work);
  void close(JobId job);

 private:
  const std::function<void(FolderDone)> done_;
  std::unique_ptr<checkpoint::Files> files_;
  std::map<JobId, std::unique_ptr<JobFolder>> folders_;  // owned by the thread
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last
};

}  // namespace disttrain::chiefd
