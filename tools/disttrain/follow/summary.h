// Prints a job's result at its end, and chooses the exit code.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "common/result.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

// Returns 0 if the job finished, 2 if it was stopped, 1 if it failed. If it failed before training began, returns the
// code of the error, such as 78 for a wrong configuration.
int exit_code_of(const Json& status);

// Prints a few lines: "job mnist-quick finished: trained 1800 steps", the figures and the evaluation. For a failed job
// it prints only the figures, because print_root_cause() prints the rest.
void print_summary(std::ostream& out, const Json& status);

// Prints the path of the newest checkpoint, or nothing if there is none.
void print_checkpoint(std::ostream& out, const Json& status);

// Prints the last log lines of the task that failed first, then its name, why it failed, and what to do. If the reason
// shows what a trainer printed, it leaves out the log lines. Prints nothing if the job didn't fail. Call it after
// print_summary(), because readers look for the cause in the last lines.
void print_root_cause(std::ostream& out, const Json& status);

// Prints the steps per second of all workers, and how much time each worker spends in each phase of a step.
void print_phases(std::ostream& out, const Json& status);

// Builds the status of a failed job when the chief can't report it. `task` and `reason` are the root cause. `last` is
// the last status that the chief reported, or null. `signal` is the signal that ended the task's process, if any.
Json failed_status(const Json& last, const std::string& job, const std::string& task, const std::string& reason,
                   std::optional<int> signal, const std::vector<std::string>& log);

}  // namespace disttrain::cli
