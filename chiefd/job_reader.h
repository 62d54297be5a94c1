// The thread that reads the files of submitted jobs. How long that takes is up to whoever wrote the file, and the
// chief's loop must go on hearing heartbeats.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "common/config/job_config.h"
#include "common/result.h"

namespace disttrain::chiefd {

// Files that may wait to be read; more are refused.
inline constexpr int kMaxJobsToRead = 64;

class JobReader {
 public:
  JobReader();
  // Finishes the file at hand; drops those that wait.
  ~JobReader();
  JobReader(const JobReader&) = delete;

  // `done` is called on the thread, so it must post to the loop. False: too many files wait already.
  bool give(std::string job_toml, std::function<void(Result<JobConfig>)> done);

 private:
  std::atomic<int> waiting_{0};
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last
};

}  // namespace disttrain::chiefd
