// Has one function per verb. Each does the verb's work, prints, and returns the exit code. docs/json.md describes the
// JSON that `--json` prints.
#pragma once

#include "tools/disttrain/options.h"

namespace disttrain::cli {

int check(const CheckOptions& options);
int plan(const PlanOptions& options);
int up(const UpOptions& options);
int submit(const SubmitOptions& options);
// Trains a job like `submit` if there is a cluster file, else like `up`. Then prints the time of each phase of a step.
int bench(const UpOptions& options);
// Predicts how a job performs on a cluster of a given size, without starting anything.
int bench_scale(const ScaleOptions& options);
int bench_ps(const BenchPsOptions& options);
int bench_update(const BenchUpdateOptions& options);
// Replaces this process by a workerd that computes the steps. Returns only if that fails.
int bench_step(const BenchStepOptions& options);
int status(const StatusOptions& options);
int top(const TopOptions& options);
int logs(const LogsOptions& options);
int events(const EventsOptions& options);
int why(const WhyOptions& options);
int stop(const StopOptions& options);
int resubmit(const ResubmitOptions& options);
int checkpoint_save(const CheckpointSaveOptions& options);
int checkpoint_list(const CheckpointOptions& options);
int checkpoint_inspect(const CheckpointOptions& options);
// Returns 65 if a checkpoint is damaged.
int checkpoint_verify(const CheckpointOptions& options);
// Returns 1 if the two checkpoints differ.
int checkpoint_diff(const CheckpointDiffOptions& options);
int checkpoint_export(const CheckpointExportOptions& options);
// Replaces this process by a workerd that predicts. Returns only if that fails.
int predict(const PredictOptions& options);
// Returns 1 if a check fails.
int doctor(const DoctorOptions& options);
int version();

}  // namespace disttrain::cli
