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
#include "common/os/arena.h"
#include "common/result.h"
#include "engine/engine.h"
#include "input/dataset.h"

namespace disttrain::workerd {

// The things that an engine may use. They outlive the engine, and the functions are called on its thread.
struct EngineWorld {
  asio::io_context& loop;                                // of the thread that calls the engine
  std::uint32_t threads = 1;                             // number of compute threads
  ArenaKind arena = ArenaKind::kPrivate;                 // of parameters and gradients; a trainer needs a shared one
  std::function<bool()> is_cancelled;                    // true: the job is being closed, so long work ends early
  std::function<void(const std::string& line)> on_line;  // a user's own process has printed this
  std::function<void()> on_checkpoint;                   // a user's own process asks for a checkpoint
  std::function<std::uint32_t()> worker_count;           // number of workers when this worker opened the job
};

// An engine, and the sizes of data sets that it reads itself. They are 0 if the job has [data].
struct MadeEngine {
  std::unique_ptr<Engine> engine;
  std::uint64_t training_records = 0;
  std::uint64_t evaluation_records = 0;
};

// Makes the engine of a job. `columns` are those of the job's data; empty if it has no [data]. The arrays of parameters
// and gradients will be in `arena`. The caller is the thread of world.loop.
using EngineFactory = std::function<Result<MadeEngine>(const JobConfig& config, const std::vector<ColumnSpec>& columns,
                                                       Arena& arena, const EngineWorld& world)>;

// A callback for the case that training or evaluation data can't be read or doesn't fit the model. It gets the reason.
// The thread that loads the data calls it.
using OnDataError = std::function<void(ErrorCode)>;

struct PreparedJob {
  explicit PreparedJob(ArenaKind kind) : arena(kind) {}

  JobId job;
  JobConfig config;
  Arena arena;  // parameters and gradients; shared with a trainer
  std::unique_ptr<Engine> engine;
  std::unique_ptr<input::Dataset> training;
  std::unique_ptr<input::Dataset> evaluation;  // null if it isn't loaded yet or the job has no [evaluate]
  bool has_told_unknown = false;               // take_notice_of_unknown() has returned a notice
  input::IsCancelled is_cancelled;
  OnDataError on_data_error;

  // Returns a warning that counts the records of the evaluation set with words outside the vocabulary, or "". Call this
  // when the set knows all its records. A set in memory knows them from the start, another one after its first
  // evaluation.
  std::string notice_of_unknown() const;
  // The same for the log, once for each job.
  std::string take_notice_of_unknown();
};

// Reads the training set, builds the model and checks that they fit, also that the model takes batches of the sizes
// that will surely occur. The texts of errors are for the operator. If world.is_cancelled() returns true, reading ends
// with an error; several threads call it. load_evaluation() uses it and on_data_error too.
Result<std::unique_ptr<PreparedJob>> prepare_job(JobId job, const JobConfig& config, const EngineFactory& make_engine,
                                                 const EngineWorld& world, const OnDataError& on_data_error);

// The same for an evaluator that has what [data.columns] takes from the training set: it reads the evaluation set
// instead, and no training files. The result has no training set. Requires [data.columns] and evaluate.files.
Result<std::unique_ptr<PreparedJob>> prepare_evaluation(JobId job, const JobConfig& config,
                                                        std::shared_ptr<const input::FittedColumns> fitted,
                                                        const EngineFactory& make_engine, const EngineWorld& world);

// Reads the evaluation set, and checks it in the same way. Does nothing if it is loaded already or the job has none.
Status load_evaluation(PreparedJob& prepared);

}  // namespace disttrain::workerd
