// Shows what the trainers of a followed job print (model.trainer), while the job runs. The workers log these lines, and
// the chief keeps the newest 1,000 lines of each worker. So if a trainer prints faster than that, some are left out
// here; the worker's own log has more of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/messages/client.h"
#include "common/result.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

// Whose lines are shown (--output). kFirst: those of the trainer of rank 0, as long as a worker has this rank. If the
// rank moves to another worker, the lines that this worker has logged before aren't shown.
enum class Output { kNone, kFirst, kAll };
// `option` is "rank0", "all" or "none". kNone if the job has no trainer.
Output output_of(const std::string& option, const JobConfig& job);

class TrainerOutput {
 public:
  // Asks the chief for log lines. An error means that there are no new lines; the next call asks for them again.
  using Ask = std::function<Result<LogLines>(const LogsRequest& request)>;
  using Print = std::function<void(const std::string& line)>;

  TrainerOutput(Output output, Ask ask, Print print)
      : output_(output), ask_(std::move(ask)), print_(std::move(print)) {}

  // Prints the lines of the job with this number that are new since the last call. The number may be another one than
  // in the last call. With kAll, each line begins with the name of its worker.
  void show(const std::string& job, const Json& status);

 private:
  std::vector<TaskId> tasks_in(const Json& status);
  void print(const LogLine& line);

  const Output output_;
  const Ask ask_;
  const Print print_;
  std::string job_;                        // of the last call
  std::optional<TaskId> first_;            // the worker that has rank 0, or had it last
  bool has_moved_ = false;                 // rank 0 has moved to first_, whose lines so far aren't shown
  std::map<TaskId, std::int64_t> newest_;  // when the last line of each worker was logged, also of another kind
};

}  // namespace disttrain::cli
