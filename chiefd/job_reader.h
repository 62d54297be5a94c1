// The thread that reads the files of submitted jobs: how long that takes is the choice of the one that wrote the file,
// and the chief's loop must go on hearing heartbeats.
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

// Files that wait to be read; more are refused.
inline constexpr int kMaxJobsToRead = 64;

class JobReader {
 public:
  JobReader();
  // Ends the file at hand; what waits is dropped.
  ~JobReader();
  JobReader(const JobReader&) = delete;

  // `done` is called on the thread; it posts. False: too many wait already.
  bool give(std::string job_toml, std::function<void(Result<JobConfig>)> done);

 private:
  std::atomic<int> waiting_{0};
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last
};

}  // namespace disttrain::chiefd
