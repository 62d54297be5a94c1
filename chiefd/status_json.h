// Status as JSON. Scripts depend on its keys: docs/json.md.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "chiefd/core/status.h"
#include "chiefd/log_store.h"

namespace disttrain::chiefd {

// The chief's own figures: its entry among the tasks, and its clock.
struct ChiefStatus {
  std::uint32_t pid = 0;
  std::string address;
  std::string metrics;  // address of its metrics; "" = none
  std::int64_t wall_nanoseconds = 0;
};

// Null also for NaN and infinity, which JSON doesn't have.
nlohmann::json number_or_null(std::optional<double> value);

nlohmann::json to_json(const JobStatus& status, const ChiefStatus& chief, const LogStore& logs);
// Before the first job: the same keys, with `job` and `state` null.
nlohmann::json json_without_job(const std::vector<TaskStatus>& tasks, const ChiefStatus& chief);

// A list in the same order.
nlohmann::json to_json(const std::vector<EventRecord>& events);
std::string events_json(const std::vector<EventRecord>& events);

}  // namespace disttrain::chiefd
