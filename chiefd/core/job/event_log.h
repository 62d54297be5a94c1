// Reports to the operator what happens to a job: as events for `disttrain events` and the log, and as warnings in the
// job's status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/job/progress.h"
#include "chiefd/core/job/rollback.h"
#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/turn.h"

namespace disttrain::chiefd {

class EventLog {
 public:
  // The arguments must outlive this object.
  EventLog(const JobSetup& setup, const Progress& progress, const Rollbacks& rollbacks)
      : setup_(setup), progress_(progress), rollbacks_(rollbacks) {}

  // `level` as in LogLine. `task`, `cause`: see EventRecord.
  void tell(Turn& turn, const std::string& kind, std::uint8_t level, const std::string& text,
            std::optional<TaskId> task = {}, const std::string& cause = "");
  void warn(std::string text);
  // The newest warnings, oldest first.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // The newest step that the chief has heard of. During a rollback: the step that the job had reached before the
  // rollback.
  Step reached() const { return rollbacks_.current() ? rollbacks_.current()->step : progress_.step(); }

 private:
  const JobSetup& setup_;
  const Progress& progress_;
  const Rollbacks& rollbacks_;
  std::vector<std::string> warnings_;
};

}  // namespace disttrain::chiefd
