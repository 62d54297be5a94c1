// One function per verb. It does the work, prints, and returns the exit code. docs/json.md says what `--json` prints.
#pragma once

#include "tools/disttrain/options.h"

namespace disttrain::cli {

int check(const CheckOptions& options);
int plan(const PlanOptions& options);
int up(const UpOptions& options);
int submit(const SubmitOptions& options);
// Runs as `submit` with a cluster file and as `up` without one. Prints the time of each phase.
int bench(const UpOptions& options);
int status(const StatusOptions& options);
int top(const TopOptions& options);
int logs(const LogsOptions& options);
int events(const EventsOptions& options);
int why(const WhyOptions& options);
int stop(const StopOptions& options);
int checkpoint_save(const CheckpointSaveOptions& options);
int checkpoint_list(const CheckpointOptions& options);
int checkpoint_inspect(const CheckpointOptions& options);
// 65 where a checkpoint is damaged.
int checkpoint_verify(const CheckpointOptions& options);
// 1 where the two differ.
int checkpoint_diff(const CheckpointDiffOptions& options);
int checkpoint_export(const CheckpointExportOptions& options);
// 1 where a check fails.
int doctor(const DoctorOptions& options);
int version();

}  // namespace disttrain::cli
