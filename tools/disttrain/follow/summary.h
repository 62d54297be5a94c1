// What is printed at a job's end, root cause first, and the exit code for it.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "common/result.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

// 0 finished, 2 stopped, 1 failed, or the error's own code where the job failed before it opened.
int exit_code_of(const Json& status);

// "job mnist-quick finished: trained 1800 steps", the figures and the evaluation, in a few lines. For a failed job only
// the figures: print_root_cause() comes first.
void print_summary(std::ostream& out, const Json& status);

// Prints where the newest checkpoint is; nothing where there is none.
void print_checkpoint(std::ostream& out, const Json& status);

// Prints the first failing task, why it failed, its last log lines and what to do. Nothing for a job that didn't fail.
void print_root_cause(std::ostream& out, const Json& status);

// Steps per second and the share of each phase, per worker.
void print_phases(std::ostream& out, const Json& status);

// The status of a job whose chief can't report its end: failed, with this root cause. `last`: the last status seen, or
// null. `signal`: the one that ended the task's process.
Json failed_status(const Json& last, const std::string& job, const std::string& task, const std::string& reason,
                   std::optional<int> signal, const std::vector<std::string>& log);

}  // namespace disttrain::cli
