// The thread that parses the files of submitted jobs. A file may take long to parse, and meanwhile the chief's loop
// must go on receiving heartbeats.
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

// The most files that may wait for the thread. The chief refuses to take more.
inline constexpr int kMaxJobsToRead = 64;

class JobReader {
 public:
  JobReader();
  // Finishes the current file, and drops the files that wait.
  ~JobReader();
  JobReader(const JobReader&) = delete;

  // The thread calls `done` with the parsed file, so `done` must post to the chief's loop. Returns false if too many
  // files wait already.
  bool give(std::string job_toml, std::function<void(Result<JobConfig>)> done);

 private:
  std::atomic<int> waiting_{0};
  asio::io_context loop_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;  // last
};

}  // namespace disttrain::chiefd
