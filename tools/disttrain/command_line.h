// The verbs of the command line and their options, in one table. main() parses with it, and the manual pages and the
// completion are made from it. Each verb has a file of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "tools/disttrain/options.h"

namespace disttrain::cli {

// Neither copied nor moved: `app` writes into the options.
struct CommandLine {
  struct CheckpointVerbs {
    CheckpointSaveOptions save;
    CheckpointOptions list;
    CheckpointOptions inspect;
    CheckpointOptions verify;
    CheckpointDiffOptions diff;
    CheckpointExportOptions exported;
  };

  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App app{"disttrain: trains one neural network on many machines", "disttrain"};
  std::function<int()> run;  // the chosen verb; empty before `app` has parsed

  CheckOptions check_options;
  PlanOptions plan_options;
  UpOptions up_options;
  SubmitOptions submit_options;
  UpOptions bench_options;
  StatusOptions status_options;
  TopOptions top_options;
  LogsOptions logs_options;
  EventsOptions events_options;
  WhyOptions why_options;
  StopOptions stop_options;
  StopOptions kill_options;
  CheckpointVerbs checkpoint_options;
  DoctorOptions doctor_options;
};

}  // namespace disttrain::cli
