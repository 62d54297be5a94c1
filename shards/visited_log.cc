#include "shards/visited_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace disttrain::shards {

std::string VisitedLog::folder() {
  const char* named = std::getenv("DISTTRAIN_VISITED_LOG");
  return named == nullptr ? "" : named;
}

Result<VisitedLog> VisitedLog::begin(const std::string& folder, JobId job, Generation generation, Step begins_after) {
  const std::string path = folder + "/job-" + std::to_string(job.value) + ".jsonl";
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0)
    return fail(ErrorCode::kConfig, "can't open " + path + " for the log of visited records: " + std::strerror(errno) +
                                        "; DISTTRAIN_VISITED_LOG must name a folder that exists");
  VisitedLog log(path, file, generation);
  if (Status written = log.write("{\"generation\": " + std::to_string(generation.value) +
                                 ", \"begins_after\": " + std::to_string(begins_after.value) + "}\n");
      !written)
    return tl::unexpected(written.error());
  return log;
}

VisitedLog::VisitedLog(VisitedLog&& other) noexcept
    : path_(other.path_), file_(std::exchange(other.file_, -1)), generation_(other.generation_) {}

VisitedLog::~VisitedLog() {
  if (file_ >= 0) ::close(file_);
}

Status VisitedLog::add(const StepCounted& counted) {
  line_ = "{\"generation\": " + std::to_string(generation_.value) +
          ", \"step\": " + std::to_string(counted.step.value) + ", \"visits\": [";
  for (const Visit& visit : counted.visits) {
    if (&visit != &counted.visits.front()) line_ += ", ";
    line_ += "{\"worker\": \"" + to_string(visit.worker) + "\", \"epoch\": " + std::to_string(visit.epoch) +
             ", \"positions\": [";
    for (const Interval& interval : visit.positions) {
      if (&interval != &visit.positions.front()) line_ += ", ";
      line_ += "[" + std::to_string(interval.begin) + ", " + std::to_string(interval.end) + "]";
    }
    line_ += "]}";
  }
  line_ += "]}\n";
  return write(line_);
}

Status VisitedLog::write(const std::string& line) {
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return {};
  const std::string what = written < 0 ? std::strerror(errno) : "the disk is full";
  return fail(ErrorCode::kUnavailable, "can't write " + path_ + ", the log of visited records: " + what);
}

}  // namespace disttrain::shards
