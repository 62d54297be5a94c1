// For how long a job has waited for tasks that are away, and when the chief reports it next.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "chiefd/core/awaited.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct AbsenceFacts {
  std::vector<Absence> current;   // the waits of the last tick, those for ps tasks first
  std::map<Role, Instant> since;  // when the job began to wait for tasks of this role
  std::optional<Instant> next_report;
  Duration until_next{};  // from a report to the next one

  // Workers don't join while the chief's own disk hangs. So this pause doesn't count.
  void excuse(Duration pause) {
    if (const auto workers = since.find(Role::kWorker); workers != since.end()) workers->second += pause;
  }
};

}  // namespace disttrain::chiefd
