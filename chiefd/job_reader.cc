#include "chiefd/job_reader.h"

#include <asio/post.hpp>
#include <utility>

#include "common/config/reader/reader.h"
#include "common/daemon/threads.h"

namespace disttrain::chiefd {

JobReader::JobReader()
    : work_(asio::make_work_guard(loop_)), thread_([this] {
        daemon::name_thread("jobs");
        loop_.run();
      }) {}

JobReader::~JobReader() {
  work_.reset();
  loop_.stop();
  thread_.join();
}

bool JobReader::give(std::string job_toml, std::function<void(Result<JobConfig>)> done) {
  if (waiting_.fetch_add(1) >= kMaxJobsToRead) {
    --waiting_;
    return false;
  }
  asio::post(loop_, [this, job_toml = std::move(job_toml), done = std::move(done)] {
    done(config::read_job(job_toml));
    --waiting_;
  });
  return true;
}

}  // namespace disttrain::chiefd
