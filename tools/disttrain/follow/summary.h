// What is said at a job's end, root cause first, and the exit code that goes with it.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "common/result.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

// 0 finished, 1 failed (its sysexit where it failed before it opened), 2 stopped.
int exit_code_of(const Json& status);

// "job mnist-quick finished: trained 1800 steps", the figures and the evaluation, in a few lines. Of a failed job the
// figures only: print_root_cause() comes first.
void print_summary(std::ostream& out, const Json& status);

// Where the newest is. Nothing where there is none.
void print_checkpoint(std::ostream& out, const Json& status);

// The first failing task, why, its last log lines, what to do. Nothing for jobs that haven't failed.
void print_root_cause(std::ostream& out, const Json& status);

// Steps per second and the share of each phase, per worker.
void print_phases(std::ostream& out, const Json& status);

// A status for a job that nobody can tell the end of: failed, with this root cause. `last`: the last status seen, or
// null. `signal`: that ended the task's process.
Json failed_status(const Json& last, const std::string& job, const std::string& task, const std::string& reason,
                   std::optional<int> signal, const std::vector<std::string>& log);

}  // namespace disttrain::cli
