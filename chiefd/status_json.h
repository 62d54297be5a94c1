// The status as JSON. docs/json.md describes the keys, and scripts depend on them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "chiefd/core/status.h"
#include "chiefd/log_store.h"

namespace disttrain::chiefd {

// The status contains these values of the chief itself: its entry in the list of tasks, and the time of its clock.
struct ChiefStatus {
  std::uint32_t pid = 0;
  std::string address;
  std::string metrics;  // address of its metrics; "" = none
  std::int64_t wall_nanoseconds = 0;
};

// The value as JSON. NaN and infinity become null, because JSON has no such numbers.
nlohmann::json number_or_null(std::optional<double> value);

// `of_job` selects the log lines of the time of this job.
nlohmann::json to_json(const JobStatus& status, const ChiefStatus& chief, const LogStore& logs,
                       const LogFilter& of_job = {});
// The status of a cluster that hasn't had a job yet. It has the same keys as the status of a job; those that describe
// the job, such as `job` and `state`, are null.
nlohmann::json json_without_job(const std::vector<TaskStatus>& tasks, const ChiefStatus& chief);

// A list in the same order.
nlohmann::json to_json(const std::vector<EventRecord>& events);
std::string events_json(const std::vector<EventRecord>& events);

}  // namespace disttrain::chiefd
