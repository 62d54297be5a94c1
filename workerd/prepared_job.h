// PreparedJob: what a worker needs of a job before anything is placed: its settings, its engine, its data. Made once,
// by the step thread, when the chief asks what the job is or opens it; kept until the job is closed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/config/job_config.h"
#include "common/messages/control.h"
#include "common/result.h"
#include "workerd/compute/engine.h"
#include "workerd/input/dataset.h"

namespace disttrain::workerd {

// Makes the engine of a job for so many threads; make_engine() in the program.
using EngineFactory = std::function<Result<std::unique_ptr<Engine>>(const ModelSection& model, std::uint32_t threads)>;

// Told why a load of training or evaluation data failed: it can't be read, or doesn't fit the model. On the thread that
// loads.
using OnDataError = std::function<void(ErrorCode)>;

struct PreparedJob {
  JobId job;
  JobConfig config;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<input::Dataset> training;
  std::unique_ptr<input::Dataset> evaluation;  // none: not loaded yet, or no [evaluate]
  input::IsCancelled is_cancelled;
  OnDataError on_data_error;
};

// Builds the model and reads the training set; the data fits the model then. Errors are meant for the operator.
// Reading ends early with an error once is_cancelled() says so; asked from several threads. It and on_data_error are
// kept for load_evaluation().
Result<std::unique_ptr<PreparedJob>> prepare_job(JobId job, const JobConfig& config, const EngineFactory& make_engine,
                                                 std::uint32_t threads, const input::IsCancelled& is_cancelled,
                                                 const OnDataError& on_data_error);

// Reads the evaluation set unless that is done or there is none.
Status load_evaluation(PreparedJob& prepared);

}  // namespace disttrain::workerd
