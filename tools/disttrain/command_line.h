// Declares the verbs of the command line and their options. main() parses the command line with this declaration, and
// tools/reference makes the manual pages and bash's completion from it. Each verb has its own file.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tools/disttrain/options.h"

namespace disttrain::cli {

// Can't be copied or moved, because `app` has pointers to the options.
struct CommandLine {
  struct CheckpointVerbs {
    CheckpointSaveOptions save;
    CheckpointOptions list;
    CheckpointOptions inspect;
    CheckpointOptions verify;
    CheckpointDiffOptions diff;
    CheckpointExportOptions exported;
  };

  struct BenchVerbs {
    UpOptions job;
    BenchPsOptions ps;
    BenchUpdateOptions update;
    BenchStepOptions step;
    ScaleOptions scale;
  };

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App app{"disttrain: trains one neural network on many machines", "disttrain"};
  std::function<int()> run;  // runs the verb that was chosen; empty until `app` has parsed the command line

  CheckOptions check_options;
  PlanOptions plan_options;
  UpOptions up_options;
  SubmitOptions submit_options;
  BenchVerbs bench_options;
  StatusOptions status_options;
  TopOptions top_options;
  LogsOptions logs_options;
  EventsOptions events_options;
  WhyOptions why_options;
  StopOptions stop_options;
  StopOptions kill_options;
  ResubmitOptions resubmit_options;
  CheckpointVerbs checkpoint_options;
  PredictOptions predict_options;
  DoctorOptions doctor_options;
};

}  // namespace disttrain::cli
