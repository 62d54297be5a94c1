// PreparedJob: a job's settings, engine and data. The step thread makes it when the chief sends the first DescribeJob
// or OpenJob for the job, and keeps it until the job is closed.
#pragma once

#include <asio/io_context.hpp>
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

// What an engine may use.
struct EngineWorld {
  asio::io_context& loop;     // of the thread that calls the engine; outlives the engine
  std::uint32_t threads = 1;  // number of compute threads
};

// Makes the engine of a job. The caller is the thread of world.loop.
using EngineFactory = std::function<Result<std::unique_ptr<Engine>>(const JobConfig& config, const EngineWorld& world)>;

// A callback for the case that training or evaluation data can't be read or doesn't fit the model. It gets the reason.
// The thread that loads the data calls it.
using OnDataError = std::function<void(ErrorCode)>;

struct PreparedJob {
  JobId job;
  JobConfig config;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<input::Dataset> training;
  std::unique_ptr<input::Dataset> evaluation;  // null if it isn't loaded yet or the job has no [evaluate]
  input::IsCancelled is_cancelled;
  OnDataError on_data_error;
};

// Builds the model, reads the training set and checks that it fits the model. The texts of errors are for the operator.
// If is_cancelled() returns true, reading ends with an error; several threads call it. load_evaluation() uses
// is_cancelled and on_data_error too.
Result<std::unique_ptr<PreparedJob>> prepare_job(JobId job, const JobConfig& config, const EngineFactory& make_engine,
                                                 const EngineWorld& world, const input::IsCancelled& is_cancelled,
                                                 const OnDataError& on_data_error);

// Reads the evaluation set. Does nothing if it is loaded already or the job has none.
Status load_evaluation(PreparedJob& prepared);

}  // namespace disttrain::workerd
